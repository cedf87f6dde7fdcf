"""Action profiles, value sets and clone sessions on both engines; here, so that the sanitizers see them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from p4c.entries import ActionCall, Entry, Exact, GroupRef, MemberRef
from p4c.model import Program
from switch.engine import EngineError, PortConfig, Replica
from switch.native import binding
from switch.native.engine import NativeEngine
from switch.stf.programs import ENGINES
from tests.helpers.engines.scenario import Pair, Scenario
from tests.helpers.p4.made import Made

MATCHING = Path(__file__).parents[1] / "stf/matching.p4"
SELECTOR, PROFILE = "In.selector_table", "In.profile_table"
CHOOSER, SHARED = "In.chooser", "In.shared_members"


@pytest.fixture
def program(compiled: Callable[[Path], Program]) -> Program:
    return compiled(MATCHING)


@pytest.fixture
def engine(program: Program) -> Iterator[NativeEngine]:
    engine = NativeEngine(seed=1)
    engine.load(program)
    yield engine
    engine.close()


@pytest.mark.parametrize("seed", range(4))
def test_random_members_groups_and_entries_give_the_same(seed: int, program: Program) -> None:
    """A frame for every key of both tables after every few changes."""
    life = Scenario(program, seed)
    life.set_up()
    life.pool.values.clear()  # keys are small numbers then
    life.pair("configure_port", 1, PortConfig(), life.now_ns)
    tables = [table for table in program.tables if table.profile is not None]
    for _ in range(60):
        for _ in range(7):
            life.change_profiles()
        for _ in range(3):
            life.change_entries(tables)
        for kind in (5, 6):
            for key in range(8):
                life.pair("receive", 1, bytes([kind, 1, 2, 3, 4, 0, key, life.rng.randrange(256)]), life.now_ns)
        life.pair("advance", life.now_ns)
    assert life.control.oldest > 12


def test_an_entry_of_a_deleted_member_does_not_get_the_next_one(program: Program) -> None:
    pair = Pair(seed=1)
    pair("load", program)
    pair("configure_port", 1, PortConfig(), 0)
    pair("set_member", SHARED, 1, ActionCall("In.set_value", (77,)))
    pair.insert(PROFILE, Entry((Exact(1),), MemberRef(1)))

    def value() -> bytes:
        pair("receive", 1, bytes([6, 0, 0, 0, 0, 0, 1, 0]), 0)
        (sent,) = pair("advance", 0)
        return bytes(sent.frame[9:11])

    assert value() == (77).to_bytes(2, "big")
    pair("delete_member", SHARED, 1)
    pair("set_member", SHARED, 2, ActionCall("In.set_value", (88,)))
    assert value() == bytes(2)
    pair("set_member", SHARED, 1, ActionCall("In.set_value", (99,)))
    assert value() == (99).to_bytes(2, "big")


class MallInfo(ctypes.Structure):
    """What glibc's mallinfo2 returns; here only the bytes in mapped blocks (4) and in others (7) are of use."""

    _fields_ = (("values", ctypes.c_size_t * 10),)


def allocated_bytes() -> int:
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallInfo
    values = mallinfo().values
    return int(values[4] + values[7])


def test_members_and_groups_that_come_and_go_take_no_more_memory(engine: NativeEngine) -> None:
    """As one-shot action sets do: each change is a set of fresh members and the deletion of those before."""
    call = ActionCall("In.set_value", (1,))

    def live(ids: range) -> int:
        for number in ids:
            engine.set_member(CHOOSER, number, call)
            engine.set_group(CHOOSER, number, [(number, 1)])
            handle = engine.insert_entry(SELECTOR, Entry((Exact(1),), GroupRef(number)))
            engine.delete_entry(SELECTOR, handle)
            engine.delete_group(CHOOSER, number)
            engine.delete_member(CHOOSER, number)
        return allocated_bytes()

    before = live(range(1000))
    assert live(range(1000, 6000)) - before < 100_000


def test_a_member_is_found_without_a_look_at_the_others(engine: NativeEngine) -> None:
    """A search through them would compare 2 · 10^10 ids."""
    c, device, args = binding.runtime(), engine.device, binding.u64_array([1])
    for number in range(200_000):
        assert c.access_set_member(device, 0, number, 0, args) == 0


SETS: dict[str, tuple[str, list[tuple[int, ...]], list[str], list[str]]] = {
    "bit<8>": ("hdr.h.a", [(1,), (7,)], ["0100", "0700", "0701"], ["0001", "0200"]),
    "pair_t": ("hdr.h.a, hdr.h.b", [(1, 2), (3, 4)], ["0102", "0304"], ["0104", "0302", "0202"]),
    "bit<100>": ("(bit<100>) hdr.h.a ++ hdr.h.b", [(1 << 8 | 2,)], ["0102"], ["0201", "0002"]),
    "wide_t": ("92w1 ++ hdr.h.a, hdr.h.b", [(1 << 8 | 5, 9)], ["0509"], ["0905"]),
}


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", SETS)
def test_a_parser_selects_by_the_members_of_a_value_set(kind: str, name: str, tmp_path) -> None:
    key, members, inside, outside = SETS[kind]
    made = Made(
        tmp_path,
        top="struct pair_t { bit<8> a; bit<8> b; } struct wide_t { bit<100> a; bit<8> b; }",
        values=f"value_set<{kind.replace('bit<100>', 'bit<108>')}>(4) chosen;",
        states=f"transition select({key}) {{ chosen: marked; default: accept; }} }}"
        " state marked { m.x = 9; transition accept;",
        ingress="hdr.h.b = m.x;",
    )
    engine = made.engine(name)

    def marked() -> list[str]:
        return [frame for frame in (*inside, *outside) if made.sent(frame, engine) == [(1, frame[:2] + "09")]]

    assert marked() == []
    engine.set_value_set("P.chosen", members)
    assert marked() == inside
    engine.set_value_set("P.chosen", members[:1])
    assert marked() == [f for f in inside if f != inside[-1]] or len(members) == 1 or kind == "bit<8>"
    engine.set_value_set("P.chosen", [])
    assert marked() == []
    for wrong in ([(0,) * len(members[0])] * 5, [(1 << 200,) * len(members[0])], [(0, 0, 0)]):
        with pytest.raises(EngineError, match=r"value set P\.chosen"):
            engine.set_value_set("P.chosen", wrong)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", ["I2E", "E2E"])
def test_a_clone_has_the_class_of_service_of_its_session(kind: str, name: str, tmp_path) -> None:
    """P4Runtime, "CloneSessionEntry". v1model's class of service is standard_metadata.priority, queue 7 first."""
    call = f"if (s.instance_type == 0) clone(CloneType.{kind}, 5);"
    egress = "hdr.h.a = (bit<8>) s.priority; hdr.h.b = (bit<8>) s.instance_type;"
    made = Made(tmp_path, **{"ingress": call, "egress": egress} if kind == "I2E" else {"egress": egress + call})
    engine = made.engine(name)
    for service in (0, 6):
        engine.set_clone_session(5, [Replica(3, 0)], 0, service)
        instance = 1 if kind == "I2E" else 2
        assert sorted(made.sent("0102", engine)) == [(1, "0000"), (3, f"{service:02x}{instance:02x}")]
