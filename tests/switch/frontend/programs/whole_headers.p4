// Headers as wholes: compared, copied to an element of a stack that is known at run time only, counted, and logged.
#include "../../blocks.p4"

header item_t { bit<8> kind; bit<8> value; }
struct headers_t { item_t first; item_t second; item_t[3] rest; }
struct metadata_t { bit<8> count; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.second);
        transition more;
    }
    state more {
        packet.extract(hdr.rest.next);
        meta.count = (bit<8>)hdr.rest.lastIndex;
        transition select(hdr.rest.last.kind) { 0: accept; default: more; }
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.first == hdr.second) {
            hdr.rest[meta.count] = hdr.first;
        }
        log_msg("the last of the stack is number {}", { meta.count });
        sm.egress_spec = 2;
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
