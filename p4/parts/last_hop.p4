// Leaf only: a packet trimmed on its way out to a host says so, because that is incast and no fault of the path.

control LastHop(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action mark_last_hop(bit<6> dscp) {
        hdr.ipv6.dscp = dscp;
        meta.traffic_class = CLASS_TRIMMED_LAST_HOP;
    }

    table host_facing {
        key = {
            standard_metadata.egress_spec: exact @name("egress_port");
        }
        actions = {
            mark_last_hop;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        host_facing.apply();
    }
}
