#include "../common.p4"
struct pair_t { bit<8> a; bit<8> b; }
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<pair_t>(4) pairs;
    direct_meter<bit<2>>(MeterType.bytes) colors;
    action one() { colors.read(meta.value[1:0]); }
    action two(inout bit<8> x) { x = 1; }
    table t {
        key = { hdr.data.a: exact; }
        actions = { one; two; }
        meters = colors;
    }
    table u {
        key = { hdr.data.a: selector; }
        actions = { NoAction; }
    }
    table v {
        key = { hdr.data.a + meta.value: exact; (bit<8>)hdr.data.b: exact; }
        actions = { NoAction; }
    }
    apply {
        t.apply();
        u.apply();
        v.apply();
        data_t[65] long;
        if (long[hdr.data.a].isValid()) { meta.flag = true; }
        meta.flag = (int<8>)hdr.data.a / (int<8>)hdr.data.b == 1;
        @atomic {
            if (meta.flag) { return; }
        }
    }
}
V1Switch(MyParser(), MyVerify(), Other(), MyEgress(), MyCompute(), MyDeparser()) main;
