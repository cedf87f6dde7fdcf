#include "../common.p4"
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action drop() { mark_to_drop(sm); }
    action set(bit<8> value) { meta.value = value; }
    table t_before { actions = { NoAction; } }
    action from(in bit<8> value) { meta.value = value; }
    action applies() { t_before.apply(); }
    table t {
        key = { hdr.data.a: exact; hdr.data.b: lpm; hdr.data: ternary; }
        actions = { drop; set; @defaultonly from(hdr.data.a); }
        default_action = from(hdr.data.b);
        size = hdr.data.a;
        const entries = {
            (1, 2): drop();
            (1 &&& 2, 0, _): set(1);
            (hdr.data.b, 1 .. 2, _): set();
            (1, 1, _): from(hdr.data.a);
            (2, 2, _): missing();
            (_, 3, _): drop();
        }
    }
    apply { t.apply(); }
}
