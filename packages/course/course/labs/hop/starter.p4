// Lab 2: one hop of a uSID list. The page: ./lab course page 2. Check with: ./lab check 2
//
// hdr.ipv6 has version, dscp, hop_limit, src_addr, dst_addr (128 bits: block 32, then six uSIDs of 16).
// x[high:low] takes bits, a ++ b joins them, 16w0 is a zero of 16 bits.

control Hop(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action shift() {
        // GAP 1: the block stays, the first uSID goes, zeros come in at the end.
    }

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
        // GAP 2: what does every hop take off?
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table my_sid { // this switch's own uSID
        key = { hdr.ipv6.dst_addr: lpm; }
        actions = { shift; NoAction; }
        const default_action = NoAction();
        size = 16;
    }

    table neighbours { // the uSIDs of the nodes at the ports
        key = { hdr.ipv6.dst_addr: lpm; }
        actions = { forward; drop; }
        const default_action = drop();
        size = 64;
    }

    apply {
        // GAP 3: which packets must be dropped before any table is asked?
        // GAP 4: shift if the first uSID is this switch's own.
        // GAP 5: what if nothing is left of the list?
        neighbours.apply();
    }
}
