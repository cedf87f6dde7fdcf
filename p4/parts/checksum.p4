// IPv6 has no header checksum, and UDP's is the endpoints' business (RFC 8986 leaves everything inside untouched).

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// Of an ICMPv6 message that this switch sends (RFC 4443 section 2.3), with IPv6's pseudo-header (RFC 8200 section 8.1).
#define ICMPV6_SUMMED { hdr.ipv6.src_addr, hdr.ipv6.dst_addr, 16w0, hdr.ipv6.payload_length, 24w0, hdr.ipv6.next_header, \
                        hdr.answer.icmp_type, hdr.answer.code, hdr.answer.unused, \
                        hdr.answer.version, hdr.answer.dscp, hdr.answer.ecn, hdr.answer.flow_label, \
                        hdr.answer.payload_length, hdr.answer.next_header, hdr.answer.hop_limit, \
                        hdr.answer.src_addr, hdr.answer.dst_addr, \
                        hdr.udp.src_port, hdr.udp.dst_port, hdr.udp.length, hdr.udp.checksum }

control IcmpChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(meta.quote == QUOTE_PACKET,
                                     ICMPV6_SUMMED, hdr.answer.checksum, HashAlgorithm.csum16);
        update_checksum(meta.quote == QUOTE_HEADERS,
                        ICMPV6_SUMMED, hdr.answer.checksum, HashAlgorithm.csum16);
    }
}
