// Ports 1 and 2 are joined; nothing is parsed, nothing is changed.
#include <core.p4>
#include <v1model.p4>

struct headers_t { }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start { transition accept; }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { standard_metadata.egress_spec = 3 - standard_metadata.ingress_port; }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
