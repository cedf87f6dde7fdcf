#include "../common.p4"
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    @name("same") table one { actions = { NoAction; } }
    @name("same") table two { actions = { NoAction; } }
    @name(".gone") action a() { }
    @name(".gone") action b() { meta.value = 1; }
    table three { actions = { a; b; } }
    apply {
        one.apply();
        two.apply();
        three.apply();
    }
}
V1Switch(MyParser(), MyVerify(), Other(), MyEgress(), MyCompute(), MyDeparser()) main;
