// Parsers and controls in one another, constructor parameters, functions, copies of headers, returns and exits.
#include "common.p4"

header pair_t { bit<8> a; bit<8> b; }
struct inner_t { pair_t one; pair_t two; }
struct headers_t { ethernet_t ethernet; inner_t inner; pair_t three; }
struct point_t { bit<8> x; bit<8> y; }
struct metadata_t { point_t point; bit<8> steps; }

bit<8> larger(in bit<8> a, in bit<8> b) {
    if (a > b) { return a; }
    return b;
}
void swap(inout bit<8> a, inout bit<8> b) {
    bit<8> keep = a;
    a = b;
    b = keep;
}

parser Pair(packet_in packet, out pair_t pair, inout bit<8> steps)(bit<8> step) {
    state start {
        packet.extract(pair);
        steps = steps + step;
        transition select(pair.a) {
            0xff: more;
            default: accept;
        }
    }
    state more {
        steps = steps + 0x10;
        transition accept;
    }
}
parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Pair(1) by_one;
    Pair(3) by_three;
    state start {
        meta.steps = 0;
        packet.extract(hdr.ethernet);
        by_one.apply(packet, hdr.inner.one, meta.steps);
        by_three.apply(packet, hdr.inner.two, meta.steps);
        if (meta.steps > 4) {
            meta.steps = meta.steps - 2;
        }
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)

control Adder(inout bit<8> value, in bit<8> other)(bit<8> more) {
    action raise(bit<8> by) { value = value + by + other; }
    table steps {
        key = { other: exact; }
        actions = { raise; NoAction; }
        const entries = { 7: raise(more); }
    }
    apply {
        if (other == 0) { return; }
        value = value + 1;
        steps.apply();
    }
}
control Last(inout headers_t hdr, in bit<8> marker) {
    apply {
        if (marker == 0xee) { exit; }
        hdr.three = hdr.inner.one;
        hdr.three.b = marker;
    }
}
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Adder(0x20) far;
    Adder(0x01) near;
    apply {
        sm.egress_spec = 2;
        point_t p = { hdr.inner.one.a, hdr.inner.one.b };
        swap(p.x, p.y);
        meta.point = p;
        meta.point.y = larger(p.x, p.y);
        hdr.inner.one.a = meta.point.x;
        hdr.inner.one.b = meta.point.y;
        far.apply(hdr.inner.two.a, hdr.inner.two.b);
        near.apply(hdr.inner.two.a, hdr.inner.two.a);
        if (hdr.ethernet.type == 0x0bad) { mark_to_drop(sm); return; }
        hdr.ethernet.type = (bit<16>)meta.steps;
        Last.apply(hdr, hdr.inner.two.b);
        hdr.three.a = 0x99;
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
