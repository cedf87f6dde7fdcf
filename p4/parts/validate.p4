// Refuses packets that no table entry could forward. Instead of one whose hop limit is used up, an answer may go on.

control Validate(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) not_ipv6_drops;
    counter(PORT_CLASSES, CounterType.packets) hop_limit_drops;
    TimeExceeded() answer;

    action drop_not_ipv6() {
        not_ipv6_drops.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    action drop_hop_limit() {
        hop_limit_drops.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    apply {
        if (!hdr.ipv6.isValid() || hdr.ipv6.version != IP_VERSION_6) {
            drop_not_ipv6();
        } else if (hdr.ipv6.hop_limit <= 1) {
            drop_hop_limit();
            answer.apply(hdr, meta, standard_metadata);
        }
    }
}
