header one_t { bit<8> a bit<8> b; }
header two_t { bit<8 c; }
struct fine_t { bit<8> d; }
control C(inout fine_t f) {
    action table() { }
    action good() { f.d = 1 }
    table t {
        key = { f.d exact; }
        actions = { good; }
    }
    apply {
        f.d == 2;
        if f.d == 1 { f.d = 2; }
        for (i in 0..3) { f.d = i; }
        f.d = (1 + ;
    }
}
