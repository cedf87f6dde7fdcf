// Packet trimming: cut the packet to its headers, re-mark it and let it overtake. ECN bits and inner headers stay.

control Trim(inout headers_t hdr,
             inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) trimmed;

    // size_bytes counts from the first Ethernet byte. A packet already shorter is sent whole.
    action trim_to(bit<16> size_bytes, bit<6> dscp, bit<3> priority) {
        bit<16> payload_max = size_bytes - ETHERNET_AND_IPV6_BYTES;
        hdr.ipv6.payload_length =
            hdr.ipv6.payload_length > payload_max ? payload_max : hdr.ipv6.payload_length;
        hdr.ipv6.dscp = dscp;
        meta.traffic_class = CLASS_TRIMMED;
        standard_metadata.priority = priority;
        truncate((bit<32>)size_bytes);
    }

    table trim_profile {
        key = { }
        actions = {
            trim_to;
        }
        default_action = trim_to(128, 20, 7);
    }

    apply {
        trimmed.count((bit<32>)(standard_metadata.egress_spec ++ meta.traffic_class));
        trim_profile.apply();
    }
}
