// Looking ahead: at parts, at structures, in keys and under conditions. What is looked at must be there as a whole.
#include "../../blocks.p4"

header choice_t { bit<8> way; }
header seen_t { bit<8> short; bit<32> value; }
struct small_t { bit<4> high; bit<7> middle; bool low; bit<8> last; }
struct large_t { bit<64> first; bit<64> second; bit<16> third; bit<12> fourth; }
struct headers_t { seen_t seen; choice_t choice; }
struct metadata_t { bit<32> value; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.choice);
        transition select(hdr.choice.way) {
            1: high_part;
            2: low_part;
            3: member;
            4: members;
            5: large;
            6: key;
            7: part_of_key;
            8: conditional;
            9: not_asked;
            default: accept;
        }
    }
    state high_part {
        meta.value = (bit<32>)packet.lookahead<bit<24>>()[23:12];
        transition accept;
    }
    state low_part {
        meta.value = (bit<32>)packet.lookahead<bit<24>>()[11:0];
        transition accept;
    }
    state member {
        meta.value = (bit<32>)packet.lookahead<small_t>().high;
        transition accept;
    }
    state members {
        small_t small = packet.lookahead<small_t>();
        meta.value = 12w0 ++ small.high ++ (small.low ? 8w1 : 8w2) ++ (bit<8>)small.middle;
        transition accept;
    }
    state large {
        large_t large = packet.lookahead<large_t>();
        meta.value = large.second[11:0] ++ large.third[15:8] ++ large.fourth;
        transition accept;
    }
    state key {
        transition select(packet.lookahead<bit<12>>(), packet.lookahead<bit<8>>()) {
            (0x010, _): found;
            (_, 2): found;
            default: accept;
        }
    }
    state part_of_key {
        transition select(packet.lookahead<bit<32>>()[31:24]) {
            1: found;
            default: accept;
        }
    }
    state conditional {
        // Only where the first byte asks for it.
        if (packet.lookahead<bit<8>>() == 1 && packet.lookahead<bit<24>>()[7:0] == 3) {
            meta.value = 77;
        }
        transition accept;
    }
    state not_asked {
        meta.value = packet.lookahead<bit<8>>() == 1 ? packet.lookahead<bit<32>>() : 32w9;
        transition accept;
    }
    state found {
        meta.value = 1;
        transition accept;
    }
}

EMPTY_CHECKSUM(V, headers_t, metadata_t)

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        hdr.seen.setValid();
        hdr.seen.short = 0;
        if (sm.parser_error == error.PacketTooShort) {
            hdr.seen.short = 1;
        }
        hdr.seen.value = meta.value;
    }
}

EMPTY_CONTROL(E, headers_t, metadata_t)
EMPTY_CHECKSUM(C, headers_t, metadata_t)
DEPARSER(D, headers_t)

V1Switch(P(), V(), I(), E(), C(), D()) main;
