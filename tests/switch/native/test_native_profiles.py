"""Members and groups that come and go: both engines do the same, and what is deleted costs nothing later."""

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from p4c.entries import ActionCall, Entry, Exact, GroupRef, MemberRef
from p4c.model import Program
from switch.engine import PortConfig
from switch.native import binding
from switch.native.engine import NativeEngine
from tests.helpers.engines.scenario import Pair, Scenario

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
