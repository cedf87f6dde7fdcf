#include "../common.p4"
header short_t { bit<8> kind; }
header_union option_t { short_t small; data_t large; }
struct options_t { option_t[3] options; }
parser Parses(packet_in packet, out options_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.options.next.small);
        meta.value = hdr.options.last.small.kind;
        packet.extract(hdr.options.next);
        transition accept;
    }
}
control Nothing(inout options_t hdr, inout metadata_t meta) { apply { } }
control Other(inout options_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
    }
}
control Deparses(packet_out packet, in options_t hdr) { apply { } }
V1Switch(Parses(), Nothing(), Other(), Other(), Nothing(), Deparses()) main;
