// Header stacks, lookahead, advance, verify, and what ends a parse early.
#include "../blocks.p4"

error { TooDeep }
header kind_t { bit<8> kind; }
header label_t { bit<15> value; bit<1> last; }
header word_t { bit<16> value; }

header report_t {
    bit<8>  error_code;  // 0 none, 1 too short, 2 out of bounds, 3 too deep, 9 other
    bit<8>  labels;      // valid ones, as bits
    bit<16> first;
}

struct headers_t { kind_t kind; label_t[4] labels; word_t word; report_t report; }
struct metadata_t { bit<16> peeked; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            0: accept;
            1: labels;
            2: peek;
            3: skip;
            0x10 &&& 0xf0: word;
            4: deep;
            default: accept;
        }
    }
    state labels {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.last) {
            1: word;
            default: labels;
        }
    }
    state peek {
        meta.peeked = packet.lookahead<bit<16>>();
        transition select(meta.peeked) {
            0xbeef: word;
            default: accept;
        }
    }
    state skip {
        packet.advance(16);
        transition word;
    }
    state deep {
        packet.extract(hdr.word);
        verify(hdr.word.value < 100, error.TooDeep);
        transition accept;
    }
    EXTRACT(word, word, accept)
}

EMPTY_CHECKSUM(Check, headers_t, metadata_t)

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        hdr.report.setValid();
        if (standard.parser_error == error.NoError) {
            hdr.report.error_code = 0;
        } else if (standard.parser_error == error.PacketTooShort) {
            hdr.report.error_code = 1;
        } else if (standard.parser_error == error.StackOutOfBounds) {
            hdr.report.error_code = 2;
        } else if (standard.parser_error == error.TooDeep) {
            hdr.report.error_code = 3;
        } else {
            hdr.report.error_code = 9;
        }
        if (hdr.word.isValid() && hdr.word.value == 1) {
            hdr.labels.pop_front(1);
        } else if (hdr.word.isValid() && hdr.word.value == 2) {
            hdr.labels.push_front(2);
            hdr.labels[0].setValid();
            hdr.labels[0].value = 0x55;
        } else if (hdr.word.isValid() && hdr.word.value == 3) {
            hdr.labels[1] = hdr.labels[0];
            hdr.labels[0].setInvalid();
        }
        if (hdr.labels[0].isValid()) { hdr.report.labels = hdr.report.labels | 1; }
        if (hdr.labels[1].isValid()) { hdr.report.labels = hdr.report.labels | 2; }
        if (hdr.labels[2].isValid()) { hdr.report.labels = hdr.report.labels | 4; }
        if (hdr.labels[3].isValid()) { hdr.report.labels = hdr.report.labels | 8; }
        if (hdr.labels[0].isValid()) { hdr.report.first = (bit<16>) hdr.labels[0].value; }
    }
}

EMPTY_CONTROL(Out, headers_t, metadata_t)
EMPTY_CHECKSUM(Update, headers_t, metadata_t)
DEPARSER(Emit, headers_t)

V1Switch(P(), Check(), In(), Out(), Update(), Emit()) main;
