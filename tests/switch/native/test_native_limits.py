"""What no program, entry or caller may exceed: the same in both engines, and never a crash of the native one."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from p4c.entries import ActionCall, Entry, Exact, GroupRef
from p4c.frontend import compile_program
from p4c.model import ModelError, Program, load
from switch.engine import (
    COPIES_MAX,
    FRAME_BYTES_MAX,
    GROUP_WEIGHT_MAX,
    PASSES_MAX,
    CounterValue,
    Engine,
    EngineError,
    PortConfig,
    Replica,
)
from switch.native import binding
from switch.native.engine import NativeEngine
from switch.reference import ReferenceEngine
from tests.helpers.engines.leaf_traffic import ipv6_frame

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[3]
STF = Path(__file__).parents[1] / "stf"
FILLER_BYTES = 64


@pytest.fixture(params=[NativeEngine, ReferenceEngine])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = request.param(seed=1)
    for port in (1, 2, 3):
        engine.configure_port(port, PortConfig(), 0)
    yield engine
    if isinstance(engine, NativeEngine):
        engine.close()


@pytest.fixture
def growing(engine: Engine, compiled: Callable[[Path], Program]) -> Engine:
    engine.load(compiled(PROGRAMS / "growing.p4"))
    return engine


def order(rounds: int, size: int) -> bytes:
    return bytes([rounds, 1]) + bytes(size - 2)


# --- groups ---------------------------------------------------------------------------------------------------------


def fill_ecmp(engine: Engine, program: Program) -> str:
    """Group 4 of two members, which all of fd00::/16 takes; returns the profile's name."""
    ecmp = next(table for table in program.tables if table.name.endswith("ecmp"))
    assert ecmp.profile
    hop = next(action.name for action in ecmp.actions if action.name.endswith("set_next_hop"))
    for member in (1, 2):
        engine.set_member(ecmp.profile.name, member, ActionCall(hop, (member,)))
    engine.set_group(ecmp.profile.name, 4, [(1, 1), (2, 1)])
    engine.insert_entry(ecmp.name, Entry((Exact(4),), GroupRef(4)))
    return ecmp.profile.name


@pytest.mark.parametrize(
    "weights",
    [
        (1 << 31, 1 << 31),  # 0 in 32 bits: a selector would divide by it
        ((1 << 32) + 1, 1),
        (GROUP_WEIGHT_MAX, 1),
    ],
)
def test_a_group_too_heavy_is_refused_and_the_one_before_stays(engine, leaf, weights) -> None:
    engine.load(leaf)
    profile = fill_ecmp(engine, leaf)
    total = sum(weights)
    with pytest.raises(EngineError, match=f"{profile}: .* add up to {total}; at most {GROUP_WEIGHT_MAX}"):
        engine.set_group(profile, 4, list(zip((1, 2), weights, strict=True)))
    engine.receive(1, ipv6_frame(0xFD00 << 112 | 5, bytes(64)), 0)
    engine.advance(0)


def test_a_group_as_heavy_as_allowed_is_taken(engine: Engine, leaf: Program) -> None:
    engine.load(leaf)
    engine.set_group(fill_ecmp(engine, leaf), 4, [(1, GROUP_WEIGHT_MAX - 1), (2, 1)])


def test_the_runtime_itself_refuses_weights_beyond_32_bits(leaf: Program) -> None:
    """Whoever calls it: a sum that wraps to 0 would be divided by."""
    engine = NativeEngine()
    engine.load(leaf)
    fill_ecmp(engine, leaf)
    c, ids = binding.runtime(), binding.numbers([1, 2])
    for weights in ([1 << 31, 1 << 31], [0, 1], [1, 0]):
        code = c.access_set_group(engine.device, 0, 4, ids, binding.numbers(weights), 2)
        assert code == binding.TABLE_WEIGHTS
    engine.close()


# --- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1 << 20, 1 << 32, 1 << 40])
def test_a_table_has_the_size_that_the_memory_of_a_program_has_room_for(engine: Engine, size: int) -> None:
    """One declared larger is refused, as its entries could not be numbered, nor kept, unless its keys are fewer."""
    document = copy.deepcopy(compile_program(ROOT / "p4" / "leaf.p4").json)
    tables = [table for pipeline in document["pipelines"] for table in pipeline["tables"]]
    table, wide = (next(t for t in tables if t["name"].endswith(name)) for name in ("dscp_to_class", "my_sid"))
    table["max_size"] = size
    engine.load(load(document))
    for dscp in range(9):
        entry = Entry((Exact(dscp),), ActionCall(table["actions"][0], (1, 0)))
        engine.insert_entry(table["name"], entry)
        with pytest.raises(EngineError, match=r"an entry with (this key|the same match)"):
            engine.insert_entry(table["name"], entry)
    wide["max_size"] = size
    if size > 1 << 20:
        with pytest.raises(ModelError, match=f"the largest: table {wide['name']} \\d+"):
            load(document)


# --- frames that grow -----------------------------------------------------------------------------------------------


def test_a_frame_may_grow_to_the_longest_that_a_switch_takes(growing: Engine) -> None:
    growing.receive(1, order(2, FRAME_BYTES_MAX - 3 * FILLER_BYTES), 0)
    (sent,) = growing.advance(0)
    assert len(sent.frame) == FRAME_BYTES_MAX
    assert growing.port_counters(1, 0).drop_passes == 0


@pytest.mark.parametrize(("rounds", "short"), [(0, 1), (1, FILLER_BYTES + 1), (60, 1), (60, 20 * FILLER_BYTES)])
def test_a_frame_that_grows_beyond_that_is_dropped_and_counted(growing: Engine, rounds: int, short: int) -> None:
    """Sent on or round again; near the end of what a payload checksum has room for."""
    growing.receive(1, order(rounds, FRAME_BYTES_MAX - short), 0)
    assert growing.advance(0) == []
    counters = growing.port_counters(1, 0)
    assert (counters.rx_packets, counters.drop_passes) == (1, 1)
    growing.receive(1, order(0, 100), 0)
    assert len(growing.advance(0)) == 1, "the port is free for the next"


# --- copies of copies ------------------------------------------------------------------------------------------------

MULTICAST, RECIRCULATE_ALWAYS, CLONE_ALWAYS = 1, 9, 10  # what steer.p4 does with a packet


def steer(op: int, port: int, argument: int = 0) -> bytes:
    return bytes([op]) + port.to_bytes(2, "big") + bytes([0]) + argument.to_bytes(2, "big")


@pytest.fixture
def steering(engine: Engine, compiled: Callable[[Path], Program]) -> Engine:
    engine.load(compiled(STF / "steer.p4"))
    return engine


def left_by(engine: Engine) -> int:
    """How often a packet went through egress."""
    return sum(engine.read_counter("Out.left_by", port).packets for port in (1, 2, 3))


@pytest.mark.parametrize("ports", [(1, 2), (2, 1), (1, 1), (3, 2, 1)])
def test_a_program_that_clones_every_clone_ends(steering: Engine, ports: tuple[int, ...]) -> None:
    """Two replicas are 2^64 descendants, and with one on a port that is served first they need not even wait."""
    steering.set_clone_session(1, [Replica(port, i) for i, port in enumerate(ports)], 0)
    steering.receive(3, steer(CLONE_ALWAYS, 2), 0)
    assert len(steering.advance(0)) == left_by(steering) == 1 + COPIES_MAX
    assert steering.port_counters(3, 0).drop_passes > 0
    steering.receive(2, steer(CLONE_ALWAYS, 2), 0)
    assert len(steering.advance(0)) == 1 + COPIES_MAX, "each packet received has copies of its own"


def test_replicas_of_a_packet_are_copies_too(steering: Engine) -> None:
    steering.set_multicast_group(1, [Replica(1, i) for i in range(COPIES_MAX + 9)])
    steering.receive(3, steer(MULTICAST, 2, 1), 0)
    assert len(steering.advance(0)) == left_by(steering) == COPIES_MAX
    assert steering.port_counters(3, 0).drop_passes == 1


def test_a_single_line_of_descendants_is_ended_by_its_length(steering: Engine) -> None:
    steering.set_clone_session(1, [Replica(1, 0)], 0)
    for op in (CLONE_ALWAYS, RECIRCULATE_ALWAYS):
        before = left_by(steering)
        steering.receive(1, steer(op, 1), 0)
        steering.advance(0)
        assert left_by(steering) - before == 1 + PASSES_MAX


# --- after close ----------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[NativeEngine, Program], object]] = {
    "load": lambda e, p: e.load(p),
    "delete_entry": lambda e, p: e.delete_entry(p.tables[0].name, 0),
    "configure_port": lambda e, p: e.configure_port(1, PortConfig(), 0),
    "receive": lambda e, p: e.receive(1, bytes(64), 0),
    "advance": lambda e, p: e.advance(0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_closed_engine_says_so(leaf: Program, name: str) -> None:
    engine = NativeEngine()
    engine.load(leaf)
    engine.configure_port(1, PortConfig(), 0)
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="the engine is closed"):
        CALLS[name](engine, leaf)


# --- the last of anything -------------------------------------------------------------------------------------------


def test_a_cell_behind_the_last_of_an_array_is_refused(engine: Engine, compiled: Callable[[Path], Program]) -> None:
    program = compiled(STF / "stateful.p4")
    engine.load(program)
    counter = next(each for each in program.counters if not each.direct)
    assert engine.read_counter(counter.name, counter.size - 1) == CounterValue(0, 0)
    with pytest.raises(EngineError):
        engine.read_counter(counter.name, counter.size)
    register = program.registers[0]
    assert engine.read_register(register.name, register.size - 1) == 0
    with pytest.raises(EngineError):
        engine.read_register(register.name, register.size)


def test_an_entry_behind_the_last_is_refused(engine: Engine, compiled: Callable[[Path], Program]) -> None:
    """At every size; behind a full table lies what is not the table's, and behind a new one what was there before."""
    program = compiled(STF / "matching.p4")
    table = next(each for each in program.tables if each.name == "In.exact_table")
    action = table.actions[0]
    call = ActionCall(action.name, tuple(0 for _ in action.parameters))
    for _ in range(2):
        engine.load(program)
        for value in range(table.max_size):
            handle = engine.insert_entry(table.name, Entry((Exact(value), Exact(0)), call))
            with pytest.raises(EngineError):
                engine.delete_entry(table.name, handle + 1)
            with pytest.raises(EngineError):
                engine.read_direct_counter(table.name, handle + 1)


def test_packets_are_recorded_from_the_first_instant_to_before_the_last(growing: Engine) -> None:
    growing.record_packets(10, 20)
    for now_ns in (9, 10, 19, 20):
        growing.receive(1, order(0, 60), now_ns)
    growing.advance(30)
    assert {record.t_ns for record in growing.take_records()} == {10, 19}
