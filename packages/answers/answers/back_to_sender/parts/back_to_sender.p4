// A data packet that would leave by a port without a link is cut to its headers and goes back to its sender.
//
// `dead_port` has the ports that the switch's own agent has seen lose their link. `uncovered` is for a route that was withdrawn:
// it holds the uSID block where segment routing is on, and no default, blackhole or reject route covers the block. A packet that
// such a route takes elsewhere was not dropped and goes on.
//
// A packet is sent back if the port it came in by has an entry for its DSCP. Notifications have another DSCP, so none is sent
// back, and a packet is sent back once. It leaves by the port it came in by: from there it is routed as any packet.

const bit<3> CLASS_RETURNED = 7;

control BackToSender(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) returned;
    counter(PORT_CLASSES, CounterType.packets) returned_share_drops;
    meter(PORTS, MeterType.packets) returned_meter;

    // size_bytes counts from the first Ethernet byte. Source and destination change places.
    action send_back(bit<16> size_bytes, bit<6> dscp, bit<3> priority, bit<48> src_mac, bit<48> dst_mac) {
        returned.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        bit<16> payload_max = size_bytes - ETHERNET_AND_IPV6_BYTES;
        bit<128> dst_addr = hdr.ipv6.dst_addr;
        hdr.ipv6.payload_length =
            hdr.ipv6.payload_length > payload_max ? payload_max : hdr.ipv6.payload_length;
        hdr.ipv6.dscp = dscp;
        hdr.ipv6.ecn = ECN_NOT_CAPABLE;
        hdr.ipv6.hop_limit = 64;
        hdr.ipv6.dst_addr = hdr.ipv6.src_addr;
        hdr.ipv6.src_addr = dst_addr;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        meta.traffic_class = CLASS_RETURNED;
        meta.dropped = false;
        standard_metadata.priority = priority;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        truncate((bit<32>)size_bytes);
    }

    action drop_returned_share() {
        returned_share_drops.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    action link_is_down() { }

    table dead_port {
        key = {
            standard_metadata.egress_spec: exact @name("egress_port");
        }
        actions = {
            link_is_down;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = PORTS;
    }

    table uncovered {
        key = {
            hdr.ipv6.dst_addr: lpm @name("dst_addr");
        }
        actions = {
            link_is_down;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = 64;
    }

    table notify_sender {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
            hdr.ipv6.dscp: exact @name("dscp");
        }
        actions = {
            send_back;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = PORT_CLASSES;
    }

    apply {
        bool dead = false;
        if (meta.dropped) {
            dead = uncovered.apply().hit;
        } else {
            dead = dead_port.apply().hit;
        }
        if (dead && hdr.ethernet.dst_addr[40:40] == 0 && hdr.ipv6.src_addr != 0 && hdr.ipv6.src_addr[127:120] != 0xff) {
            if (notify_sender.apply().hit) {
                bit<2> color = 0;
                returned_meter.execute_meter((bit<32>)standard_metadata.egress_spec, color);
                if (color == METER_RED) {
                    drop_returned_share();
                }
            }
        }
    }
}
