// A packet whose hop limit is used up is answered: an ICMPv6 Time Exceeded message with code 0 takes its place and is routed to
// its source like any packet (RFC 8986 section 4.1, S06; RFC 4443 section 3.3).
//
// No answer (RFC 4443 section 2.4): to an ICMPv6 error or redirect, to a multicast, to a source that is no single node, and beyond
// the meter. Without an address, which is the table's argument, the switch answers nothing.
//
// The packet is quoted whole if the answer then fits IPv6's minimum MTU. Of a longer one the IPv6 header, and that of UDP, are
// quoted and no payload: v1model's checksum is over all payload, also over what `truncate` cuts off.

control TimeExceeded(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    counter(PORT_CLASSES, CounterType.packets) time_exceeded;
    meter(1, MeterType.packets) time_exceeded_meter;

    action send_time_exceeded(bit<128> src_addr) {
        time_exceeded.count((bit<32>)(standard_metadata.ingress_port ++ meta.traffic_class));
        meta.quote =
            hdr.ipv6.payload_length <= QUOTED_BYTES_MAX &&
            standard_metadata.packet_length == (bit<32>)(ETHERNET_AND_IPV6_BYTES + hdr.ipv6.payload_length) ?
            QUOTE_PACKET : QUOTE_HEADERS;
        hdr.answer.setValid();
        hdr.answer.icmp_type = ICMPV6_TIME_EXCEEDED;
        hdr.answer.code = 0;
        hdr.answer.checksum = 0;
        hdr.answer.unused = 0;
        hdr.answer.version = hdr.ipv6.version;
        hdr.answer.dscp = hdr.ipv6.dscp;
        hdr.answer.ecn = hdr.ipv6.ecn;
        hdr.answer.flow_label = hdr.ipv6.flow_label;
        hdr.answer.payload_length = hdr.ipv6.payload_length;
        hdr.answer.next_header = hdr.ipv6.next_header;
        hdr.answer.hop_limit = hdr.ipv6.hop_limit;
        hdr.answer.src_addr = hdr.ipv6.src_addr;
        hdr.answer.dst_addr = hdr.ipv6.dst_addr;
        hdr.ipv6.dscp = 0;
        hdr.ipv6.ecn = ECN_NOT_CAPABLE;
        hdr.ipv6.flow_label = 0;
        hdr.ipv6.payload_length = TIME_EXCEEDED_BYTES +
            (meta.quote == QUOTE_PACKET ? hdr.ipv6.payload_length : hdr.udp.isValid() ? UDP_BYTES : 0);
        hdr.ipv6.next_header = NEXT_HEADER_ICMPV6;
        hdr.ipv6.hop_limit = 255;
        hdr.ipv6.dst_addr = hdr.ipv6.src_addr;
        hdr.ipv6.src_addr = src_addr;
        truncate((bit<32>)(ETHERNET_AND_IPV6_BYTES + hdr.ipv6.payload_length));
        meta.traffic_class = CLASS_NO_TRIM;
        standard_metadata.priority = 0;
        meta.dropped = false;
    }

    table hop_limit_exceeded {
        key = { }
        actions = {
            send_time_exceeded;
            NoAction;
        }
        default_action = NoAction();
    }

    apply {
        if ((hdr.ipv6.next_header != NEXT_HEADER_ICMPV6 ||
             (meta.icmp_type >= 128 && meta.icmp_type != ICMPV6_REDIRECT)) &&
            hdr.ethernet.dst_addr[40:40] == 0 && hdr.ipv6.dst_addr[127:120] != 0xff &&
            hdr.ipv6.src_addr != 0 && hdr.ipv6.src_addr[127:120] != 0xff) {
            bit<2> color = 0;
            time_exceeded_meter.execute_meter(0, color);
            if (color != METER_RED) {
                hop_limit_exceeded.apply();
            }
        }
    }
}
