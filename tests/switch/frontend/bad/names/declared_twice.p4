#include <core.p4>
header h_t { bit<8> a; bit<8> a; }
header h_t { bit<8> b; }
enum e_t { ONE, TWO, ONE }
error { NoError }
match_kind { exact }
control C(inout h_t h) {
    action act() { }
    action act() { }
    table t { actions = { act; act; } }
    apply {
        bit<8> x = 1;
        bit<8> x = 2;
        { bit<8> x = 3; }
    }
}
