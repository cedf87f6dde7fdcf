// Lab 4: the program around the student's controls `Trim` (ingress) and `Settle` (egress).
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
    Trim() trim;

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action drop() {
        mark_to_drop(standard_metadata);
    }

    table lab_ports {
        key = {
            hdr.ipv6.dst_addr: lpm;
        }
        actions = {
            to_port;
            drop;
        }
        const default_action = drop();
        size = 64;
    }

    apply {
        standard_metadata.priority = hdr.ipv6.isValid() && hdr.ipv6.dscp == 10 ? 3w0 : 3w7;
        if (lab_ports.apply().hit && hdr.ipv6.isValid()) {
            trim.apply(hdr, meta, standard_metadata);
        }
    }
}

control LabEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Settle() settle;
    apply {
        settle.apply(hdr, meta, standard_metadata);
    }
}

V1Switch(PacketParser(), NoCheck(), LabIngress(), LabEgress(), NoCheck(), PacketDeparser()) main;
