// Tables of every match kind, and what follows a hit, a miss or an action.
#include "../blocks.p4"

header keys_t {
    bit<8>  kind;       // which table: 0 exact, 1 lpm, 2 ternary, 3 range, 4 optional, 5 selector, 6 profile, 7 constant
    bit<32> a;
    bit<16> b;
    bit<8>  c;
}

header verdict_t { bit<8> hit; bit<16> value; bit<8> colour; bit<8> after; }
struct headers_t { keys_t keys; verdict_t verdict; }
struct metadata_t { bit<8> colour; }

PARSER_OF(keys, P, headers_t, metadata_t)
EMPTY_CHECKSUM(Check, headers_t, metadata_t)

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) exact_counter;
    direct_meter<bit<8>>(MeterType.packets) exact_meter;

    action set_value(bit<16> value) { hdr.verdict.value = value; }
    action add_value(bit<16> value) { hdr.verdict.value = hdr.verdict.value + value; }
    action drop() { mark_to_drop(standard); }
    action metered(bit<16> value) {
        hdr.verdict.value = value;
        exact_counter.count();
        exact_meter.read(meta.colour);
    }
    action unmetered() {
        hdr.verdict.value = 0xdead;
        exact_counter.count();
        exact_meter.read(meta.colour);
    }

    table exact_table {
        key = { hdr.keys.a: exact; hdr.keys.b: exact; }
        actions = { metered; unmetered; }
        default_action = unmetered();
        counters = exact_counter;
        meters = exact_meter;
        size = 4;
    }
    table lpm_table {
        key = { hdr.keys.a: lpm; hdr.keys.b: exact; }
        actions = { set_value; drop; NoAction; }
        default_action = NoAction();
    }
    table ternary_table {
        key = { hdr.keys.a: ternary; hdr.keys.b: ternary; hdr.keys.c: exact; }
        actions = { set_value; add_value; drop; }
        default_action = set_value(0xffff);
    }
    table range_table {
        key = { hdr.keys.b: range; hdr.keys.c: ternary; }
        actions = { set_value; drop; }
        default_action = drop();
    }
    table optional_table {
        key = { hdr.keys.b: optional; hdr.keys.c: optional; }
        actions = { set_value; NoAction; }
    }
    action_selector(HashAlgorithm.crc16, 64, 16) chooser;
    table selector_table {
        key = { hdr.keys.b: exact; hdr.keys.a: selector; hdr.keys.c: selector; }
        actions = { set_value; drop; NoAction; }
        implementation = chooser;
    }
    action_profile(16) shared_members;
    table profile_table {
        key = { hdr.keys.b: exact; }
        actions = { set_value; drop; NoAction; }
        implementation = shared_members;
    }
    table constant_table {
        key = { hdr.keys.a: ternary; }
        actions = { set_value; }
        default_action = set_value(9);
        const entries = {
            0x10000000 &&& 0xf0000000: set_value(1);
            0x12000000 &&& 0xff000000: set_value(2);
            0x20000000 &&& 0xf0000000: set_value(3);
            _: set_value(4);
        }
    }

    apply {
        if (!hdr.keys.isValid()) {
            mark_to_drop(standard);
            exit;
        }
        standard.egress_spec = 1;
        hdr.verdict.setValid();
        if (hdr.keys.kind == 0) {
            if (exact_table.apply().hit) { hdr.verdict.hit = 1; }
            hdr.verdict.colour = meta.colour;
        } else if (hdr.keys.kind == 1) {
            if (lpm_table.apply().miss) { hdr.verdict.hit = 2; }
        } else if (hdr.keys.kind == 2) {
            switch (ternary_table.apply().action_run) {
                set_value: { hdr.verdict.after = 1; }
                add_value: { hdr.verdict.after = 2; }
                default: { hdr.verdict.after = 3; }
            }
        } else if (hdr.keys.kind == 3) {
            range_table.apply();
        } else if (hdr.keys.kind == 4) {
            optional_table.apply();
        } else if (hdr.keys.kind == 5) {
            if (selector_table.apply().hit) { hdr.verdict.hit = 1; }
        } else if (hdr.keys.kind == 6) {
            if (profile_table.apply().hit) { hdr.verdict.hit = 1; }
        } else {
            constant_table.apply();
        }
    }
}

EMPTY_CONTROL(Out, headers_t, metadata_t)
EMPTY_CHECKSUM(Update, headers_t, metadata_t)
DEPARSER(Emit, headers_t)

V1Switch(P(), Check(), In(), Out(), Update(), Emit()) main;
