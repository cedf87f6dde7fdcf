// IPv4 options: variable length skipped by advance, a count that rules a loop, verify with an error of its own.
#include "common.p4"

#define HOPS 2
error { OptionTooShort }
header option_t { bit<1> copied; bit<2> class; bit<5> kind; bit<8> length; }
header count_t { bit<16> count; }
header hop_t { bit<32> switch_id; bit<32> depth; }
struct metadata_t { bit<16> remaining; bit<32> depth; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; option_t option; count_t count; hop_t[HOPS] hops; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.ihl >= 5, error.HeaderTooShort);
        transition select(hdr.ipv4.ihl) { 5: accept; default: option; }
    }
    state option {
        packet.extract(hdr.option);
        verify(hdr.option.length >= 4, error.OptionTooShort);
        transition select(hdr.option.kind) {
            31: count;
            30: skip;
            default: accept;
        }
    }
    state skip {
        packet.advance((bit<32>)(hdr.option.length - 2) << 3);
        transition accept;
    }
    state count {
        packet.extract(hdr.count);
        meta.remaining = hdr.count.count;
        transition select(meta.remaining) { 0: accept; default: hops; }
    }
    state hops {
        packet.extract(hdr.hops.next);
        meta.remaining = meta.remaining - 1;
        meta.depth = hdr.hops.last.depth;
        transition select(meta.remaining) { 0: accept; default: hops; }
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        bit<9> usual = 2;
        sm.egress_spec = meta.depth == 0xffff_ffff ? 4 : usual;
        if (sm.parser_error == error.OptionTooShort) {
            sm.egress_spec = 3;
        } else if (sm.parser_error != error.NoError) {
            mark_to_drop(sm);
        }
    }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action record(bit<32> switch_id) {
        hdr.count.count = hdr.count.count + 1;
        hdr.hops.push_front(1);
        hdr.hops[0].setValid();
        hdr.hops[0].switch_id = switch_id;
        hdr.hops[0].depth = (bit<32>)sm.deq_qdepth;
        hdr.ipv4.ihl = hdr.ipv4.ihl + 2;
        hdr.option.length = hdr.option.length + 8;
        hdr.ipv4.total_length = hdr.ipv4.total_length + 8;
    }
    table recorder {
        actions = { record; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.count.isValid()) { recorder.apply(); }
    }
}
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
