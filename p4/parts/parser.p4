// Ethernet, IPv6 and, for the ECMP hash, UDP; of ICMPv6 the type. A frame too short for a header leaves that header invalid.

parser PacketParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            NEXT_HEADER_UDP: parse_udp;
            NEXT_HEADER_ICMPV6: peek_icmp;
            default: accept;
        }
    }

    state peek_icmp {
        meta.icmp_type = packet.lookahead<bit<8>>();
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.udp_src_port = hdr.udp.src_port;
        meta.udp_dst_port = hdr.udp.dst_port;
        transition accept;
    }
}
