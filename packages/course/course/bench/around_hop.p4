// Lab 2: the program around the student's control `Hop`.
#include <core.p4>
#include <v1model.p4>

#include "@PARTS@/types.p4"
#include "@PARTS@/headers.p4"
#include "@PARTS@/parser.p4"
#include "@STUDENT@"
#include "@PARTS@/deparser.p4"

control NoCheck(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LabIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Hop() hop;
    apply {
        hop.apply(hdr, meta, standard_metadata);
    }
}

control LabEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

V1Switch(PacketParser(), NoCheck(), LabIngress(), LabEgress(), NoCheck(), PacketDeparser()) main;
