#include "../common.p4"
bit<8> half(in bit<8> x) { if (x > 1) { return x >> 1; } }
void nothing() { return 1; }
bit<8> wrong(in bit<8> x) { return x > 1; }
control Other(inout headers_t hdr, inout metadata_t meta) {
    apply {
        meta.value = half(hdr.data.a, 1);
        meta.value = half(hdr.data.wide);
        meta.value = half(y = 1);
        nothing(1);
        meta.value = nothing();
    }
}
