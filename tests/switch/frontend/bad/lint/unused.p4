#include "../common.p4"
parser Parses(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.data);
        transition select(hdr.data.a) {
            1: next;
            2 &&& 3: accept;
        }
    }
    state next {
        transition select(hdr.data.b[0:0]) {
            0: accept;
            1: accept;
        }
    }
    state forgotten { transition accept; }
}
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action unused() { meta.value = 1; }
    action listed() { meta.value = 2; }
    action called() { meta.value = 3; }
    table never_applied {
        key = { hdr.data.a: exact; }
        actions = { listed; NoAction; }
    }
    apply { called(); }
}
V1Switch(Parses(), MyVerify(), Other(), MyEgress(), MyCompute(), MyDeparser()) main;
