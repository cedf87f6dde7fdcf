#include "../common.p4"
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(4) cells;
    counter(4) counts;
    action drop() { mark_to_drop(sm); }
    table t { key = { hdr.data.a: exact; } actions = { drop; NoAction; } }
    apply {
        hdr.data.aa = 1;
        hdr.data.isvalid();
        sm.egress_sepc = 1;
        cells.reed(meta.value, 0);
        cells.read(meta.value);
        if (t.apply().hitt) { }
        t();
        drop(1);
        hdr.more.push_back(1);
        meta.value.setValid();
        sm.parser_error = error.NoMatches;
        if (HashAlgorithm.crc64 == HashAlgorithm.crc32) { }
        switch (t.apply().action_run) { drip: { } drop: { } drop: { } }
    }
}
