// Sets the queue's account to the truth: the bytes still waiting when this packet was taken from its queue.

control Settle(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    action settle_account() {
        queue_account.write((bit<32>)(standard_metadata.egress_port ++ standard_metadata.priority),
                            standard_metadata.egress_global_timestamp ++ (bit<16>)standard_metadata.deq_qdepth);
    }

    apply {
        if (meta.limited) {
            settle_account();
        }
    }
}
