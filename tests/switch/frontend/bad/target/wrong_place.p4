#include "../common.p4"
parser Parses(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(4) cells;
    state start {
        truncate(10);
        cells.read(meta.value, 0);
        transition accept;
    }
}
control Other(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        recirculate_preserving_field_list(1);
        clone(CloneType.E2E, 1);
        verify(true, error.NoError);
        hdr.data.a = hdr.more.last.a;
    }
}
control Egress2(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    apply {
        resubmit_preserving_field_list(1);
        clone(CloneType.I2E, 1);
        digest(1, { meta.value });
    }
}
control Deparses(packet_out packet, in headers_t hdr) {
    apply {
        if (hdr.data.a == 1) { packet.emit(hdr.data); }
    }
}
V1Switch(Parses(), MyVerify(), Other(), Egress2(), MyCompute(), Deparses()) main;
