#include "../common.p4"
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    table t {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
        idle_timeout = true;
    }
    table u {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
        support_timeout = true;
    }
    apply { t.apply(); u.apply(); }
}
V1Switch(MyParser(), MyVerify(), Other(), MyEgress(), MyCompute(), MyDeparser()) main;
