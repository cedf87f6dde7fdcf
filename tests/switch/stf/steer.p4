// A packet says what shall be done with it, and comes out telling what the switch knew about it.
#include "../blocks.p4"

header steer_t {
    bit<8>  op;          // see the constants
    bit<16> port;        // where to
    bit<8>  priority;
    bit<16> arg;         // group, session or length
}

header report_t {
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<32> instance_type;
    bit<32> packet_length;
    bit<16> rid;
    bit<32> enq_qdepth;
    bit<32> deq_qdepth;
    bit<48> ingress_us;
    bit<48> egress_us;
    bit<32> enq_us;
    bit<32> waited_us;
    bit<32> kept;        // metadata in the field list
    bit<32> lost;        // metadata outside of it
    bit<32> parser_error;
}

const bit<8> FORWARD = 0;
const bit<8> MULTICAST = 1;
const bit<8> CLONE_INGRESS = 2;
const bit<8> CLONE_EGRESS = 3;
const bit<8> RESUBMIT = 4;
const bit<8> RECIRCULATE = 5;
const bit<8> TRUNCATE = 6;
const bit<8> DROP_INGRESS = 7;
const bit<8> DROP_EGRESS = 8;
const bit<8> RECIRCULATE_ALWAYS = 9;
const bit<8> CLONE_ALWAYS = 10;
const bit<8> EXIT = 11;
const bit<8> RESUBMIT_ALWAYS = 12;
const bit<8> TRUNCATE_MULTICAST = 13;
const bit<8> SET_RID = 14;

struct headers_t { steer_t steer; report_t report; }

struct metadata_t {
    @field_list(1)
    bit<32> kept;
    bit<32> lost;
}

PARSER_OF(steer, P, headers_t, metadata_t)
EMPTY_CHECKSUM(Check, headers_t, metadata_t)

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (!hdr.steer.isValid()) {
            mark_to_drop(standard);
            exit;
        }
        standard.egress_spec = (bit<9>) hdr.steer.port;
        standard.priority = (bit<3>) hdr.steer.priority;
        meta.kept = meta.kept + 1;
        meta.lost = meta.lost + 1;
        if (hdr.steer.op == MULTICAST || hdr.steer.op == TRUNCATE_MULTICAST) {
            standard.mcast_grp = hdr.steer.arg;
        }
        if (hdr.steer.op == CLONE_INGRESS && standard.instance_type == 0) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>) hdr.steer.arg, 1);
        }
        if (hdr.steer.op == RESUBMIT && standard.instance_type == 0) {
            resubmit_preserving_field_list(1);
        }
        if (hdr.steer.op == RESUBMIT_ALWAYS) {
            resubmit_preserving_field_list(1);
        }
        if (hdr.steer.op == TRUNCATE || hdr.steer.op == TRUNCATE_MULTICAST) {
            truncate((bit<32>) hdr.steer.arg);
        }
        if (hdr.steer.op == DROP_INGRESS) {
            mark_to_drop(standard);
        }
        if (hdr.steer.op == SET_RID) {
            standard.egress_rid = hdr.steer.arg;
        }
        if (hdr.steer.op == EXIT) {
            exit;
        }
        hdr.steer.arg = hdr.steer.arg + 0x100;
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(64, CounterType.packets_and_bytes) left_by;

    apply {
        left_by.count((bit<32>) standard.egress_port);
        if (hdr.steer.op == CLONE_EGRESS && standard.instance_type == 0) {
            clone_preserving_field_list(CloneType.E2E, (bit<32>) (hdr.steer.arg - 0x100), 1);
        }
        if (hdr.steer.op == CLONE_ALWAYS) {
            clone_preserving_field_list(CloneType.E2E, 1, 1);
        }
        // The op changes on the way, so that the packet goes round once.
        if (hdr.steer.op == RECIRCULATE) {
            recirculate_preserving_field_list(1);
            hdr.steer.op = FORWARD;
            meta.kept = meta.kept + 10;
        } else {
            if (hdr.steer.op == RECIRCULATE_ALWAYS) {
                recirculate_preserving_field_list(1);
            } else {
                hdr.report.setValid();
                hdr.report.ingress_port = (bit<16>) standard.ingress_port;
                hdr.report.egress_port = (bit<16>) standard.egress_port;
                hdr.report.instance_type = standard.instance_type;
                hdr.report.packet_length = standard.packet_length;
                hdr.report.rid = standard.egress_rid;
                hdr.report.enq_qdepth = (bit<32>) standard.enq_qdepth;
                hdr.report.deq_qdepth = (bit<32>) standard.deq_qdepth;
                hdr.report.ingress_us = standard.ingress_global_timestamp;
                hdr.report.egress_us = standard.egress_global_timestamp;
                hdr.report.enq_us = standard.enq_timestamp;
                hdr.report.waited_us = standard.deq_timedelta;
                hdr.report.kept = meta.kept;
                hdr.report.lost = meta.lost;
                hdr.report.parser_error = (bit<32>) (standard.parser_error == error.NoError ? 32w0 : 32w1);
            }
        }
        if (hdr.steer.op == DROP_EGRESS) {
            mark_to_drop(standard);
        }
    }
}

EMPTY_CHECKSUM(Update, headers_t, metadata_t)
DEPARSER(Emit, headers_t)

V1Switch(P(), Check(), In(), Out(), Update(), Emit()) main;
