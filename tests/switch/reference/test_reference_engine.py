"""The reference engine: refusals that change nothing, resets, and the story that a trace tells."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from p4c.entries import ActionCall, Entry, Exact, GroupRef, Lpm, Ternary
from p4c.frontend import compile_program
from p4c.model import Program, expressions as ex, load
from p4c.model.headers import Field, Union, UnionStack
from switch.engine import EngineError, MeterConfig, PortConfig, QueueConfig, Replica
from switch.packet_log import Fate
from switch.reference import ReferenceEngine, Trace
from switch.reference.expressions import fit
from switch.reference.packet import Packet

UNIONS = Path(__file__).parents[1] / "frontend" / "programs" / "unions.p4"
Compiled = Callable[[str], Program]
METERED = ActionCall("In.metered", (7,))


def engine_with(program: Program, trace: Trace | None = None, seed: int = 0) -> ReferenceEngine:
    engine = ReferenceEngine(seed=seed, trace=trace)
    engine.load(program)
    for port in range(1, 10):
        engine.configure_port(port, PortConfig(), 0)
    return engine


def exact(a: int, b: int, action: ActionCall = METERED) -> Entry:
    return Entry((Exact(a), Exact(b)), action)


def reasons(trace: Trace) -> list[str]:
    return [step.data["reason"] for step in trace.steps if step.kind == "drop"]


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_duplicate_key_is_refused(compiled: Compiled) -> None:
    engine = engine_with(compiled("matching.p4"))
    engine.insert_entry("In.exact_table", exact(1, 1))
    with pytest.raises(EngineError, match=r"an entry with this key exists"):
        engine.insert_entry("In.exact_table", exact(1, 1))
    ternary = Entry((Ternary(5, 7), Ternary(0, 0), Exact(1)), ActionCall("In.drop", ()), 3)
    engine.insert_entry("In.ternary_table", ternary)
    with pytest.raises(EngineError, match=r"with this key and priority exists"):
        # The same once the bits outside the mask are cleared.
        engine.insert_entry("In.ternary_table", Entry((Ternary(13, 7), *ternary.matches[1:]), ternary.action, 3))


def test_a_port_that_cannot_be_keeps_its_old_settings(compiled: Compiled) -> None:
    engine = engine_with(compiled("steer.p4"))
    with pytest.raises(EngineError, match=r"a loss is a share of 0 to 1, not 1.5"):
        engine.configure_port(5, PortConfig(loss=1.5), 0)
    engine.receive(1, bytes.fromhex("000005000000"), 0)
    assert [sent.port for sent in engine.advance(0)] == [5]


def test_calls_before_a_program_say_so() -> None:
    engine = ReferenceEngine()
    with pytest.raises(EngineError, match=r"no program is loaded"):
        engine.read_counter("c", 0)
    engine.configure_port(1, PortConfig(), 0)
    engine.receive(1, b"x", 0)
    assert engine.port_counters(1, 0).drop_no_program == 1


def test_a_cell_and_a_port_that_there_are_not_are_named(compiled: Compiled) -> None:
    engine = engine_with(compiled("stateful.p4"))
    with pytest.raises(EngineError, match=r"meter In.packet_meter has 4 cells, from 0; there is no 4"):
        engine.set_meter("In.packet_meter", 4, None)
    with pytest.raises(EngineError, match=r"port 99 is not configured"):
        engine.receive(99, b"", 0)


# --- state --------------------------------------------------------------------------------------------------------


def test_a_reset_forgets_all_but_the_ports(compiled: Compiled) -> None:
    program = compiled("steer.p4")
    engine = engine_with(program)
    engine.configure_port(5, PortConfig(rate_bps=8000), 0)
    for _ in range(3):
        engine.receive(1, bytes.fromhex("000005000000"), 0)
    engine.reset()
    assert engine.port_counters(5, 0).drop_wiped == 2
    assert engine.program is None
    engine.receive(1, bytes.fromhex("000005000000"), 0)
    assert engine.port_counters(1, 0).drop_no_program == 1
    engine.load(program)
    assert engine.read_counter("Out.left_by", 5).packets == 0
    engine.receive(1, bytes.fromhex("000005000000"), 10**9)
    assert engine.next_event_ns() == 60_000_000  # the first packet, on the wire since before the reset
    assert len(engine.advance(2 * 10**9)) == 2  # and the port is as slow as before


def test_loading_starts_the_tables_anew(compiled: Compiled) -> None:
    program = compiled("matching.p4")
    engine = engine_with(program)
    engine.insert_entry("In.exact_table", exact(1, 1))
    engine.load(program)
    assert engine.insert_entry("In.exact_table", exact(1, 1)) == 0


def test_a_direct_meter_colours_hits(compiled: Compiled) -> None:
    engine = engine_with(compiled("matching.p4"))
    handle = engine.insert_entry("In.exact_table", exact(1, 1))
    engine.set_direct_meter("In.exact_table", handle, MeterConfig(1, 1, 1, 2))
    packet = bytes.fromhex("00 00000001 0001 00")
    for _ in range(3):
        engine.receive(1, packet, 0)
    assert [sent.frame[11] for sent in engine.advance(0)] == [0, 1, 2]
    assert engine.read_direct_counter("In.exact_table", handle).packets == 3
    with pytest.raises(EngineError, match=r"In.lpm_table has no direct meter"):
        engine.set_direct_meter("In.lpm_table", 0, None)


@pytest.mark.parametrize(
    ("members", "said"),
    [([(1, 1), (9, 1)], "member of action profile In.chooser"), ([(1, 0)], "weight 0"), ([(1, 1 << 17)], "131072")],
)
def test_a_group_that_cannot_be_is_refused_and_the_one_before_stays(compiled, members, said) -> None:
    engine = engine_with(compiled("matching.p4"))
    engine.set_member("In.chooser", 1, ActionCall("In.set_value", (7,)))
    engine.set_group("In.chooser", 1, [(1, 1)])
    with pytest.raises(EngineError, match=said):
        engine.set_group("In.chooser", 1, members)
    engine.insert_entry("In.selector_table", Entry((Exact(1),), GroupRef(1)))
    engine.receive(1, bytes.fromhex("05 00000000 0001 00"), 0)
    assert [sent.frame[9:11] for sent in engine.advance(0)] == [bytes.fromhex("0007")]


@settings(max_examples=25)
@given(st.binary(max_size=80), st.integers(1, 9))
def test_no_bytes_crash_the_programs(compiled: Compiled, frame: bytes, port: int) -> None:
    for name in ("leaf.p4", "steer.p4", "parsing.p4", "stateful.p4"):
        trace = Trace()
        engine = engine_with(compiled(name), trace)
        engine.receive(port, frame, 0)
        engine.advance(10**9)
        assert trace.steps


def test_a_switch_holds_so_many_packets_however_deep_its_queues_are(compiled, monkeypatch) -> None:
    monkeypatch.setattr("switch.reference.engine.WAITING_PACKETS_MAX", 3)
    trace = Trace()
    engine = engine_with(compiled("steer.p4"), trace)
    for port in (5, 6):
        engine.configure_port(port, PortConfig(rate_bps=8), 0)
    for port in (5, 6, 5, 6, 5, 6, 6):  # one of each is on the wire
        engine.receive(1, bytes.fromhex(f"00000{port}000000"), 0)
    assert reasons(trace) == ["3 packets wait in the switch, the most it holds"] * 2
    assert [engine.port_counters(port, 0).drop_queue_full for port in (5, 6)] == [0, 2]
    assert [engine.port_counters(port, 0).queue_packets for port in (5, 6)] == [2, 1]


def test_packets_are_recorded_once_when_asked_for(compiled: Compiled) -> None:
    engine = engine_with(compiled("steer.p4"))
    assert engine.take_records() == []
    engine.record_packets(0, 10)
    engine.receive(1, bytes.fromhex("000005000000"), 3)
    engine.advance(3)
    (record,) = engine.take_records()
    assert (record.t_ns, record.port_in, record.port, record.length, record.fate) == (3, 1, 5, 60, Fate.SENT)  # padded
    assert engine.take_records() == []


@pytest.mark.parametrize(
    ("signed", "saturating", "stored"),
    [
        (False, False, {255: 255, 256: 0, -1: 255}),
        (True, False, {127: 127, 128: -128, -129: 127}),
        (False, True, {255: 255, 256: 255, -1: 0}),
        (True, True, {127: 127, 128: 127, -128: -128, -129: -128}),
    ],
)
def test_a_field_of_eight_bits_stores_what_fits(signed: bool, saturating: bool, stored: dict[int, int]) -> None:
    store = fit(Field("f", 0, 8, 0, signed, saturating))
    assert {value: store(value) for value in stored} == stored


def test_headers_and_unions_are_chosen_by_a_condition(compiled: Compiled) -> None:
    """Our compiler refuses such a program, p4c may write one."""
    program = compiled("choosing.p4")
    runtime = engine_with(program).machine.runtime
    packet = Packet(runtime.layout, 1, b"", 1)
    headers = program.headers[:2]
    unions = [Union(header.name, header.index, "one_t", ("only",), (header,)) for header in headers]
    for chosen, header in zip((True, False), headers, strict=True):
        assert runtime.expressions.header(ex.Ternary(ex.Bool(chosen), *headers))(packet) == header.index
        assert runtime.expressions.union(ex.Ternary(ex.Bool(chosen), *unions))(packet) == (header.index,)
        assert runtime.expressions.test(ex.Ternary(ex.Bool(chosen), ex.Bool(True), ex.Bool(False)))(packet) is chosen


def test_a_union_outside_of_its_stack_has_no_members(compiled: Compiled) -> None:
    program = compiled("choosing.p4")
    runtime = engine_with(program).machine.runtime
    packet = Packet(runtime.layout, 1, b"", 1)
    headers = program.headers[:2]
    unions = tuple(Union(header.name, at, "one_t", ("only",), (header,)) for at, header in enumerate(headers))
    stack = UnionStack("both", 0, unions)
    found = [runtime.expressions.union(ex.UnionStackElement(stack, ex.Const(at)))(packet) for at in (-1, 0, 1, 2)]
    assert found == [(), (headers[0].index,), (headers[1].index,), ()]


def test_the_last_index_of_an_empty_stack_is_one_below_zero_in_32_bits(compiled: Compiled) -> None:
    program = compiled("parsing.p4")
    runtime = engine_with(program).machine.runtime
    packet = Packet(runtime.layout, 1, b"", 1)
    stack = program.stacks[0]
    last = runtime.expressions.reader(ex.Unary("last_stack_index", stack))
    assert last(packet) == 0xFFFF_FFFF
    packet.nexts[stack.index] = 2
    assert last(packet) == 1


def test_a_member_of_a_union_that_becomes_valid_takes_the_place_of_the_others() -> None:
    """The program replaces a union's short header by the long one, which is one more."""
    engine = engine_with(load(compile_program(UNIONS).json))
    ethernet = bytes(12) + bytes.fromhex("0001")
    engine.receive(1, ethernet + bytes([7]), 0)
    (sent,) = engine.advance(0)
    assert sent.frame[: len(ethernet) + 2] == ethernet + bytes.fromhex("0008")
    assert len(sent.frame) == len(ethernet) + 4, "the value and its sum, and no short header"


# --- trace --------------------------------------------------------------------------------------------------------


def test_every_drop_has_a_reason(compiled: Compiled) -> None:
    trace = Trace()
    engine = engine_with(compiled("steer.p4"), trace)
    engine.configure_port(6, PortConfig(up=False), 0)
    engine.configure_port(7, PortConfig(rate_bps=8, queues=(QueueConfig(depth_packets=1),) * 8), 0)
    engine.configure_port(8, PortConfig(loss=1.0), 0)
    for packet in ("070005000000", "080005000000", "000006000000", "000064000000", "000008000000", "010005000042"):
        engine.receive(1, bytes.fromhex(packet), 0)
    for _ in range(3):
        engine.receive(1, bytes.fromhex("000007000000"), 0)
    assert reasons(trace) == [
        "egress_spec is the drop port 511 at the end of ingress",
        "egress_spec is the drop port 511 at the end of egress",
        "port 6 is down",
        "port 100 is not configured",
        "lost on the wire of port 8 (seeded loss)",
        "multicast group 66 does not exist",
        "port 7 priority 0 is full at 1 packets",
    ]


def test_a_trace_tells_lookups_actions_and_effects(compiled: Compiled) -> None:
    trace = Trace()
    engine = engine_with(compiled("matching.p4"), trace)
    engine.insert_entry("In.lpm_table", Entry((Lpm(0x0A000000, 8), Exact(1)), ActionCall("In.set_value", (0x1234,))))
    engine.receive(1, bytes.fromhex("01 0a010203 0001 07"), 0)
    told = trace.text()
    assert "parser state start" in told
    assert "extract keys (8 bytes): kind=1, a=0x0a010203, b=1, c=7" in told
    assert "hit entry 0 (hdr.keys.a: 0x0a000000/8, hdr.keys.b: 0x0001)" in told
    assert "action In.set_value(value=0x1234)" in told
    assert "verdict.value = 0x1234" in told
    assert "sent on port 1" in told
    kinds = [step.kind for step in trace.steps]
    order = [kinds.index(kind) for kind in ("extract", "table", "enqueue", "dequeue", "transmit")]
    assert order == sorted(order)


def test_a_trace_is_json_lines_too(compiled: Compiled) -> None:
    trace = Trace()
    engine = engine_with(compiled("stateful.p4"), trace)
    for op in range(8):
        engine.receive(1, bytes([op]) + bytes.fromhex("01 0005 00000009") + bytes(24), 1234)
    lines = [json.loads(step.json()) for step in trace.steps]
    assert {line["t_ns"] for line in lines} == {1234}
    effects = {"counter", "meter", "register_read", "register_write", "random", "hash", "checksum"}
    assert effects <= {line["kind"] for line in lines}


def test_copies_are_named_by_the_step_that_makes_them(compiled: Compiled) -> None:
    trace = Trace()
    engine = engine_with(compiled("steer.p4"), trace)
    engine.set_multicast_group(1, [Replica(5, 0), Replica(6, 0)])
    engine.set_clone_session(1, [Replica(7, 0)], 0)
    engine.receive(1, bytes.fromhex("010000000001"), 0)
    engine.receive(1, bytes.fromhex("020005000001"), 0)
    engine.receive(1, bytes.fromhex("050005000001"), 0)
    made = [step.data["copy"] for step in trace.steps if step.kind in ("replica", "clone", "recirculate")]
    assert len(made) == len(set(made)) == 4
    ends = {step.packet for step in trace.steps if step.kind in ("transmit", "replicated", "recirculate")}
    assert ends == {step.packet for step in trace.steps}  # each packet's story ends
