// Options of two shapes in a stack of unions: parsed by kind, read by constant index. p4c writes the key that is a
// field of the last union in a way that BMv2 cannot load.
#include "common.p4"

header short_t { bit<8> kind; }
header long_t { bit<8> kind; bit<16> value; }
header_union option_t { short_t small; long_t large; }
struct metadata_t { }
struct headers_t { ethernet_t ethernet; option_t[3] options; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    EXTRACT(start, ethernet, options)
    state options {
        transition select(packet.lookahead<bit<8>>()) {
            1: small;
            2: large;
            default: accept;
        }
    }
    EXTRACT(small, options.next.small, options)
    state large {
        packet.extract(hdr.options.next.large);
        transition select(hdr.options.last.large.value) {
            0xffff: accept;
            default: options;
        }
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        if (hdr.options[1].large.isValid()) {
            hdr.options[1].large.value = hdr.options[1].large.value + 1;
        }
        if (sm.parser_error == error.StackOutOfBounds) {
            sm.egress_spec = 3;
        }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
