"""Values that controllers write as names or in other widths (specification, "User-defined types").

The specification leaves what a name stands for to the switch: `switch/p4rt/README.md` says it.
"""

from pathlib import Path
from typing import Any

import pytest

from switch.p4rt import streams
from switch.p4rt.batch import BatchError
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError
from switch.p4rt.store import EntityStore
from tests.helpers.p4.made import Made, pipeline_of, read, store_of, write

STRING = '@p4runtime_translation("", string)'
TOP = f"""{STRING} @p4runtime_translation_mappings({{ {{"", 0}}, {{"7", 2}}, }}) type bit<2> hop_t;
{STRING} type bit<9> port_t; @p4runtime_translation("", 32) type bit<9> wide_t;
@controller_header("packet_in") header in_t {{ port_t from; bit<7> rest; }}
"""
LOCAL = """action go(port_t port) { s.egress_spec = (bit<9>) port; }
action wide(wide_t port) { s.egress_spec = (bit<9>) port; }
table t { key = { (hop_t) hdr.h.a[1:0]: exact @name("hop"); } actions = { go; wide; NoAction; } size = 8; }"""


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path, top=TOP, local=LOCAL, ingress="t.apply();")


def entry(store: EntityStore, hop: bytes, action: str, value: bytes = b"") -> Any:
    info = store.pipeline.p4info
    made = p4rt.TableEntry(table_id=info.table("t").id)
    made.match.add(field_id=1).exact.value = hop
    made.action.action.action_id = info.action(action).id
    if value:
        made.action.action.params.add(param_id=1, value=value)
    return p4rt.Entity(table_entry=made)


def refused(store: EntityStore, entity: Any) -> P4RuntimeError:
    with pytest.raises(BatchError) as raised:
        write(store, "INSERT", entity)
    (error,) = raised.value.errors
    assert error is not None
    return error


def test_names_are_kept_and_forward_packets(made: Made) -> None:
    engine = made.engine()
    store = EntityStore(pipeline_of(made.compiled), engine)
    entries = [entry(store, b"", "go", b"3"), entry(store, b"7", "go", b"Ethernet0"), entry(store, b"nh", "go", b"9")]
    write(store, "INSERT", *entries)
    assert read(store, *entries) == entries
    assert made.sent("0000", engine) == [(3, "0000")], "the annotation says that the empty name is 0"
    assert made.sent("0200", engine) == [(1, "0200")], "the first number without a name, for the first other name"


def test_a_name_gets_what_its_annotation_says_else_its_decimal_else_a_free_number(made: Made) -> None:
    hop = pipeline_of(made.compiled).p4info.translations["hop_t"]
    assert [hop.number(name, "x") for name in (b"", b"7", b"3", b"a")] == [0, 2, 3, 1]
    assert [hop.value(number) for number in range(4)] == [b"", b"a", b"7", b"3"]
    with pytest.raises(P4RuntimeError, match="type hop_t has 4 names already") as raised:
        hop.number(b"b", "x")
    assert raised.value.code is Code.RESOURCE_EXHAUSTED
    port = pipeline_of(made.compiled).p4info.translations["port_t"]
    assert [port.value(5), port.value(1)] == [b"5", b"1"]
    assert [port.number(name, "x") for name in (b"eth5", b"5", b"05", b"512")] == [2, 5, 3, 4]
    with pytest.raises(P4RuntimeError, match="at most 256 bytes"):
        port.number(b"x" * 257, "x")


def test_a_number_whose_decimal_names_another_has_a_name_of_its_own(tmp_path: Path) -> None:
    hop = pipeline_of(Made(tmp_path, top=TOP, local=LOCAL, ingress="t.apply();").compiled).p4info.translations["hop_t"]
    hop._keep(b"1", 3)
    assert hop.value(1) == b"#1"
    assert hop.number(b"#1", "x") == 1


def test_another_width_for_controllers_changes_no_value(made: Made) -> None:
    store = store_of(pipeline_of(made.compiled))
    right = entry(store, b"x", "wide", b"\x01\xff")
    write(store, "INSERT", right)
    assert read(store, right) == [right]
    assert refused(store, entry(store, b"y", "wide", b"\x02\x00")).code is Code.INVALID_ARGUMENT


def test_packets_name_their_ports_and_each_device_has_names_of_its_own(made: Made) -> None:
    one, other = pipeline_of(made.compiled).p4info, pipeline_of(made.compiled).p4info
    one.translations["port_t"].number(b"Ethernet0", "x")
    assert one.packet_in is not None
    frame = (1 << 7).to_bytes(2, "big") + b"frame"
    assert streams.packet_in(one.packet_in, frame).metadata[0].value == b"Ethernet0"
    assert other.packet_in is not None
    assert streams.packet_in(other.packet_in, frame).metadata[0].value == b"1"


def test_a_name_cannot_be_matched_by_a_mask(tmp_path: Path) -> None:
    masked = Made(tmp_path, top=TOP, local=LOCAL.replace("exact", "ternary"), ingress="t.apply();")
    with pytest.raises(P4RuntimeError, match="hop is a string, which must be matched exact or optional"):
        pipeline_of(masked.compiled)
