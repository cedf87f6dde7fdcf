#include "../common.p4"
const bit<8> FIXED = 3;
control Other(in headers_t hdr, inout metadata_t meta) {
    action set(bit<8> given) { given = 1; }
    apply {
        hdr.data.a = 1;
        hdr.data.setInvalid();
        FIXED = 4;
        random(meta.value + 1, 8w0, 8w9);
    }
}
