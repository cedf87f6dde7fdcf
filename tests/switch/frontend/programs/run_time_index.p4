// Stack elements chosen by a value of the packet, operators that assign, evaluation order, atomic blocks.
#include "common.p4"

header cell_t { bit<8> v; }
header head_t { bit<8> index; bit<8> value; }
struct metadata_t { }
struct headers_t { head_t head; cell_t[4] cells; }

bit<8> next(inout bit<8> x) {
    bit<8> before = x;
    x = x + 1;
    return before;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.head);
        packet.extract(hdr.cells.next);
        packet.extract(hdr.cells.next);
        packet.extract(hdr.cells.next);
        packet.extract(hdr.cells.next);
        transition accept;
    }
}
EMPTY_CHECKSUM(MyVerify, headers_t, metadata_t)
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    register<bit<16>>(4) total;
    bit<16> sum = 0;
    apply {
        sm.egress_spec = 2;
        hdr.cells[hdr.head.index & 3].v = hdr.head.value;
        hdr.cells[next(hdr.head.index) & 3].v += 1;
        hdr.cells[next(hdr.head.index) & 3].v |= 0x80;
        hdr.head.value = hdr.head.index + next(hdr.head.index);
        hdr.head.value[7:6] = 3;
        @atomic {
            total.read(sum, 1);
            if (hdr.cells[3].v > 0x10) {
                sum = sum |+| (bit<16>)hdr.cells[3].v;
            } else {
                sum = 1;
            }
            total.write(1, sum);
        }
    }
}
EMPTY_CONTROL(MyEgress, headers_t, metadata_t)
EMPTY_CHECKSUM(MyCompute, headers_t, metadata_t)
DEPARSER(MyDeparser, headers_t)
SWITCH;
