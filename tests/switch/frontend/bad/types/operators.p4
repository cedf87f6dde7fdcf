#include "../common.p4"
control Other(inout headers_t hdr, inout metadata_t meta) {
    apply {
        hdr.data.a = hdr.data.a + hdr.data.wide;
        hdr.data.a = hdr.data.wide;
        hdr.data.a = hdr.data.a && meta.flag;
        if (hdr.data.a) { }
        meta.flag = 1;
        hdr.data.wide = hdr.data.wide[16:9] ++ hdr.data.a;
        hdr.data.a = hdr.data.a[3:5];
        hdr.data.a = (bit<8>)(int<16>)hdr.data.a;
        hdr.data.a = 1 << hdr.data.b;
        hdr.data.a = hdr.data.a / 0;
        hdr.data.a = !hdr.data.a;
        hdr.data.a = meta.flag ? hdr.data.a : hdr.data.wide;
        hdr.more[2].a = 1;
        hdr.data.a = 256;
        hdr.data.a = NoAction;
        random.extract(hdr.data);
    }
}
