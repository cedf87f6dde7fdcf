// Flows spread over next hops: by hash, and by an action selector with weights.
#include "common.p4"

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { bit<14> choice; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_IPV4: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    @max_group_size(16) action_selector(HashAlgorithm.crc16, 64, 16) spread;
    action_profile(32) shared;

    action drop() { mark_to_drop(sm); }
    action choose(bit<16> base, bit<32> count) {
        hash(meta.choice, HashAlgorithm.crc16, base, { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol }, count);
    }
    action leave(port_t port) { sm.egress_spec = port; }
    action mark(bit<6> dscp) { hdr.ipv4.dscp = dscp; }
    table groups {
        key = { hdr.ipv4.dst: lpm; }
        actions = { choose; drop; }
        default_action = drop();
    }
    table hops {
        key = { meta.choice: exact; }
        actions = { leave; drop; NoAction; }
        default_action = NoAction();
    }
    table members {
        key = {
            hdr.ipv4.ttl: exact;
            hdr.ipv4.src: selector;
            hdr.ipv4.id: selector;
        }
        actions = { leave; NoAction; }
        implementation = spread;
    }
    table marks {
        key = { hdr.ipv4.protocol: exact; }
        actions = { mark; NoAction; }
        implementation = shared;
        size = 64;
    }
    apply {
        if (hdr.ipv4.isValid()) {
            groups.apply();
            hops.apply();
            members.apply();
            marks.apply();
        }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}
SWITCH;
