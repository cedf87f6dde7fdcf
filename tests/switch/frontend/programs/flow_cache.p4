// Packet-in and packet-out, a clone that keeps metadata, enums with values, a switch on a value, a field written in part.
#include "common.p4"

#define CPU_PORT 510
const int SESSION = 57;
const int KEPT = 1;

enum bit<8> opcode_t { NOTHING = 0, SEND_TO = 1 }
enum bit<8> reason_t { UNKNOWN_FLOW = 1, BAD_OPCODE = 2 }

@controller_header("packet_out")
header packet_out_t { opcode_t opcode; bit<8> reserved; bit<32> operand; }
@controller_header("packet_in")
header packet_in_t { bit<16> input_port; reason_t reason; opcode_t opcode; }
struct metadata_t {
    @field_list(KEPT) port_t ingress_port;
    @field_list(KEPT) reason_t reason;
    @field_list(KEPT) opcode_t opcode;
}
struct headers_t { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; ipv4_t ipv4; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        transition select(sm.ingress_port) {
            CPU_PORT: controller;
            default: ethernet;
        }
    }
    EXTRACT(controller, packet_out, accept)
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_IPV4: ipv4; default: accept; }
    }
    EXTRACT(ipv4, ipv4, accept)
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    counter(64, CounterType.packets_and_bytes) from_controller;

    action drop() { mark_to_drop(sm); }
    action punt(reason_t reason, opcode_t opcode) {
        sm.egress_spec = CPU_PORT;
        meta.ingress_port = sm.ingress_port;
        meta.reason = reason;
        meta.opcode = opcode;
    }
    action copy(reason_t reason, opcode_t opcode) {
        clone_preserving_field_list(CloneType.I2E, SESSION, KEPT);
        meta.ingress_port = sm.ingress_port;
        meta.reason = reason;
        meta.opcode = opcode;
    }
    action cached(port_t port, bit<1> decrement, bit<4> high, mac_t dst) {
        sm.egress_spec = port;
        hdr.ipv4.ttl = (decrement == 1) ? (hdr.ipv4.ttl |-| 1) : hdr.ipv4.ttl;
        hdr.ipv4.dscp[5:2] = high;
        hdr.ethernet.dst = dst;
    }
    action unknown() {
        copy(reason_t.UNKNOWN_FLOW, opcode_t.NOTHING);
        drop();
    }
    table flows {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.src: exact;
            hdr.ipv4.dst: exact;
        }
        actions = { cached; drop; unknown; }
        default_action = unknown();
        support_timeout = true;
        size = 512;
    }
    apply {
        if (hdr.packet_out.isValid()) {
            from_controller.count((bit<32>)hdr.packet_out.operand[5:0]);
            switch (hdr.packet_out.opcode) {
                opcode_t.SEND_TO: {
                    sm.egress_spec = (port_t)hdr.packet_out.operand;
                    hdr.packet_out.setInvalid();
                }
                default: {
                    punt(reason_t.BAD_OPCODE, hdr.packet_out.opcode);
                    hdr.packet_out.setInvalid();
                }
            }
        } else if (hdr.ipv4.isValid()) {
            flows.apply();
        } else {
            drop();
        }
    }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action describe(reason_t reason, port_t port) {
        hdr.packet_in.setValid();
        hdr.packet_in.input_port = (bit<16>)port;
        hdr.packet_in.reason = reason;
        hdr.packet_in.opcode = meta.opcode;
    }
    apply {
        if (sm.egress_port == CPU_PORT) {
            describe(meta.reason, meta.ingress_port);
        }
    }
}
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
