"""The native engine, stepped: tables, queues, time, counters, its compiler, and random lives beside the reference."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4c.entries import ActionCall, Entry, Lpm
from p4c.model import Program
from switch.engine import PortConfig
from switch.native import build
from switch.native.engine import NativeEngine
from tests.helpers.engines.leaf_traffic import (
    OWN_USID,
    action_name,
    install_own_usid,
    install_route,
    ipv6_frame,
    table_name,
    usid_address,
)
from tests.helpers.engines.life_inputs import PROGRAMS
from tests.helpers.engines.scenario import Scenario
from tests.helpers.waiting import eventually

FRAME = ipv6_frame(usid_address(OWN_USID, 0x2000, 0x3000), bytes(946))  # 1000 bytes


@pytest.fixture
def engine(leaf: Program) -> Iterator[NativeEngine]:
    engine = NativeEngine(seed=1)
    engine.load(leaf)
    for port in (1, 2, 3):
        engine.configure_port(port, PortConfig(), 0)
    install_own_usid(engine)
    install_route(engine)
    yield engine
    engine.close()


def test_a_frame_takes_its_bytes_over_the_rate_plus_the_delay(engine: NativeEngine) -> None:
    engine.configure_port(2, PortConfig(rate_bps=8_000_000, delay_ns=500), 0)
    for _ in range(3):
        engine.receive(1, FRAME, 0)
    assert engine.next_event_ns() == 1_000_000
    assert engine.advance(999_999) == []
    assert [out.t_ns for out in engine.advance(10_000_000)] == [1_000_500, 2_000_500, 3_000_500]
    assert engine.next_event_ns() is None


def test_a_late_caller_does_not_slow_the_port(engine: NativeEngine) -> None:
    engine.configure_port(2, PortConfig(rate_bps=8_000_000), 0)
    for _ in range(4):
        engine.receive(1, FRAME, 0)
    assert [out.t_ns for out in engine.advance(60_000_000_000)] == [1_000_000, 2_000_000, 3_000_000, 4_000_000]


def test_a_loaded_program_starts_empty(engine: NativeEngine, leaf: Program) -> None:
    engine.load(leaf)
    engine.receive(1, FRAME, 0)
    assert engine.advance(0) == []
    install_own_usid(engine)
    install_route(engine)
    engine.receive(1, FRAME, 0)
    assert len(engine.advance(0)) == 1


def test_many_entries_are_found_deleted_and_reinserted(engine: NativeEngine) -> None:
    table = table_name(engine, "ipv6_route")
    action = action_name(engine, table, "set_next_hop")
    handles = {
        number: engine.insert_entry(table, Entry((Lpm(usid_address(0x4000, number), 64),), ActionCall(action, (2,))))
        for number in range(3000)
    }
    for number in range(0, 3000, 2):
        engine.delete_entry(table, handles[number])
    for number in (0, 1, 2998, 2999):
        engine.receive(1, ipv6_frame(usid_address(0x4000, number, 1)), number)
        assert len(engine.advance(number)) == number % 2, number
    for number in range(0, 3000, 2):
        engine.insert_entry(table, Entry((Lpm(usid_address(0x4000, number), 64),), ActionCall(action, (2,))))
    engine.receive(1, ipv6_frame(usid_address(0x4000, 2998, 1)), 5000)
    assert len(engine.advance(5000)) == 1


COMPILER = """#!/bin/sh
cd "$(dirname "$0")"
(exec 3>held; read line <never) &
wait
"""


def test_a_compiler_that_does_not_end_is_stopped_with_its_children(tmp_path, monkeypatch) -> None:
    """The command of a compiler runs the compiler proper as its child, which keeps the pipes open."""
    script = tmp_path / "cc"
    script.write_text(COMPILER)
    script.chmod(0o755)
    for name in ("held", "never"):
        os.mkfifo(tmp_path / name)
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    monkeypatch.setattr(build, "COMPILER_S_MAX", 0.3)
    with pytest.raises(build.EngineBuildError, match=r"C compiler must end within 0\.3 s: .*cc program\.c was stopped"):
        build._run((str(script), "program.c"))

    def released() -> bool:
        try:
            return os.read(held, 1) == b""
        except BlockingIOError:  # a process has the other end
            return False

    eventually(released, "the compiler's child has ended")
    os.close(held)


PLAYED = (Path(__file__).parents[1] / "frontend" / "programs").glob("*.stf")
ALL = [*PROGRAMS.glob("*.p4"), *(path.with_suffix(".p4") for path in PLAYED if "union" not in path.stem)]


@pytest.mark.parametrize("path", sorted(ALL), ids=lambda path: path.stem)
def test_programs_made_of_every_construct_agree(path, compiled) -> None:
    for seed in range(5):
        Scenario(compiled(path), seed).run(60)
