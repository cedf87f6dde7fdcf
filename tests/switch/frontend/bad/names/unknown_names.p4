#include <core.p4>
#include <v1model.p4>
#define WRITE_A hrd.data.a = 1
header data_t { bit<8> a; }
struct headers_t { data_t data; dat_t more; }
control Other(inout headers_t hdr, inout standard_metadata_t sm) {
    const bit<8> LIMIT = 9;
    action drop() { mark_to_drop(sm); }
    table t {
        key = { hdr.data.a: exakt; }
        actions = { dorp; LIMIT; }
    }
    apply {
        WRITE_A;
        frobnicate(hdr);
        mark_to_dorp(sm);
        unknown_t x;
        hdr.data.a = LIMITS;
    }
}
