"""Wrong solutions of lab 2, and attempts to pass without solving it."""

from tests.course.mutants.mutant import Mutant, instead, whole

SHIFT = "hdr.ipv6.dst_addr[127:96] ++ hdr.ipv6.dst_addr[79:0] ++ 16w0"

MUTANTS = (
    Mutant("no shift", instead(f"hdr.ipv6.dst_addr = {SHIFT};", ""), "not shifted|must leave by port|must be dropped|nothing left"),
    Mutant("block shifted away", instead(SHIFT, "hdr.ipv6.dst_addr[111:0] ++ 16w0"), "nothing left|block"),
    Mutant("rotated", instead(SHIFT, "hdr.ipv6.dst_addr[127:96] ++ hdr.ipv6.dst_addr[79:0] ++ hdr.ipv6.dst_addr[95:80]"), "zeros must come in"),
    Mutant("hop limit kept", instead("hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;", ""), "each hop takes one off"),
    Mutant("hop limit 1 forwarded", instead("hdr.ipv6.hop_limit <= 1", "hdr.ipv6.hop_limit == 0"), "must be dropped"),
    Mutant("hop limit 2 dropped", instead("hdr.ipv6.hop_limit <= 1", "hdr.ipv6.hop_limit <= 2"), "nothing left"),
    Mutant("always shifts", instead("default_action = NoAction();", "default_action = shift();"), "though the first uSID|nothing left"),
    Mutant("ended lists forwarded", instead("hdr.ipv6.dst_addr[95:0] == 0", "hdr.ipv6.dst_addr[95:0] == 1"), "must be dropped|it does"),
    Mutant("lookup before the shift", instead("        if (my_sid.apply().hit) {", "        neighbours.apply();\n        if (my_sid.apply().hit) {"), "applied in two places"),
    Mutant("no check of the protocol", instead("!hdr.ipv6.isValid() || hdr.ipv6.version != 6 || ", ""), "header ipv6 may be invalid here"),
    Mutant("shifted twice", instead(SHIFT, "hdr.ipv6.dst_addr[127:96] ++ hdr.ipv6.dst_addr[63:0] ++ 32w0"), "nothing left|once"),
    Mutant("a missing semicolon", instead("mark_to_drop(standard_metadata);", "mark_to_drop(standard_metadata)"), "hop.p4:"),
)  # fmt: skip

CHEATS = (
    Mutant("includes the reference", whole('#include "../../tests/course/references/hop.p4"\n'), "can't be used in a lab"),
    Mutant("an empty control", whole("control Hop(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply { } }\n"), "don't fit"),
    Mutant("a constant port", instead("neighbours.apply();", "neighbours.apply();\n        standard_metadata.egress_spec = 3;"), "left by port|must be dropped"),
    Mutant("its own main", whole("V1Switch() main;\n"), "hop.p4"),
    Mutant("recirculates for ever", instead("        neighbours.apply();\n", "        neighbours.apply();\n        resubmit_preserving_field_list(0);\n"), "round for ever|compile|hop.p4|nothing left|left"),
)  # fmt: skip
