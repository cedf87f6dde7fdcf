// Every operator on the two numbers of the packet, in several widths and signs.
#include "../blocks.p4"

header input_t { bit<32> a; bit<32> b; bit<8> c; bit<8> d; }

header results_t {
    bit<32> sum;
    bit<32> difference;
    bit<32> product;
    bit<32> left;
    bit<32> right;
    bit<32> and_;
    bit<32> or_;
    bit<32> xor_;
    bit<32> not_;
    bit<32> negative;
    bit<8>  saturated_sum;
    bit<8>  saturated_difference;
    bit<8>  signed_sum;
    bit<8>  signed_difference;
    bit<8>  signed_right;
    bit<16> sign_extended;
    bit<16> joined;
    bit<4>  low;
    bit<12> middle;
    bit<32> larger;
    bit<1>  less;
    bit<1>  signed_less;
    bit<1>  equal;
    bit<1>  both;
    bit<1>  either;
    bit<3>  pad;
    bit<64> wide;
    bit<8>  sliced;
    bit<128> huge;
}

struct headers_t { input_t in_; results_t out_; }

struct metadata_t { }

PARSER_OF(in_, P, headers_t, metadata_t)
EMPTY_CHECKSUM(Check, headers_t, metadata_t)

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action compute() {
        hdr.out_.setValid();
        hdr.out_.sum = hdr.in_.a + hdr.in_.b;
        hdr.out_.difference = hdr.in_.a - hdr.in_.b;
        hdr.out_.product = hdr.in_.a * hdr.in_.b;
        hdr.out_.left = hdr.in_.a << hdr.in_.c;
        hdr.out_.right = hdr.in_.a >> hdr.in_.c;
        hdr.out_.and_ = hdr.in_.a & hdr.in_.b;
        hdr.out_.or_ = hdr.in_.a | hdr.in_.b;
        hdr.out_.xor_ = hdr.in_.a ^ hdr.in_.b;
        hdr.out_.not_ = ~hdr.in_.a;
        hdr.out_.negative = -hdr.in_.a;
        hdr.out_.saturated_sum = hdr.in_.c |+| hdr.in_.d;
        hdr.out_.saturated_difference = hdr.in_.c |-| hdr.in_.d;
        hdr.out_.signed_sum = (bit<8>) ((int<8>) hdr.in_.c |+| (int<8>) hdr.in_.d);
        hdr.out_.signed_difference = (bit<8>) ((int<8>) hdr.in_.c |-| (int<8>) hdr.in_.d);
        hdr.out_.signed_right = (bit<8>) ((int<8>) hdr.in_.c >> 2);
        hdr.out_.sign_extended = (bit<16>) (int<16>) (int<8>) hdr.in_.c;
        hdr.out_.joined = hdr.in_.c ++ hdr.in_.d;
        hdr.out_.low = hdr.in_.a[3:0];
        hdr.out_.middle = hdr.in_.a[19:8];
        hdr.out_.larger = hdr.in_.a > hdr.in_.b ? hdr.in_.a : hdr.in_.b;
        hdr.out_.less = (bit<1>) (hdr.in_.a < hdr.in_.b);
        hdr.out_.signed_less = (bit<1>) ((int<8>) hdr.in_.c < (int<8>) hdr.in_.d);
        hdr.out_.equal = (bit<1>) (hdr.in_.c == hdr.in_.d);
        hdr.out_.both = (bit<1>) (hdr.in_.c != 0 && hdr.in_.d != 0);
        hdr.out_.either = (bit<1>) (hdr.in_.c != 0 || hdr.in_.d != 0);
        hdr.out_.wide = (bit<64>) hdr.in_.a * (bit<64>) hdr.in_.b;
        hdr.out_.sliced = 0xff;
        hdr.out_.sliced[5:2] = hdr.in_.c[3:0];
        hdr.out_.huge = hdr.in_.a ++ hdr.in_.b ++ hdr.in_.b ++ hdr.in_.a;
    }

    apply {
        compute();
        standard.egress_spec = 1;
        if (standard.parser_error != error.NoError) {
            mark_to_drop(standard);
        }
    }
}

EMPTY_CONTROL(Out, headers_t, metadata_t)
EMPTY_CHECKSUM(Update, headers_t, metadata_t)
DEPARSER(Emit, headers_t)

V1Switch(P(), Check(), In(), Out(), Update(), Emit()) main;
