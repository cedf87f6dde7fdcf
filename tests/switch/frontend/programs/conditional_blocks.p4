// Where p4c differs. It refuses conditions around a checksum, where they join its own, and around an emit that implies
// them; and it lets a select pass that fits no case, which the language has end with error.NoMatch.
#include "common.p4"

header word_t { bit<16> value; bit<16> sum; }
struct metadata_t { }
struct headers_t { word_t first; word_t second; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.first);
        if (hdr.first.value[0:0] == 1) {
            packet.extract(hdr.second);
        }
        transition select(hdr.first.value[15:8]) {
            0: accept;
        }
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = sm.parser_error == error.NoMatch ? 9w3 : 9w2; }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.second.isValid()) {
            update_checksum(hdr.second.value != 0, { hdr.second.value }, hdr.second.sum, HashAlgorithm.csum16);
        } else {
            update_checksum(true, { hdr.first.value }, hdr.first.sum, HashAlgorithm.csum16);
        }
    }
}
control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.first);
        if (hdr.second.isValid()) { packet.emit(hdr.second); }
    }
}
SWITCH;
