// SRv6 NEXT-C-SID, F3216 (RFC 9800 section 4.1): consume the uSIDs that are this switch's own.
//
//   DA  bbbb:bbbb : 1111 : 2222 : 3333 : 4444 : 5555 : 6666     block : active uSID : the rest
//   uN  bbbb:bbbb : 2222 : 3333 : 4444 : 5555 : 6666 : 0000     then the static table
//   uA  the same shift, out of the bound adjacency
//   uN+uA  /64: two shifts at once, out of the bound adjacency
//
// A list that ends here has nowhere to go: this switch terminates no traffic and decapsulates nothing.

control Segments(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) list_ended_drops;

    action end_un() {
        hdr.ipv6.dst_addr = hdr.ipv6.dst_addr[127:96] ++ hdr.ipv6.dst_addr[79:0] ++ 16w0;
    }

    action end_ua(bit<16> next_hop) {
        hdr.ipv6.dst_addr = hdr.ipv6.dst_addr[127:96] ++ hdr.ipv6.dst_addr[79:0] ++ 16w0;
        meta.next_hop = next_hop;
    }

    action end_un_ua(bit<16> next_hop) {
        hdr.ipv6.dst_addr = hdr.ipv6.dst_addr[127:96] ++ hdr.ipv6.dst_addr[63:0] ++ 32w0;
        meta.next_hop = next_hop;
    }

    action drop_list_ended() {
        list_ended_drops.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    table my_sid {
        key = {
            hdr.ipv6.dst_addr: lpm @name("dst_addr");
        }
        actions = {
            end_un;
            end_ua;
            end_un_ua;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = MY_SIDS;
    }

    apply {
        if (my_sid.apply().hit) {
            if (hdr.ipv6.dst_addr[95:0] == 0) {
                drop_list_ended();
            }
        }
    }
}
