// A header that is chosen at run time, by an index that the packet carries.
#include "../blocks.p4"

header ask_t { bit<8> index; }
header item_t { bit<8> value; }
struct headers_t { ask_t ask; item_t[3] items; item_t out_; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ask);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        transition accept;
    }
}
EMPTY_CHECKSUM(Verify, headers_t, metadata_t)
control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.out_ = hdr.items[hdr.ask.index];
        standard.egress_spec = 1;
    }
}
EMPTY_CONTROL(E, headers_t, metadata_t)
EMPTY_CHECKSUM(C, headers_t, metadata_t)
control D(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.out_); }
}
V1Switch(P(), Verify(), In(), E(), C(), D()) main;
