"""Time in slices: the same run, held, stepped and broken from other threads."""

import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from common.journal import Journal
from judging.journal import read_file
from judging.run import Run
from page.pacing import PacedInjector, PacedWorld, RunPacer
from running.timeline import Paper
from topo.fault import ActiveFaults, Fault
from topo.planfile import load_plan

PLAN = load_plan("tiny")


class Time:
    """A world in which nothing but time passes."""

    def __init__(self) -> None:
        self.t_ns = 0
        self.waits: list[int] = []
        self.board = ActiveFaults(PLAN, Paper())
        self.thread = threading.get_ident()
        self.active = self

    def now_ns(self) -> int:
        return self.t_ns

    def wait_until(self, t_ns: int) -> None:
        self.waits.append(t_ns)
        self.t_ns = max(self.t_ns, t_ns)

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        self.thread = threading.get_ident()
        return self.board.inject(verb, target, value, seed)

    def undo(self, fault: Fault) -> None:
        self.board.undo(fault)

    def faults(self) -> list[Fault]:
        return self.board.faults()

    def close(self) -> None:
        pass


def running(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    return thread


def test_time_passes_in_slices_and_ends_where_it_was_to_end() -> None:
    time = Time()
    PacedWorld(time, RunPacer(), 30).wait_until(100)  # type: ignore[arg-type]
    assert time.waits == [30, 60, 90, 100, 100]


def test_a_held_run_moves_by_steps_only() -> None:
    time, pacer = Time(), RunPacer(paused=True)
    world = PacedWorld(time, pacer, 10)  # type: ignore[arg-type]
    thread = running(lambda: world.wait_until(1000))
    assert pacer.do(lambda: time.t_ns) == 0
    for expected in (10, 20, 30):
        pacer.step()
        assert pacer.do(lambda: 0) == 0  # served before or after the step's slice
        while pacer.do(lambda: time.t_ns) < expected:
            pass
        assert pacer.do(lambda: time.t_ns) == expected
    pacer.resume()
    thread.join(10)
    assert time.t_ns == 1000


def test_what_others_want_is_done_by_the_runs_own_thread_and_journalled(tmp_path: Path) -> None:
    time, pacer = Time(), RunPacer(paused=True)
    world = PacedWorld(time, pacer, 10)  # type: ignore[arg-type]
    thread = running(lambda: world.wait_until(100))
    journal = Journal(tmp_path / "faults.jsonl", "lab", time.now_ns)
    hands = PacedInjector(time, pacer, journal)  # type: ignore[arg-type]
    fault = hands.inject("loss", "p0l0-p0s0", 5.0)
    assert hands.faults() == [fault]
    assert time.thread == thread.ident
    with pytest.raises(ValueError, match="in force already"):
        hands.inject("loss", "p0l0-p0s0", 5.0)
    hands.inject("switch-reboot", "p0s0")
    hands.undo(fault)
    pacer.resume()
    thread.join(10)
    lines = read_file(tmp_path / "faults.jsonl")
    assert [(line["verb"], line["state"]) for line in lines] == [
        ("loss", "begin"), ("switch-reboot", "begin"), ("switch-reboot", "end"), ("loss", "end"),
    ]  # fmt: skip
    assert all(fault.by_hand for fault in Run(lines).faults)


def test_after_the_end_nobody_waits() -> None:
    time, pacer = Time(), RunPacer()
    PacedWorld(time, pacer, 10).close()  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="the run is over"):
        pacer.do(lambda: 0)


def test_two_threads_that_end_a_run_at_once_both_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both see the same work that waits; who finds it gone must not wait for more."""
    pacer, barrier = RunPacer(), threading.Barrier(2)
    pacer.resume()  # leaves one piece of work
    empty = queue.Queue.empty

    def both_look(self: queue.Queue[object]) -> bool:
        found = empty(self)
        if not found:
            barrier.wait(5)
        return found

    monkeypatch.setattr(queue.Queue, "empty", both_look)
    threads = [running(pacer.end) for _ in range(2)]
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)
