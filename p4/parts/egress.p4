// The egress pipeline of both switches: settle the account, mark congestion, count what leaves.

control SwitchEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) sent;
    Settle() settle;
    Ecn() ecn;

    apply {
        settle.apply(hdr, meta, standard_metadata);
        ecn.apply(hdr, meta, standard_metadata);
        sent.count((bit<32>)(standard_metadata.egress_port ++ meta.traffic_class));
    }
}
