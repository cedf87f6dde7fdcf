#include "../common.p4"
parser Parses(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_port = 3;
        sm.egress_spec = 3;
        sm.mcast_grp = 1;
        hdr.data.a = 1;
    }
}
control Egress2(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action port(bit<9> p) { sm.egress_spec = p; }
    table t { key = { hdr.data.a: exact; } actions = { port; NoAction; } }
    apply {
        t.apply();
        sm.egress_port = 3;
        sm.mcast_grp = 1;
        if (hdr.data.a == 1) { sm.egress_spec = 511; }
        if (hdr.data.a == 2) { mark_to_drop(sm); }
    }
}
control Deparses(packet_out packet, in headers_t hdr) { apply { } }
V1Switch(Parses(), MyVerify(), Other(), Egress2(), MyCompute(), Deparses()) main;
