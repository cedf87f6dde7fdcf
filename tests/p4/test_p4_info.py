"""The golden P4Info is what every compiler must produce, and what p4/README.md describes."""

import re

import pytest
from google.protobuf import text_format

from switch.p4rt.bindings import p4info_pb2
from tests.helpers.p4.programs import COMPILERS, PROGRAMS, ROOT, compiled


def golden(program: str) -> p4info_pb2.P4Info:
    return text_format.Parse((ROOT / "p4" / "golden" / f"{program}.p4info.txtpb").read_text(), p4info_pb2.P4Info())


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_compiler_produces_the_golden_p4info(program: str, compiler: str) -> None:
    assert text_format.Parse(compiled(program, compiler).p4info, p4info_pb2.P4Info()) == golden(program)


def test_leaf_and_spine_differ_in_the_last_hop_only() -> None:
    leaf, spine = golden("leaf"), golden("spine")
    for kind in ("tables", "actions"):
        extra = [item for item in getattr(leaf, kind) if "last_hop" in item.preamble.name]
        assert len(extra) == 1
        getattr(leaf, kind).remove(extra[0])
    assert leaf == spine


def test_the_readme_names_every_table_action_and_extern() -> None:
    words = set(re.findall(r"\w+", (ROOT / "p4" / "README.md").read_text()))
    hidden = {"drop_not_ipv6", "drop_hop_limit", "drop_list_ended", "raise_account", "settle_account"}
    hidden |= {"drop_queue_limit", "drop_trimmed_share", "draw", "mark"}  # nothing that an entry may name
    leaf = golden("leaf")
    kinds = (leaf.tables, leaf.actions, leaf.action_profiles, leaf.counters, leaf.meters, leaf.registers)
    assert {item.preamble.alias for kind in kinds for item in kind} - hidden <= words
