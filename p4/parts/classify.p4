// DSCP -> traffic class and queue; counts every packet received. An unknown DSCP is no-trim data.

control Classify(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets_and_bytes) received;

    action set_class(bit<3> traffic_class, bit<3> priority) {
        meta.traffic_class = traffic_class;
        standard_metadata.priority = priority;
    }

    table dscp_to_class {
        key = {
            hdr.ipv6.dscp: exact @name("dscp");
        }
        actions = {
            set_class;
        }
        default_action = set_class(CLASS_NO_TRIM, 0);
        size = DSCPS;
    }

    apply {
        if (hdr.ipv6.isValid()) {
            dscp_to_class.apply();
        }
        received.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
    }
}
