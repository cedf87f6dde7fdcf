// A header stack parsed to its bottom mark, popped at each hop, pushed on demand.
#include "common.p4"

#define HOPS 4
const bit<16> TYPE_ROUTE = 0x1234;

header hop_t {
    bit<1> bottom;
    bit<15> port;
}
struct headers_t { ethernet_t ethernet; hop_t[HOPS] hops; ipv4_t ipv4; }
struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_ROUTE: hop; default: accept; }
    }
    state hop {
        packet.extract(hdr.hops.next);
        transition select(hdr.hops.last.bottom) {
            1: ipv4;
            default: hop;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action drop() { mark_to_drop(sm); }
    action next_hop() {
        sm.egress_spec = (port_t)hdr.hops[0].port;
        hdr.hops.pop_front(1);
    }
    action finish() { hdr.ethernet.type = TYPE_IPV4; }
    apply {
        if (hdr.hops[0].isValid() && sm.parser_error == error.NoError) {
            if (hdr.hops[0].bottom == 1) {
                finish();
            }
            if (hdr.hops[0].port == 0x7fff) {
                // A detour: one more hop in front.
                hdr.hops[0].port = 5;
                hdr.hops.push_front(1);
                hdr.hops[0].setValid();
                hdr.hops[0].bottom = 0;
                hdr.hops[0].port = 6;
            }
            next_hop();
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            }
        } else {
            drop();
        }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.hops);
        packet.emit(hdr.ipv4);
    }
}
SWITCH;
