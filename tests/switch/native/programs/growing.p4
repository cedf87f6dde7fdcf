// Each round in egress puts 64 bytes behind the order and sends the frame round again; a checksum covers the whole.
#include "../../blocks.p4"

header order_t { bit<8> rounds; bit<8> grow; bit<16> checksum; }
header filler_t { bit<128> a; bit<128> b; bit<128> c; bit<128> d; }
struct headers_t { order_t order; filler_t filler; }

struct metadata_t { }

PARSER_OF(order, P, headers_t, metadata_t)
EMPTY_CHECKSUM(V, headers_t, metadata_t)

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { standard_metadata.egress_spec = 2; }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.order.grow == 1) {
            hdr.filler.setValid();
        }
        if (hdr.order.rounds > 0) {
            hdr.order.rounds = hdr.order.rounds - 1;
            recirculate_preserving_field_list(0);
        }
    }
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply { update_checksum_with_payload(true, { hdr.order.rounds, hdr.order.grow }, hdr.order.checksum, HashAlgorithm.csum16); }
}

DEPARSER(D, headers_t)

V1Switch(P(), V(), I(), E(), C(), D()) main;
