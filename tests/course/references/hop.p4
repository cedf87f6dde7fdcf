// Reference of lab 2.

control Hop(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action shift() {
        hdr.ipv6.dst_addr = hdr.ipv6.dst_addr[127:96] ++ hdr.ipv6.dst_addr[79:0] ++ 16w0;
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table my_sid {
        key = { hdr.ipv6.dst_addr: lpm; }
        actions = { shift; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    table neighbours {
        key = { hdr.ipv6.dst_addr: lpm; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 64;
    }

    apply {
        if (!hdr.ipv6.isValid() || hdr.ipv6.version != 6 || hdr.ipv6.hop_limit <= 1) {
            drop();
            return;
        }
        if (my_sid.apply().hit) {
            if (hdr.ipv6.dst_addr[95:0] == 0) {
                drop();
                return;
            }
        }
        neighbours.apply();
    }
}
