// Every way to make a second packet, chosen by the packet itself, so that random frames reach them all.
// Only new packets are multicast and cloned in ingress, and rounds are few, or copies would breed without end.
#include "../../blocks.p4"

header order_t { bit<8> verb; bit<8> argument; bit<8> left; bit<16> tag; }
header extra_t { bit<32> stamp; bit<16> length; bit<16> origin; }
struct headers_t { order_t order; extra_t extra; }

struct metadata_t {
    @field_list(1)
    bit<16> tag;
    @field_list(1, 2)
    bit<8> rounds;
    bit<8> lost;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.order);
        transition select(hdr.order.verb[7:7]) {
            1: extra;
            default: accept;
        }
    }
    EXTRACT(extra, extra, accept)
}

EMPTY_CHECKSUM(V, headers_t, metadata_t)

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(8) kinds;

    apply {
        bit<32> seen;
        kinds.read(seen, standard_metadata.instance_type & 7);
        kinds.write(standard_metadata.instance_type & 7, seen + 1);
        meta.tag = hdr.order.tag;
        meta.lost = 77;
        standard_metadata.egress_rid = hdr.order.tag;
        standard_metadata.egress_spec = (bit<9>)(hdr.order.argument & 3);
        standard_metadata.priority = hdr.order.argument[7:5];
        if (hdr.order.verb[0:0] == 1 && standard_metadata.instance_type == 0) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>)(hdr.order.argument & 3), 1);
        }
        if (hdr.order.verb[1:1] == 1 && standard_metadata.instance_type == 0) {
            standard_metadata.mcast_grp = (bit<16>)(hdr.order.left & 3);
        }
        if (hdr.order.verb[2:2] == 1 && meta.rounds < (hdr.order.left & 7)) {
            meta.rounds = meta.rounds + 1;
            resubmit_preserving_field_list(2);
        }
        if (hdr.order.verb[3:3] == 1) {
            truncate((bit<32>)hdr.order.left);
        }
        if (hdr.order.verb == 0xff && hdr.order.argument == 0xff) {
            mark_to_drop(standard_metadata);
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) left_by;

    apply {
        if (hdr.order.verb[4:4] == 1 && standard_metadata.instance_type != 2) {
            clone_preserving_field_list(CloneType.E2E, (bit<32>)(hdr.order.left & 3), 1);
        }
        if (hdr.order.verb[5:5] == 1 && hdr.order.left > 0 && hdr.order.left < 4) {
            hdr.order.left = hdr.order.left - 1;
            recirculate_preserving_field_list(1);
        }
        if (hdr.order.verb[6:6] == 1) {
            if (hdr.extra.isValid()) {
                hdr.extra.setInvalid();
            } else {
                hdr.extra.setValid();
                hdr.extra.stamp = (bit<32>)standard_metadata.egress_global_timestamp;
                hdr.extra.length = (bit<16>)standard_metadata.packet_length;
                hdr.extra.origin = standard_metadata.ingress_port ++ standard_metadata.egress_rid[6:0];
            }
        }
        hdr.order.tag = meta.tag ^ (meta.rounds ++ meta.lost) ^ (bit<16>)standard_metadata.enq_qdepth
            ^ (bit<16>)standard_metadata.deq_qdepth ^ (bit<16>)standard_metadata.deq_timedelta;
        left_by.count((bit<32>)standard_metadata.egress_port);
    }
}

EMPTY_CHECKSUM(C, headers_t, metadata_t)

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.extra);
        packet.emit(hdr.order);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
