// The rest of a program around a control named Other that is wrong.
#include <core.p4>
#include <v1model.p4>
header data_t { bit<8> a; bit<8> b; bit<16> wide; }
struct headers_t { data_t data; data_t[2] more; }
struct metadata_t { bit<8> value; bool flag; }
parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition accept;
    }
}
control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.data); } }
