// A header put in and taken out, counted on both sides.
#include "common.p4"

const bit<16> TYPE_TUNNEL = 0x1212;

header tunnel_t { bit<16> inner_type; bit<16> id; }
struct headers_t { ethernet_t ethernet; tunnel_t tunnel; }
struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_TUNNEL: tunnel;
            default: accept;
        }
    }
    EXTRACT(tunnel, tunnel, accept)
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(8, CounterType.packets_and_bytes) entered;
    counter(8, CounterType.packets) left;

    action put(bit<16> id) {
        hdr.tunnel.setValid();
        hdr.tunnel.id = id;
        hdr.tunnel.inner_type = hdr.ethernet.type;
        hdr.ethernet.type = TYPE_TUNNEL;
        entered.count((bit<32>)hdr.tunnel.id);
    }
    action pass(port_t port) { sm.egress_spec = port; }
    action take(port_t port) {
        sm.egress_spec = port;
        hdr.ethernet.type = hdr.tunnel.inner_type;
        hdr.tunnel.setInvalid();
        left.count((bit<32>)hdr.tunnel.id);
    }
    action drop() { mark_to_drop(sm); }
    table entrance {
        key = { hdr.ethernet.dst: exact; }
        actions = { put; NoAction; }
        default_action = NoAction();
    }
    table ends {
        key = { hdr.tunnel.id: exact; }
        actions = { pass; take; drop; }
        default_action = drop();
        size = 16;
    }
    apply {
        if (!hdr.tunnel.isValid()) { entrance.apply(); }
        if (hdr.tunnel.isValid()) { ends.apply(); }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
