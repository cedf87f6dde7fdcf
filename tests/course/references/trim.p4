// Reference of lab 4.

register<bit<32>>(512) waiting;

control Trim(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<32> depth;
    bit<32> most = 0;
    bit<6> mark = 0;

    action limit(bit<32> packets, bit<6> dscp) {
        most = packets;
        mark = dscp;
    }

    table limits {
        key = { standard_metadata.egress_spec: exact; }
        actions = { limit; NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    apply {
        if (hdr.ipv6.dscp == 10 && limits.apply().hit) {
            waiting.read(depth, (bit<32>)standard_metadata.egress_spec);
            if (depth >= most) {
                if (hdr.ipv6.payload_length > 74) {
                    hdr.ipv6.payload_length = 74;
                }
                truncate(128);
                hdr.ipv6.dscp = mark;
                standard_metadata.priority = 7;
            } else {
                waiting.write((bit<32>)standard_metadata.egress_spec, depth + 1);
                meta.limited = true;
            }
        }
    }
}

control Settle(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.limited) {
            waiting.write((bit<32>)standard_metadata.egress_port, (bit<32>)standard_metadata.deq_qdepth);
        }
    }
}
