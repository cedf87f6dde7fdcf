// What most of the programs here share: blocks that do nothing, a parser of one header, a deparser of all that are valid.
#ifndef BLOCKS_P4
#define BLOCKS_P4
#include <core.p4>
#include <v1model.p4>

#define EMPTY_CONTROL(NAME, HEADERS, METADATA) \
    control NAME(inout HEADERS hdr, inout METADATA meta, inout standard_metadata_t sm) { apply { } }
#define EMPTY_CHECKSUM(NAME, HEADERS, METADATA) control NAME(inout HEADERS hdr, inout METADATA meta) { apply { } }
#define PARSER_OF(FIRST, NAME, HEADERS, METADATA) \
    parser NAME(packet_in packet, out HEADERS hdr, inout METADATA meta, inout standard_metadata_t sm) { \
        state start { packet.extract(hdr.FIRST); transition accept; } }
#define EXTRACT(STATE, HEADER, NEXT) state STATE { packet.extract(hdr.HEADER); transition NEXT; }
#define DEPARSER(NAME, HEADERS) control NAME(packet_out packet, in HEADERS hdr) { apply { packet.emit(hdr); } }
#endif
