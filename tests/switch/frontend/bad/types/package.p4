#include <core.p4>
#include <v1model.p4>
struct headers_t { }
struct metadata_t { }
struct other_t { bit<8> x; }
parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyIngress(inout headers_t hdr, inout other_t meta, inout standard_metadata_t sm) { apply { } }
control MyEgress(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyCompute(inout headers_t hdr, in metadata_t meta) { apply { } }
control MyDeparser(packet_out packet, in headers_t hdr) { apply { } }
V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyParser()) main;
