#include "../common.p4"
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    bit<8> never;
    bit<8> sometimes;
    bit<8> port;
    bit<8> flagged;
    bit<8> set_by_both;
    action set(bit<8> p) { port = p; }
    table t {
        key = { hdr.data.a: exact; }
        actions = { set; NoAction; }
    }
    apply {
        meta.value = never + 1;
        if (hdr.data.a == 1) { sometimes = 1; set_by_both = 1; flagged = 1; meta.flag = true; } else { set_by_both = 2; }
        meta.value = set_by_both;
        meta.value = sometimes;
        if (meta.flag) { meta.value = flagged; }
        if (t.apply().hit) { meta.value = 3; }
        meta.value = port;
    }
}
V1Switch(MyParser(), MyVerify(), Other(), MyEgress(), MyCompute(), MyDeparser()) main;
