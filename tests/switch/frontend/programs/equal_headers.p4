// Equality of headers: two invalid headers are equal, an invalid and a valid one are not (specification, section 8.17).
#include "../../blocks.p4"

header kind_t { bit<8> kind; }
header item_t { bit<8> value; }
struct pair_t { item_t x; item_t y; }
header text_t { bit<8> bits; varbit<32> text; }
struct headers_t { kind_t kind; item_t x; item_t y; item_t[2] row; text_t a; text_t b; kind_t result; }
struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            1: only_x;
            2: only_y;
            3: both;
            4: row;
            5: texts;
            default: accept;
        }
    }
    EXTRACT(only_x, x, accept)
    EXTRACT(only_y, y, accept)
    EXTRACT(both, x, only_y)
    state row {
        packet.extract(hdr.row.next);
        packet.extract(hdr.row.next);
        transition accept;
    }
    state texts {
        packet.extract(hdr.a, (bit<32>)packet.lookahead<bit<8>>());
        packet.extract(hdr.b, (bit<32>)packet.lookahead<bit<8>>());
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.result.setValid();
        hdr.result.kind = 0;
        if (hdr.x == hdr.y) {
            hdr.result.kind = hdr.result.kind | 1;
        }
        if (hdr.x != hdr.y) {
            hdr.result.kind = hdr.result.kind | 2;
        }
        pair_t same;
        pair_t swapped;
        same.x = hdr.x;
        same.y = hdr.y;
        swapped.x = hdr.y;
        swapped.y = hdr.x;
        if (same == swapped) {
            hdr.result.kind = hdr.result.kind | 4;
        }
        item_t[2] turned;
        turned[0] = hdr.row[1];
        turned[1] = hdr.row[0];
        if (turned == hdr.row) {
            hdr.result.kind = hdr.result.kind | 8;
        }
        if (hdr.a.isValid() && hdr.a.text == hdr.b.text) {
            hdr.result.kind = hdr.result.kind | 16;
        }
        if (hdr.a.isValid() && hdr.a.text != hdr.b.text) {
            hdr.result.kind = hdr.result.kind | 32;
        }
        sm.egress_spec = 2;
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.result); } }
V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
