// In-band telemetry: each switch puts a record of the port by which a packet leaves in front of the records of earlier switches.
//
//   IPv6 ─ hop-by-hop options: one option, its count of records ─ newest record ─ … ─ oldest record ─ the packet
//
// A packet that is trimmed loses its records. One that carries records back to their sender (`echo`) gets no others.

const bit<8> NEXT_HEADER_HOP_BY_HOP = 0;
const bit<8> OPTION_TELEMETRY = 0x3e; // for experiments (RFC 4727): skipped by nodes that do not know it, and may change on the way
const bit<8> RECORDS_MAX = 5;
const bit<16> RECORD_BYTES = 16;

header telemetry_t {
    bit<8> next_header;
    bit<8> length; // units of 8 bytes behind the first 8
    bit<8> option;
    bit<8> option_length;
    bit<8> count;
    bit<8> echo;
    bit<16> unused;
}

header record_t {
    bit<32> queue_bytes;
    bit<32> sent_bytes;
    bit<32> time_us;
    bit<32> rate_kbps;
}

header records_t {
    varbit<640> all;
}

struct headers_t {
    ethernet_t ethernet;
    ipv6_t ipv6;
    time_exceeded_t answer;
    telemetry_t telemetry;
    record_t record; // this switch's
    records_t records;
    udp_t udp;
}

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
            NEXT_HEADER_HOP_BY_HOP: parse_telemetry;
            NEXT_HEADER_UDP: parse_udp;
            NEXT_HEADER_ICMPV6: peek_icmp;
            default: accept;
        }
    }

    state parse_telemetry {
        packet.extract(hdr.telemetry);
        transition select(hdr.telemetry.option, hdr.telemetry.echo) {
            (OPTION_TELEMETRY, 0): parse_records;
            default: accept;
        }
    }

    state parse_records {
        packet.extract(hdr.records, (bit<32>)hdr.telemetry.length << 6);
        transition accept;
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

control PacketDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv6);
        packet.emit(hdr.answer);
        packet.emit(hdr.telemetry);
        packet.emit(hdr.record);
        packet.emit(hdr.records);
        packet.emit(hdr.udp);
    }
}

// Before a packet is cut to its headers.
control WithoutRecords(inout headers_t hdr) {
    apply {
        if (hdr.records.isValid()) {
            hdr.ipv6.next_header = hdr.telemetry.next_header;
            hdr.ipv6.payload_length = hdr.ipv6.payload_length - ((bit<16>)hdr.telemetry.length + 1 << 3);
            hdr.telemetry.setInvalid();
            hdr.records.setInvalid();
        }
    }
}

// The queue is what waits behind this packet in its priority, as if all were as long as this one: v1model counts packets.
control Record(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    register<bit<32>>(PORTS) sent_bytes;
    bit<32> sent = 0;
    bit<32> rate_kbps = 0;

    action count_sent(bit<32> kbps, bit<32> overhead_bytes) {
        sent_bytes.read(sent, (bit<32>)standard_metadata.egress_port);
        sent = sent + standard_metadata.packet_length + overhead_bytes;
        sent_bytes.write((bit<32>)standard_metadata.egress_port, sent);
        rate_kbps = kbps;
    }

    action push_record() {
        hdr.record.setValid();
        hdr.record.queue_bytes = (bit<32>)standard_metadata.deq_qdepth * standard_metadata.packet_length;
        hdr.record.sent_bytes = sent;
        hdr.record.time_us = (bit<32>)standard_metadata.egress_global_timestamp;
        hdr.record.rate_kbps = rate_kbps;
        hdr.telemetry.count = hdr.telemetry.count + 1;
        hdr.telemetry.length = hdr.telemetry.length + 2;
        hdr.telemetry.option_length = hdr.telemetry.option_length + (bit<8>)RECORD_BYTES;
        hdr.ipv6.payload_length = hdr.ipv6.payload_length + RECORD_BYTES;
    }

    table link {
        key = {
            standard_metadata.egress_port: exact @name("egress_port");
        }
        actions = {
            count_sent;
            @defaultonly NoAction;
        }
        const default_action = NoAction();
        size = PORTS;
    }

    apply {
        if (link.apply().hit && hdr.records.isValid() && hdr.telemetry.count < RECORDS_MAX && meta.quote == 0) {
            push_record();
        }
    }
}
