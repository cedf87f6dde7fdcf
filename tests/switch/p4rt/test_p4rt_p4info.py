"""A P4Info that contradicts itself or the program is refused when it is set, not when something is looked up in it."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import text_format

from switch.engine import FRAME_BYTES_MAX
from switch.p4rt.bindings import p4info_pb2, p4runtime_pb2 as p4rt
from switch.p4rt.errors import Code, P4RuntimeError
from switch.p4rt.p4info import P4Info, parse_p4info, parse_p4info_text
from switch.p4rt.pipeline import PipelineCache
from tests.switch.p4rt.conftest import P4INFO_TEXT, load_program

Change = Callable[[Any], object]


def kinds() -> Any:
    return text_format.Parse(P4INFO_TEXT, p4info_pb2.P4Info())


def again(items: Any, **changes: Any) -> None:
    """Repeat the first of the items, with another value where one is given."""
    copy = items.add()
    copy.CopyFrom(items[0])
    for name, value in changes.items():
        setattr(copy.preamble if hasattr(copy, "preamble") else copy, name, value)


def default(table: Any, id_: int) -> None:
    table.initial_default_action.action_id = id_


CONTRADICTIONS: dict[str, Change] = {
    "table ingress.hosts: action id 9 is not declared; actions: 16777217 ingress.forward, 16777218 ingress.drop, "
    "16777219 ingress.next_hop, 16777220 ingress.set_class, 21257015 NoAction": lambda i: i.tables[0].action_refs.add(
        id=9
    ),
    "table ingress.hosts: action id 16777217 is given twice": lambda i: again(i.tables[0].action_refs),
    "table ingress.hosts: the constant default action's id 12345 must be one of its actions: "
    "16777217, 16777218": lambda i: setattr(i.tables[0], "const_default_action_id", 12345),
    "table ingress.hosts: the initial default action's id 12345 must be one of its actions: "
    "16777217, 16777218": lambda i: default(i.tables[0], 12345),
    "table ingress.hosts: match field id 1 is given twice": lambda i: again(i.tables[0].match_fields),
    "table ingress.hosts: direct resource id 77 is not declared; direct counters and meters: 318767105 "
    "ingress.host_counter, 352321537 ingress.acl_meter": lambda i: i.tables[0].direct_resource_ids.append(77),
    "table ingress.hosts: direct resource ingress.acl_meter belongs to table id 33554435": lambda i: i.tables[
        0
    ].direct_resource_ids.append(352321537),
    "table ingress.hosts: action profile id 9 is not declared; action profiles: 285212673 ingress.ecmp_selector, "
    "285212674 ingress.next_hops": lambda i: setattr(i.tables[0], "implementation_id", 9),
    "table ingress.hosts: is not among the tables of its action profile ingress.next_hops: 33554437": lambda i: setattr(
        i.tables[0], "implementation_id", 285212674
    ),
    "action profile ingress.ecmp_selector: table id 99 is not declared; tables: 33554433 ingress.hosts, 33554434 "
    "ingress.routes, 33554435 ingress.acl, 33554436 ingress.ecmp, 33554437 ingress.indirect, 33554438 "
    "ingress.classes, 33554439 egress.settings": lambda i: i.action_profiles[0].table_ids.append(99),
    "action profile ingress.ecmp_selector: table ingress.hosts is not implemented by it": lambda i: i.action_profiles[
        0
    ].table_ids.append(33554433),
    "direct counter ingress.host_counter: table id 99 is not declared; tables: 33554433 ingress.hosts, 33554434 "
    "ingress.routes, 33554435 ingress.acl, 33554436 ingress.ecmp, 33554437 ingress.indirect, 33554438 "
    "ingress.classes, 33554439 egress.settings": lambda i: setattr(i.direct_counters[0], "direct_table_id", 99),
    "direct meter ingress.acl_meter: table ingress.hosts does not have it": lambda i: setattr(
        i.direct_meters[0], "direct_table_id", 33554433
    ),
    "table id 33554433 is given twice": lambda i: again(i.tables, name="a", alias="a"),
    "table name 'ingress.hosts' is given twice": lambda i: again(i.tables, id=5, alias="a"),
    "table alias 'hosts' is given twice": lambda i: again(i.tables, id=5, name="a"),
    "counter id 301989889 is given twice": lambda i: again(i.counters, name="a", alias="a"),
    "action id must not be 0": lambda i: again(i.actions, id=0, name="a", alias="a"),
    "action ingress.forward: parameter id 1 is given twice": lambda i: again(i.actions[0].params),
    "packet header packet_in: metadata id 1 is given twice": lambda i: again(i.controller_packet_metadata[0].metadata),
    "packet header packet_out: must have at most 16384 bytes (got 1000002)": lambda i: setattr(
        i.controller_packet_metadata[1].metadata[1], "bitwidth", 8 * 1000000
    ),
    "action ingress.forward: port must have a positive bit width (got -3)": lambda i: setattr(
        i.actions[0].params[0], "bitwidth", -3
    ),
}


@pytest.mark.parametrize("message", CONTRADICTIONS)
def test_a_p4info_that_contradicts_itself_is_refused(message: str) -> None:
    assert FRAME_BYTES_MAX == 16384
    info = kinds()
    CONTRADICTIONS[message](info)
    with pytest.raises(P4RuntimeError) as refused:
        P4Info(info)
    assert (refused.value.code, refused.value.message) == (Code.INVALID_ARGUMENT, f"P4Info: {message}")


DIFFERENCES: dict[str, Change | None] = {
    "table ingress.hosts: field hdr.ethernet.dst (lpm, bit<48>) is exact in the program": lambda i: setattr(
        i.tables[0].match_fields[0], "match_type", p4info_pb2.MatchField.LPM
    ),
    "table ingress.hosts: field hdr.ethernet.dst (optional, bit<48>) is exact in the program": lambda i: setattr(
        i.tables[0].match_fields[0], "match_type", p4info_pb2.MatchField.OPTIONAL
    ),
    "table ingress.acl: field hdr.udp.dst_port (exact, bit<16>) is range in the program": lambda i: setattr(
        i.tables[2].match_fields[1], "match_type", p4info_pb2.MatchField.EXACT
    ),
    "table ingress.indirect: its action profile is ingress.next_hops in P4Info and none in the program": None,
    "table ingress.hosts: its direct counter ingress.host_counter of P4Info is not in the program": None,
    "table ingress.acl: its direct meter ingress.acl_meter of P4Info is not in the program": None,
    "counter ingress.received has 5 cells in P4Info and 4 in the program": lambda i: setattr(i.counters[0], "size", 5),
    "meter egress.trimmed_cap has -1 cells in P4Info and 4 in the program": lambda i: setattr(i.meters[0], "size", -1),
    "register ingress.depth is bit<20> in P4Info and bit<19> in the program": lambda i: setattr(
        i.registers[0].type_spec.bitstring.bit, "bitwidth", 20
    ),
}


def without_resources(info: Any, message: str) -> None:
    """Take the profile or the direct resource that `message` names out of the program."""
    if "profile" in message:
        info.tables[4].ClearField("implementation_id")
        info.action_profiles[1].ClearField("table_ids")
    table = 0 if "counter" in message else 2
    if "its direct" in message:
        info.tables[table].ClearField("direct_resource_ids")


@pytest.mark.parametrize("message", DIFFERENCES)
def test_a_p4info_that_differs_from_its_program_is_refused(message: str) -> None:
    info, program = kinds(), kinds()
    change = DIFFERENCES[message]
    if change is None:
        without_resources(program, message)
    else:
        change(info)
    text = "#\n" + text_format.MessageToString(program)
    config = p4rt.ForwardingPipelineConfig(p4info=info, p4_device_config=text.encode())
    with pytest.raises(P4RuntimeError) as refused:
        PipelineCache(load_program).read(config.SerializeToString())
    assert (refused.value.code, refused.value.message) == (Code.INVALID_ARGUMENT, f"pipeline config: {message}")


@pytest.mark.parametrize("kind", ["TERNARY", "OPTIONAL", "LPM", "EXACT"])
def test_a_looser_match_in_the_program_is_no_difference(kind: str) -> None:
    """BMv2 JSON has `optional` as ternary, and in a ternary table may have the other kinds so."""
    info, program = kinds(), kinds()
    info.tables[2].match_fields[0].match_type = p4info_pb2.MatchField.MatchType.Value(kind)
    program.tables[2].match_fields[0].match_type = p4info_pb2.MatchField.TERNARY
    text = "#\n" + text_format.MessageToString(program)
    config = p4rt.ForwardingPipelineConfig(p4info=info, p4_device_config=text.encode())
    assert PipelineCache(load_program).read(config.SerializeToString()).name == "kinds"


@pytest.mark.parametrize(
    ("read", "content", "said"),
    [
        (parse_p4info, b"\x12\0" * 262_145, "P4Info: must have at most 524288 bytes (got 524290)"),
        (parse_p4info_text, "tables{}" * 262_145, "P4Info: must have at most 2097152 characters (got 2097160)"),
    ],
)
def test_a_long_p4info_is_refused_before_it_is_parsed(read: Callable[[Any], Any], content: Any, said: str) -> None:
    with pytest.raises(P4RuntimeError) as caught:
        read(content)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert said in str(caught.value)
