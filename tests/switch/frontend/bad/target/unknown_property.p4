#include "../common.p4"
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    table t {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
        idle_timeout = true;
    }
    apply { t.apply(); }
}
