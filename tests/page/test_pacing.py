"""Time in slices, held and broken from other threads; what was done by hand, as a scenario that does the same."""

import json
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from common.journal import Journal
from judging.journal import read_file
from judging.run import Run
from page.live import written
from page.pacing import PacedInjector, PacedWorld, RunPacer
from page.played import played
from running.timeline import Paper
from scenarios import library
from scenarios.scenario import Setting
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


def test_time_passes_in_slices_to_its_end_and_after_that_nobody_waits() -> None:
    time = Time()
    PacedWorld(time, RunPacer(), 30).wait_until(100)  # type: ignore[arg-type]
    assert time.waits == [30, 60, 90, 100, 100]
    time, pacer = Time(), RunPacer()
    PacedWorld(time, pacer, 10).close()  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="the run is over"):
        pacer.do(lambda: 0)


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


SECOND = 1_000_000_000


def run_with(*faults: tuple[float, str, str, str, str], phases: bool = True, **options: object) -> Run:
    """(seconds, node, verb, target, state) each."""
    lines = [{"t_ns": 0, "node": "runner", "kind": "options", **options}]
    marks = [(1.0, "warmup", "start"), (2.0, "warmup", "stop"), (2.0, "faults", "start"), (20.0, "faults", "stop")]
    for t_s, name, state in marks if phases else []:
        lines.append({"t_ns": round(t_s * SECOND), "node": "runner", "kind": "phase", "name": name, "state": state})
    for t_s, node, verb, target, state in faults:
        value = {"value": 20} if verb == "loss" else {}
        fields = {"verb": verb, "target": target, "state": state, "arguments": value}
        lines.append({"t_ns": round(t_s * SECOND), "node": node, "kind": "fault", **fields})
    lines.append({"t_ns": 20 * SECOND, "node": "h0", "kind": "step"})
    return Run(sorted(lines, key=lambda line: int(str(line["t_ns"]))))


def test_the_file_holds_every_fault_at_its_time(tmp_path: Path) -> None:
    run = run_with(
        (3.5, "lab", "loss", "p0l0-p0s0", "begin"), (5.0, "lab", "loss", "p0l0-p0s0", "end"),
        (6.0, "runner", "link-down", "p1l0-p1s0", "begin"), (6.5, "runner", "link-down", "p1l0-p1s0", "end"),
        (7.25, "lab", "switch-reboot", "p1s1", "begin"), (7.25, "lab", "switch-reboot", "p1s1", "end"),
        (9.0, "lab", "drain", "p0s1", "begin"), scenario="smoke", plan="tiny", transport="mrc", seed=4,
    )  # fmt: skip
    path = tmp_path / "mine.py"
    path.write_text(played(run, path))
    scenario = library.find(str(path))
    faults = [(f.at_s, f.verb, f.target, f.for_s, f.value, f.phase) for f in scenario.timeline(SETTING)]
    assert faults == [
        (1.5, "loss", "p0l0-p0s0", 1.5, 20, "faults"),
        (4.0, "link-down", "p1l0-p1s0", 0.5, None, "faults"),
        (5.25, "switch-reboot", "p1s1", None, None, "faults"),
        (7.0, "drain", "p0s1", None, None, "faults"),
    ]
    assert scenario.plan == "tiny"
    assert scenario.checks(SETTING)


SETTING = Setting(load_plan("tiny"), "mrc", 4, {"faults": 18.0})


def test_a_lab_without_a_scenario_gets_phases_that_hold_everything(tmp_path: Path) -> None:
    run = run_with(
        (4.0, "lab", "link-down", "p0l0-p0s0", "begin"), (9.5, "lab", "link-down", "p0l0-p0s0", "end"), phases=False,
        plan="tiny",
    )  # fmt: skip
    path = tmp_path / "mine.py"
    path.write_text(played(run, path))
    scenario = library.find(str(path))
    (fault,) = scenario.timeline(SETTING)
    assert (fault.at_s, fault.for_s) == (1.0, 5.5)
    assert {phase.name: phase.seconds for phase in scenario.phases}["faults"] == 12


def test_a_played_file_never_replaces_one_that_was_edited_nor_follows_a_link(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        {"t_ns": 0, "node": "runner", "kind": "options", "plan": "tiny"},
        {"t_ns": SECOND, "node": "lab", "kind": "fault", "verb": "drain", "target": "p0s1", "state": "begin"},
        {"t_ns": 2 * SECOND, "node": "h0", "kind": "step"},
    ]
    (tmp_path / "run/journal").mkdir(parents=True)
    (tmp_path / "run/journal/all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    file = tmp_path / "played.py"
    file.write_text("# checks that a user has filled in\n")
    (tmp_path / "played-2.py").symlink_to("elsewhere")
    handed: list[Path] = []
    assert written(tmp_path / "run", file, handed.append)["file"] == "played-3.py"
    assert handed == [tmp_path / "played-3.py"]
    assert library.find("./played-3.py").plan == "tiny"
    assert file.read_text() == "# checks that a user has filled in\n"
    assert not (tmp_path / "elsewhere").exists()


def test_where_nothing_was_done_by_hand_no_file_is_left(tmp_path: Path) -> None:
    lines = run_with((6.0, "runner", "link-down", "p1l0-p1s0", "begin"), scenario="smoke", plan="tiny").lines
    (tmp_path / "run/journal").mkdir(parents=True)
    (tmp_path / "run/journal/all.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match="nothing was done by hand"):
        written(tmp_path / "run", tmp_path / "played.py", lambda path: None)
    assert not (tmp_path / "played.py").exists()
