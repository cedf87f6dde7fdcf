"""Wrong solutions of lab 4, and attempts to pass without solving it."""

from tests.course.mutants.mutant import Mutant, instead, whole

SETTLE = "waiting.write((bit<32>)standard_metadata.egress_port, (bit<32>)standard_metadata.deq_qdepth);"
EMPTY = "(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply { } }\n"

MUTANTS = (
    Mutant("one too few", instead("depth >= most", "depth + 1 >= most"), "must be whole"),
    Mutant("one too many", instead("depth >= most", "depth > most"), "must be whole"),
    Mutant("never counts", instead("depth + 1);", "depth);"), "nothing was trimmed"),
    Mutant("never settles", instead(SETTLE, ""), "must fall again|must be whole"),
    Mutant("length left", instead("hdr.ipv6.payload_length = 74;", ""), "payload length 900"),
    Mutant("length with the headers", instead("hdr.ipv6.payload_length = 74;", "hdr.ipv6.payload_length = 128;"), "payload length 128"),
    Mutant("not cut", instead("truncate(128);", ""), "a trimmed frame has"),
    Mutant("one DSCP for all", instead("hdr.ipv6.dscp = mark;", "hdr.ipv6.dscp = 20;"), "the entry of the port says 22"),
    Mutant("waits with the others", instead("standard_metadata.priority = 7;", ""), "there first"),
    Mutant("short packets lengthened", instead("if (hdr.ipv6.payload_length > 74) {", "if (true) {"), "longer than it is"),
    Mutant("one account", instead("(bit<32>)standard_metadata.egress_spec", "32w0"), "its own account|must be whole|must fall"),
    Mutant("trims everything", instead("hdr.ipv6.dscp == 10 && ", ""), "DSCP 10 only|must be whole|left whole|overtake"),
)  # fmt: skip

CHEATS = (
    Mutant("defines words anew", whole("#define truncate(x)\n"), "can't be used in a lab"),
    Mutant("empty controls", whole(f"control Trim{EMPTY}control Settle{EMPTY}"), "don't fit"),
    Mutant("drops instead", instead("truncate(128);", "mark_to_drop(standard_metadata);"), "no packet was trimmed|must be whole|nothing was trimmed"),
    Mutant("a constant limit", instead("depth >= most", "depth >= 7"), "must be whole|must be|its own account"),
    Mutant("trims by chance", instead("depth >= most", "standard_metadata.ingress_global_timestamp[0:0] == 1"), "must be whole|must"),
)  # fmt: skip
