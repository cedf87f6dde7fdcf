// Multicast with pruning, E2E clones, recirculation and resubmission that keep different metadata.
#include "common.p4"

header note_t { bit<8> passes; bit<8> kind; }
struct inner_t { @field_list(2) bit<8> deep; }
struct metadata_t {
    @field_list(1, 2) bit<8> passes;
    bit<8> lost;
    inner_t inner;
}
struct headers_t { ethernet_t ethernet; note_t note; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.note);
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action flood() { sm.mcast_grp = 1; }
    action unicast(port_t port) { sm.egress_spec = port; }
    table macs {
        key = { hdr.ethernet.dst: exact; }
        actions = { flood; unicast; }
        const default_action = flood();
    }
    apply {
        if (hdr.note.kind == 1 && meta.passes < 2) {
            meta.passes = meta.passes + 1;
            meta.lost = 9;
            meta.inner.deep = 8;
            resubmit_preserving_field_list(1);
        }
        hdr.note.passes = meta.passes + meta.lost + meta.inner.deep;
        macs.apply();
    }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == sm.ingress_port) {
            mark_to_drop(sm);
            exit;
        }
        if (hdr.note.kind == 2 && meta.passes < 3) {
            meta.passes = meta.passes + 1;
            meta.inner.deep = meta.inner.deep + 16;
            meta.lost = 100;
            recirculate_preserving_field_list(2);
        } else if (hdr.note.kind == 3 && sm.instance_type == 0) {
            clone(CloneType.E2E, 5);
        }
        if (hdr.note.kind == 4) {
            truncate(15);
        }
    }
}
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
