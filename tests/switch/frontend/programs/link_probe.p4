// Probes that collect a record at each hop: a loop over a count, a stack pushed, egress registers read and written.
#include "common.p4"

#define RECORDS 3
const bit<16> TYPE_PROBE = 0x0812;

header probe_t { bit<8> hops; }
header record_t { bit<1> bottom; bit<7> switch_id; bit<8> port; bit<32> bytes; }
header forward_t { bit<8> port; }
struct remaining_t { bit<8> count; }
struct metadata_t { bit<8> port; remaining_t parsing; }
struct headers_t { ethernet_t ethernet; probe_t probe; record_t[RECORDS] records; forward_t[RECORDS] forwards; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { TYPE_PROBE: probe; default: accept; }
    }
    state probe {
        packet.extract(hdr.probe);
        meta.parsing.count = hdr.probe.hops + 1;
        transition select(hdr.probe.hops) { 0: forwards; default: records; }
    }
    state records {
        packet.extract(hdr.records.next);
        transition select(hdr.records.last.bottom) { 1: forwards; default: records; }
    }
    state forwards {
        packet.extract(hdr.forwards.next);
        meta.parsing.count = meta.parsing.count - 1;
        meta.port = hdr.forwards.last.port;
        transition select(meta.parsing.count) { 0: accept; default: forwards; }
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.probe.isValid()) {
            sm.egress_spec = (port_t)meta.port;
            hdr.probe.hops = hdr.probe.hops + 1;
        } else {
            sm.egress_spec = 2;
        }
    }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(64) bytes_of_port;
    action identify(bit<7> switch_id) { hdr.records[0].switch_id = switch_id; }
    table identity {
        actions = { identify; NoAction; }
        default_action = NoAction();
    }
    apply {
        bit<32> bytes;
        bit<32> now;
        bytes_of_port.read(bytes, (bit<32>)sm.egress_port);
        bytes = bytes + sm.packet_length;
        now = hdr.probe.isValid() ? 0 : bytes;
        bytes_of_port.write((bit<32>)sm.egress_port, now);
        if (hdr.probe.isValid()) {
            hdr.records.push_front(1);
            hdr.records[0].setValid();
            hdr.records[0].bottom = hdr.probe.hops == 1 ? 1w1 : 1w0;
            hdr.records[0].switch_id = 0;
            identity.apply();
            hdr.records[0].port = (bit<8>)sm.egress_port;
            hdr.records[0].bytes = bytes;
        }
    }
}
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
