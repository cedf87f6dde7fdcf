#define V1MODEL_VERSION 20000101
#include "../common.p4"
@p4runtime_translation("org/port", bool)
type bit<9> port_t;
parser Round(packet_in packet) {
    state start { transition next; }
    state next { transition start; }
}
control Inner() { apply { } }
Inner() outside;
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set(in int number) { meta.value = 1; }
    action drop() { mark_to_drop(sm); }
    table exact_ones {
        key = { hdr.data.a: exact; }
        actions = { drop; }
        entries = { priority = 10: 1: drop(); 2: drop(); }
    }
    table late {
        key = { hdr.data.a: ternary; }
        actions = { drop; }
        entries = { 1: drop(); priority = 10: 2: drop(); }
    }
    table below {
        key = { hdr.data.a: ternary; }
        actions = { drop; }
        priority_delta = 10;
        entries = { priority = 12: 1: drop(); 2: drop(); 3: drop(); 4: drop(); }
    }
    table constant {
        key = { hdr.data.a: ternary; }
        actions = { drop; }
        const entries = { priority = 12: 1: drop(); }
    }
    apply { exact_ones.apply(); late.apply(); below.apply(); constant.apply(); }
}
