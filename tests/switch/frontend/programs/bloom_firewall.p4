// Registers as a Bloom filter, hashes of two kinds, a table used only for whether it hits.
#include "common.p4"

#define CELLS 256

header ports_t {
    bit<16> src;
    bit<16> dst;
    bit<7> reserved;
    bit<1> syn;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; ports_t ports; }
struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        packet.extract(hdr.ports);
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<1>>(CELLS) first;
    register<bit<1>>(CELLS) second;
    bit<32> at_first;
    bit<32> at_second;
    bit<1> in_first;
    bit<1> in_second;
    bit<1> outward;

    action drop() { mark_to_drop(sm); }
    action places(ipv4_address_t a, ipv4_address_t b, bit<16> p, bit<16> q) {
        hash(at_first, HashAlgorithm.crc16, (bit<32>)0, { a, b, p, q, hdr.ipv4.protocol }, (bit<32>)CELLS);
        hash(at_second, HashAlgorithm.crc32, (bit<32>)0, { a, b, p, q, hdr.ipv4.protocol }, (bit<32>)CELLS);
    }
    action direction(bit<1> out_) { outward = out_; }
    table sides {
        key = { sm.ingress_port: exact; }
        actions = { direction; NoAction; }
        default_action = NoAction();
    }
    apply {
        outward = 0;
        sm.egress_spec = 9;
        if (hdr.ports.isValid()) {
            if (sides.apply().hit) {
                if (outward == 1) {
                    places(hdr.ipv4.src, hdr.ipv4.dst, hdr.ports.src, hdr.ports.dst);
                    if (hdr.ports.syn == 1) {
                        first.write(at_first, 1);
                        second.write(at_second, 1);
                    }
                } else {
                    places(hdr.ipv4.dst, hdr.ipv4.src, hdr.ports.dst, hdr.ports.src);
                    first.read(in_first, at_first);
                    second.read(in_second, at_second);
                    if (in_first != 1 || in_second != 1) { drop(); }
                }
            }
        }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}
SWITCH;
