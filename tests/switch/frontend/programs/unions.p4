// A header union, a header with a varbit field, both copied, and one checksum over parts and payload.
#include "common.p4"

header short_t { bit<8> value; }
header long_t { bit<16> value; bit<16> sum; }
header_union number_t { short_t small; long_t large; }
header options_t { bit<8> length; varbit<64> data; }
struct metadata_t { }
struct headers_t { ethernet_t ethernet; number_t number; options_t options; options_t copy; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            1: small;
            2: large;
            3: options;
            default: accept;
        }
    }
    EXTRACT(small, number.small, accept)
    EXTRACT(large, number.large, accept)
    state options {
        packet.extract(hdr.options, (bit<32>)packet.lookahead<bit<8>>() * 8);
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        if (hdr.number.small.isValid()) {
            bit<16> wide = (bit<16>)hdr.number.small.value;
            hdr.number.large.setValid();
            hdr.number.large.value = wide + 1;
            hdr.number.large.sum = 0;
        } else if (hdr.number.isValid()) {
            hdr.number.large.value = hdr.number.large.value + 2;
        }
        if (hdr.options.isValid()) { hdr.copy = hdr.options; }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(hdr.number.large.isValid(), { hdr.number.large.value }, hdr.number.large.sum,
                                     HashAlgorithm.csum16);
    }
}
DEPARSER(MyDeparser, headers_t)
SWITCH;
