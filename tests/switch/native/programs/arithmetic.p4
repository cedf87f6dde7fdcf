// Widths, signs, casts, shifts, slices, stacks, varbit, lookahead, hashes, checksums, registers and random numbers.
#include "../../blocks.p4"

error { TooOdd }
header numbers_t { bit<8> a; bit<8> b; bit<12> c; bit<20> d; bit<128> e; int<8> s; int<16> t; bit<48> w; }
header item_t { bit<7> value; bit<1> last; }
header options_t { bit<8> length; varbit<64> data; }
header sums_t { bit<16> checksum; bit<32> crc; bit<64> mixed; }
struct headers_t { numbers_t numbers; item_t[4] items; options_t options; sums_t sums; }
struct metadata_t { bit<32> drawn; bit<16> ahead; bit<1> bad; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.numbers);
        verify(hdr.numbers.a != 0x13, error.TooOdd);
        transition items;
    }
    state items {
        packet.extract(hdr.items.next);
        transition select(hdr.items.last.last) {
            0: items;
            default: options;
        }
    }
    state options {
        meta.ahead = packet.lookahead<bit<16>>();
        packet.extract(hdr.options, (bit<32>)(packet.lookahead<bit<8>>() & 0x0f) * 8);
        packet.extract(hdr.sums);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.sums.isValid(), { hdr.numbers.c, hdr.numbers.d, hdr.numbers.w }, hdr.sums.checksum,
            HashAlgorithm.csum16);
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<48>>(16) cells;

    apply {
        standard_metadata.egress_spec = 1;
        numbers_t n = hdr.numbers;
        hdr.numbers.a = n.a + n.b;
        hdr.numbers.b = n.a |-| n.b;
        hdr.numbers.c = (n.c << (n.a & 15)) ^ (n.c >> (n.b & 15)) ^ (bit<12>)(n.a |+| n.b);
        hdr.numbers.d = n.d[11:0] ++ n.a;
        hdr.numbers.e = (n.e * (bit<128>)n.w) - ~n.e + ((n.e << 16) >> 7);
        hdr.numbers.s = n.s - 5;
        hdr.numbers.t = (int<16>)n.s * n.t |+| 1000;
        if (n.s < 0 && n.t >= -3) {
            hdr.numbers.w = (bit<48>)(bit<16>)n.t;
        } else if (n.e[127:64] > n.e[63:0] || standard_metadata.checksum_error == 1) {
            hdr.numbers.w[31:8] = n.e[50:27];
        }
        if (standard_metadata.parser_error == error.TooOdd) {
            hdr.numbers.b = 0xee;
        } else if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.numbers.b = 0xdd;
        }
        bit<48> cell;
        cells.read(cell, (bit<32>)n.a & 0x1f);
        cells.write((bit<32>)n.a & 0x1f, cell + n.w);
        random(meta.drawn, (bit<32>)n.a, (bit<32>)n.a + 1000);
        hdr.numbers.d = hdr.numbers.d ^ (bit<20>)meta.drawn ^ (bit<20>)cell;
        if (hdr.items[1].isValid()) {
            hdr.items.push_front(1);
            hdr.items[0].setValid();
            hdr.items[0].value = (bit<7>)meta.ahead;
            hdr.items[0].last = 0;
        }
        if (n.b[0:0] == 1) {
            hdr.items.pop_front(2);
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (!hdr.sums.isValid()) {
            hdr.sums.setValid();
        }
        bit<32> crc;
        bit<16> small;
        bit<16> folded;
        bit<64> same;
        hash(crc, HashAlgorithm.crc32, 32w0, { hdr.numbers.c, hdr.numbers.d, hdr.numbers.e, hdr.items[0].value }, 64w0x1_0000_0000);
        hash(small, HashAlgorithm.crc16, 16w3, { hdr.numbers.e, hdr.numbers.a }, 32w1000);
        hash(folded, HashAlgorithm.xor16, 16w0, { hdr.numbers.w, hdr.numbers.a }, 32w65536);
        hash(same, HashAlgorithm.identity, 64w0, { hdr.numbers.w, hdr.numbers.c }, 64w0xffff_ffff_ffff);
        hdr.sums.crc = crc;
        hdr.sums.mixed = same ^ (small ++ folded ++ 32w0);
    }
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.numbers.isValid(), { hdr.numbers.c, hdr.numbers.d, hdr.numbers.w }, hdr.sums.checksum,
            HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.numbers.a[0:0] == 1, { hdr.numbers.w }, hdr.sums.checksum, HashAlgorithm.csum16);
    }
}

DEPARSER(D, headers_t)

V1Switch(P(), V(), I(), E(), C(), D()) main;
