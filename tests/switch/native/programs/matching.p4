// Every kind of match, direct counters and meters, action profiles and selectors.
#include "../../blocks.p4"

header key_t { bit<8> a; bit<16> b; bit<32> c; bit<128> d; bit<4> e; bit<4> f; bit<8> result; }
struct headers_t { key_t key; key_t absent; }
struct metadata_t { bit<2> color; bit<8> sum; }

PARSER_OF(key, P, headers_t, metadata_t)
EMPTY_CHECKSUM(V, headers_t, metadata_t)

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) exact_hits;
    direct_counter(CounterType.packets_and_bytes) ternary_hits;
    direct_meter<bit<2>>(MeterType.bytes) lpm_meter;
    meter(4, MeterType.packets) packet_meter;
    action_profile(16) shared;
    action_selector(HashAlgorithm.crc16, 16, 8) chosen;

    action add(bit<8> value) { meta.sum = meta.sum + value; }
    action scale(bit<8> by, bit<128> unused) { meta.sum = meta.sum * by + (bit<8>)unused[70:63]; }

    action add_and_meter(bit<8> value) {
        meta.sum = meta.sum + value;
        lpm_meter.read(meta.color);
    }

    action count_and_add(bit<8> value) {
        meta.sum = meta.sum + value;
        exact_hits.count();
    }

    action rank(bit<8> value) {
        meta.sum = meta.sum ^ value;
        ternary_hits.count();
    }

    action leave() {
        meta.sum = 255;
        exit;
    }

    table exact_table {
        key = { hdr.key.a: exact; hdr.key.e: exact; }
        actions = { count_and_add; }
        default_action = count_and_add(1);
        counters = exact_hits;
        size = 32;
    }

    table lpm_table {
        key = { hdr.key.e: exact; hdr.key.d: lpm; }
        actions = { add_and_meter; NoAction; }
        default_action = NoAction();
        meters = lpm_meter;
        size = 32;
    }

    table ternary_table {
        key = { hdr.key.c: ternary; hdr.key.b: exact; hdr.key.d: ternary; hdr.absent.a: ternary; }
        actions = { rank; leave; }
        counters = ternary_hits;
        size = 32;
    }

    table range_table {
        key = { hdr.key.b: range; hdr.key.f: ternary; hdr.key.a: optional; hdr.absent.isValid(): exact; }
        actions = { add; scale; }
        const default_action = scale(3, 0x8000_0000_0000_0000_0000);
        size = 32;
    }

    table profile_table {
        key = { hdr.key.f: exact; }
        actions = { add; scale; NoAction; }
        implementation = shared;
        size = 16;
    }

    table selector_table {
        key = { hdr.key.e: exact; hdr.key.c: selector; hdr.key.d: selector; hdr.key.f: selector; }
        actions = { add; NoAction; }
        implementation = chosen;
        size = 16;
    }

    table fixed_table {
        key = { hdr.key.a: ternary; }
        actions = { add; scale; }
        const entries = {
            0x10 &&& 0xf0: add(16);
            0x01 &&& 0x0f: scale(2, 0);
            _: add(9);
        }
    }

    apply {
        standard_metadata.egress_spec = 2;
        if (!exact_table.apply().hit) {
            meta.sum = meta.sum + 100;
        }
        lpm_table.apply();
        switch (ternary_table.apply().action_run) {
            rank: { fixed_table.apply(); }
            default: { meta.sum = meta.sum | 0x40; }
        }
        range_table.apply();
        profile_table.apply();
        if (selector_table.apply().hit) {
            meta.sum = meta.sum + 7;
        }
        bit<2> color = 3;
        packet_meter.execute_meter((bit<32>)hdr.key.f, color);
        meta.sum = meta.sum + (bit<8>)color + (bit<8>)meta.color;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { hdr.key.result = meta.sum; }
}

EMPTY_CHECKSUM(C, headers_t, metadata_t)
DEPARSER(D, headers_t)

V1Switch(P(), V(), I(), E(), C(), D()) main;
