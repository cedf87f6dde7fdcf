// Lookahead of a header and of its fields, constant entries, an action that calls another with computed arguments.
#include "common.p4"

header sum_t { bit<8> mark; bit<8> op; bit<32> a; bit<32> b; bit<32> result; }
struct headers_t { ethernet_t ethernet; sum_t sum; }
struct metadata_t { bit<8> seen; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(packet.lookahead<sum_t>().mark, packet.lookahead<bit<16>>()[7:0]) {
            (0x50, 0x2a .. 0x2d): sum;
            (0x50, 0x20 &&& 0xf0): sum;
            (0x50, _): accept;
            default: other;
        }
    }
    state sum {
        packet.extract(hdr.sum);
        meta.seen = 1;
        transition accept;
    }
    state other {
        bit<8> next = packet.lookahead<bit<8>>() + 1;
        meta.seen = next;
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action answer(bit<32> result) {
        mac_t keep;
        hdr.sum.result = result;
        keep = hdr.ethernet.dst;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = keep;
        sm.egress_spec = sm.ingress_port;
    }
    action add() { answer(hdr.sum.a + hdr.sum.b); }
    action sub() { answer(hdr.sum.a - hdr.sum.b); }
    action both() { answer(hdr.sum.a & hdr.sum.b); }
    action scaled(bit<32> factor) { answer((hdr.sum.a ^ hdr.sum.b) * factor); }
    action drop() { mark_to_drop(sm); }
    table calculate {
        key = { hdr.sum.op: exact; }
        actions = { add; sub; both; scaled; drop; }
        const default_action = drop();
        const entries = {
            0x2b: add();
            0x2d: sub();
            0x26: both();
            0x2a: scaled(3);
        }
    }
    apply {
        if (hdr.sum.isValid()) {
            calculate.apply();
        } else if (meta.seen != 0) {
            sm.egress_spec = (port_t)(bit<16>)meta.seen;
        } else {
            drop();
        }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
