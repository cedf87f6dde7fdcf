// Lab 4: packet trimming. The page: ./lab course page 4. Check with: ./lab check 4
//
// hdr.ipv6 has dscp, payload_length; standard_metadata has egress_spec (the port, in ingress), priority,
// egress_port and deq_qdepth (in egress: packets still waiting in the queue that this packet was taken from).
// meta.limited is a bool that goes with the packet from ingress to egress.

register<bit<32>>(512) waiting; // packets that wait at each port: your own account

control Trim(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<32> depth;
    bit<32> most = 0;
    bit<6> mark = 0;

    action limit(bit<32> packets, bit<6> dscp) { // of a port: how many may wait; the DSCP of a trimmed packet
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
        if (hdr.ipv6.dscp == 10 && limits.apply().hit) { // only DSCP 10 may be trimmed
            waiting.read(depth, (bit<32>)standard_metadata.egress_spec);
            // GAP 1: is there room? Then count the packet, and remember that it was counted.
            // GAP 2: otherwise cut the frame to 128 bytes: truncate(128). What does the header say of its length?
            // GAP 3: a trimmed packet has another DSCP, and overtakes in priority 7.
        }
    }
}

control Settle(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        // GAP 4: a packet has left its queue: how many are waiting now?
    }
}
