// A learning switch: unknown senders are told to the controller, unknown receivers are flooded to.
#include "../blocks.p4"

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { }
struct learned_t { bit<48> address; bit<9> port; }

PARSER_OF(ethernet, P, headers_t, metadata_t)
EMPTY_CHECKSUM(V, headers_t, metadata_t)
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action learn() { digest<learned_t>(1, { hdr.ethernet.src, sm.ingress_port }); }
    action forward(bit<9> port) { sm.egress_spec = port; }
    action flood() { sm.mcast_grp = 1; }
    table senders {
        key = { hdr.ethernet.src: exact; }
        actions = { NoAction; learn; }
        default_action = learn();
        size = 1024;
        support_timeout = true;
    }
    table receivers {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; }
        default_action = flood();
        size = 1024;
    }
    apply {
        senders.apply();
        receivers.apply();
    }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { if (sm.egress_port == sm.ingress_port) mark_to_drop(sm); }
}
EMPTY_CHECKSUM(C, headers_t, metadata_t)
DEPARSER(D, headers_t)
V1Switch(P(), V(), I(), E(), C(), D()) main;
