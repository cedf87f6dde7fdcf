#include "../common.p4"
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    table t {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
    }
    apply {
        if (hdr.data.b == 1) {
            t.apply();
            meta.value = 1;
        } else {
            t.apply();
            meta.value = 2;
        }
    }
}
V1Switch(MyParser(), MyVerify(), Other(), MyEgress(), MyCompute(), MyDeparser()) main;
