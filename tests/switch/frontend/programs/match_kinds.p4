// Every match kind, keys that are validity, slices, masks and sums, entries with priorities, names for the control plane.
#include "common.p4"

header tag_t { bit<3> pri; bit<13> id; }
struct metadata_t { bool tagged; bit<16> port_and_pri; }
struct headers_t { ethernet_t ethernet; tag_t tag; }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) { 0x8100: tag; default: accept; }
    }
    EXTRACT(tag, tag, accept)
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets) hits;
    action leave(port_t port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action set_type(bit<16> type) { hdr.ethernet.type = type; }

    @name("by_everything") @brief("All kinds at once")
    table first {
        key = {
            hdr.tag.isValid(): exact @name("has_tag");
            hdr.ethernet.dst & 0xff: exact @name("last_byte");
            hdr.ethernet.src[47:40]: ternary @name("first_byte");
            hdr.ethernet.type: range;
            sm.ingress_port + 1: optional @name("port_after");
        }
        actions = { leave; @defaultonly drop; }
        const default_action = drop();
        counters = hits;
    }
    table second {
        key = {
            hdr.ethernet.src: lpm;
            meta.tagged: exact;
        }
        actions = { set_type; @tableonly drop; NoAction; }
        const entries = {
            (0x0200_0000_0000 &&& 0xffff_0000_0000, true): set_type(0x1111);
            (_, true): drop();
            (0x0200_0000_0001, false): set_type(0x2222);
        }
    }
    table third {
        key = { hdr.ethernet.type: ternary; }
        actions = { set_type; NoAction; }
        entries = {
            priority = 1: 0x2200 &&& 0xff00: set_type(0x3333);
            priority = 9: 0x2222: set_type(0x4444);
            priority = 5: _: NoAction();
        }
    }
    apply {
        meta.tagged = hdr.tag.isValid();
        first.apply();
        second.apply();
        third.apply();
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
