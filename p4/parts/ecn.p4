// ECN (RFC 3168) between two depths of the queue, per egress port and class: never at or below `low_packets`, always above
// `high_packets`, with probability rising linearly in between. Only the outer header is marked.

control Ecn(inout headers_t hdr,
            inout metadata_t meta,
            inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) ecn_marked;

    action mark_between(bit<19> low_packets, bit<19> high_packets) {
        meta.ecn_enabled = true;
        meta.ecn_low_packets = low_packets;
        meta.ecn_high_packets = high_packets;
    }

    action draw() {
        random(meta.ecn_draw, meta.ecn_low_packets, meta.ecn_high_packets);
    }

    action mark() {
        hdr.ipv6.ecn = ECN_CONGESTION;
        ecn_marked.count((bit<32>)(standard_metadata.egress_port ++ meta.traffic_class));
    }

    table ecn_profile {
        key = {
            standard_metadata.egress_port: exact @name("egress_port");
            meta.traffic_class: exact @name("traffic_class");
        }
        actions = {
            mark_between;
            NoAction;
        }
        default_action = NoAction();
        size = PORT_CLASSES;
    }

    apply {
        if (hdr.ipv6.ecn != ECN_NOT_CAPABLE && hdr.ipv6.ecn != ECN_CONGESTION) {
            ecn_profile.apply();
            if (meta.ecn_enabled && standard_metadata.deq_qdepth > meta.ecn_low_packets) {
                draw();
                if (standard_metadata.deq_qdepth > meta.ecn_draw) {
                    mark();
                }
            }
        }
    }
}
