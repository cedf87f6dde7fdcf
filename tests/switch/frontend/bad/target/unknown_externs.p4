#include "../common.p4"
extern void encrypt(inout bit<8> x);
extern Cipher { Cipher(bit<8> key); void run(inout bit<8> x); }
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    Cipher(3) cipher;
    table t {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
    }
    apply {
        encrypt(hdr.data.a);
        t.apply();
    }
}
V1Switch(MyParser(), MyVerify(), Other(), MyEgress(), MyCompute(), MyDeparser()) main;
