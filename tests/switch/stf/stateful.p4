// Counters, meters, registers, random numbers, hashes and checksums.
#include "../blocks.p4"

header input_t {
    bit<8>  op;        // 0 count, 1 meter by packets, 2 meter by bytes, 3 add to a register, 4 random, 5 hash
    bit<8>  index;
    bit<16> x;
    bit<32> y;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> id;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header tail_t {
    bit<16> checksum;   // over the input header and the payload
}

header output_t {
    bit<32> result;
    bit<32> crc16;
    bit<32> crc32;
    bit<32> csum16;
    bit<32> identity_;
    bit<32> xor16;
    bit<8>  checksum_error;
}

struct headers_t { input_t in_; ipv4_t ipv4; tail_t tail; output_t out_; }

struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.in_);
        transition select(hdr.in_.op) {
            6: with_ipv4;
            7: with_tail;
            default: accept;
        }
    }
    EXTRACT(with_ipv4, ipv4, accept)
    EXTRACT(with_tail, tail, accept)
}

control Check(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length,
            hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
            hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(8, CounterType.packets_and_bytes) seen;
    meter(4, MeterType.packets) packet_meter;
    meter(4, MeterType.bytes) byte_meter;
    register<bit<20>>(16) sums;

    action add_to_register() {
        bit<20> old;
        sums.read(old, (bit<32>) hdr.in_.index);
        old = old + (bit<20>) hdr.in_.y;
        sums.write((bit<32>) hdr.in_.index, old);
        hdr.out_.result = (bit<32>) old;
    }
    action hashes() {
        hash(hdr.out_.crc16, HashAlgorithm.crc16, 32w0, { hdr.in_.x, hdr.in_.y }, 32w0x10000);
        hash(hdr.out_.crc32, HashAlgorithm.crc32, 32w0, { hdr.in_.x, hdr.in_.y }, 64w0x100000000);
        hash(hdr.out_.csum16, HashAlgorithm.csum16, 32w0, { hdr.in_.x, hdr.in_.y }, 32w0x10000);
        hash(hdr.out_.identity_, HashAlgorithm.identity, 32w1000, { hdr.in_.x }, 32w100);
        hash(hdr.out_.xor16, HashAlgorithm.xor16, 32w0, { hdr.in_.x, hdr.in_.y }, 32w0x10000);
    }

    apply {
        if (!hdr.in_.isValid()) {
            mark_to_drop(standard);
            exit;
        }
        hdr.out_.setValid();
        standard.egress_spec = 1;
        if (hdr.in_.op == 0) {
            seen.count((bit<32>) hdr.in_.index);
        } else if (hdr.in_.op == 1) {
            packet_meter.execute_meter((bit<32>) hdr.in_.index, hdr.out_.result);
        } else if (hdr.in_.op == 2) {
            byte_meter.execute_meter((bit<32>) hdr.in_.index, hdr.out_.result);
        } else if (hdr.in_.op == 3) {
            add_to_register();
        } else if (hdr.in_.op == 4) {
            random(hdr.out_.result, (bit<32>) hdr.in_.x, hdr.in_.y);
        } else if (hdr.in_.op == 5) {
            hashes();
        } else if (hdr.in_.op == 6) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
        hdr.out_.checksum_error = (bit<8>) standard.checksum_error;
    }
}

EMPTY_CONTROL(Out, headers_t, metadata_t)

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length,
            hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src,
            hdr.ipv4.dst }, hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.tail.isValid(), { hdr.in_.op, hdr.in_.index, hdr.in_.x, hdr.in_.y },
            hdr.tail.checksum, HashAlgorithm.csum16);
    }
}

DEPARSER(Emit, headers_t)

V1Switch(P(), Check(), In(), Out(), Update(), Emit()) main;
