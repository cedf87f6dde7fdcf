// The static table: uSIDs and plain prefixes -> next hop -> port and MACs. ECMP serves plain IPv6 only; a uSID list
// names its path. A packet may leave by the port it came in by: that is how probes bounce.

control Route(inout headers_t hdr,
              inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) no_route_drops;
    counter(PORT_CLASSES, CounterType.packets) unknown_usid_drops;
    counter(PORT_CLASSES, CounterType.packets) no_next_hop_drops;
    action_selector(HashAlgorithm.identity, ECMP_MEMBERS, 32) ecmp_selector;

    action drop_no_route() {
        no_route_drops.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    // For the uSID block itself: a destination without a longer prefix is a uSID that was never installed.
    action drop_unknown_usid() {
        unknown_usid_drops.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    action drop_no_next_hop() {
        no_next_hop_drops.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        mark_to_drop(standard_metadata);
        meta.dropped = true;
    }

    action set_next_hop(bit<16> next_hop) {
        meta.next_hop = next_hop;
    }

    // CRC-32 is linear: with a seed in its input, flows that one switch has sent to the same member would still all go to
    // the same member of the next. So each switch leaves out other low bits of the hash.
    action set_ecmp_group(bit<16> ecmp_group, bit<8> hash_shift) {
        meta.ecmp_group = ecmp_group;
        hash(meta.ecmp_hash,
             HashAlgorithm.crc32,
             32w0,
             { hdr.ipv6.src_addr, hdr.ipv6.dst_addr, hdr.ipv6.flow_label, meta.udp_src_port, meta.udp_dst_port },
             64w0x100000000);
        meta.ecmp_hash = meta.ecmp_hash >> hash_shift;
    }

    action set_adjacency(bit<9> port, bit<48> src_mac, bit<48> dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
    }

    table ipv6_route {
        key = {
            hdr.ipv6.dst_addr: lpm @name("dst_addr");
        }
        actions = {
            set_next_hop;
            set_ecmp_group;
            drop_unknown_usid;
            @defaultonly drop_no_route;
        }
        const default_action = drop_no_route();
        size = ROUTES;
    }

    table ecmp {
        key = {
            meta.ecmp_group: exact @name("ecmp_group");
            meta.ecmp_hash: selector;
        }
        actions = {
            set_next_hop;
        }
        implementation = ecmp_selector;
        size = ECMP_GROUPS;
    }

    table next_hop {
        key = {
            meta.next_hop: exact @name("next_hop");
        }
        actions = {
            set_adjacency;
            @defaultonly drop_no_next_hop;
        }
        const default_action = drop_no_next_hop();
        size = NEXT_HOPS;
    }

    apply {
        if (meta.next_hop == NO_NEXT_HOP) {
            switch (ipv6_route.apply().action_run) {
                set_ecmp_group: {
                    ecmp.apply();
                }
            }
        }
        if (!meta.dropped) {
            next_hop.apply();
        }
    }
}
