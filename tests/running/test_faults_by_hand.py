"""Faults that somebody injects during a run are part of it, and do not end it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judging import checks
from judging.judge import verdict_of
from judging.measures import recovery
from judging.reports import comparison, report, tables
from judging.run import Run, fault_spans
from judging.story import Story
from running.directory import RunDirectory
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from scenarios import library
from topo.planfile import load_plan

Build = Callable[..., Run]
SECOND = 10**9


def line(t_s: float, node: str, verb: str, target: str, state: str) -> dict[str, Any]:
    fields = {"verb": verb, "target": target, "state": state, "arguments": {}}
    return {"t_ns": round(t_s * SECOND), "node": node, "kind": "fault", **fields}


def test_a_fault_of_the_timeline_that_somebody_undoes_ends_there() -> None:
    (span,) = fault_spans(
        [
            line(1, "runner", "link-down", "p0l0-p0s0", "begin"),
            line(1.1, "lab", "link-down", "p0l0-p0s0", "begin"),
            line(2, "lab", "link-down", "p0l0-p0s0", "end"),
        ]
    )
    assert (span.stop_ns, span.by_hand) == (2 * SECOND, False)


def test_a_fault_that_begins_again_takes_the_place_of_the_one_before() -> None:
    spans = fault_spans(
        [line(t_s, "lab", "loss", "p0l0>p0s1", state) for t_s, state in ((1, "begin"), (2, "begin"), (3, "end"))]
    )
    assert [(span.start_ns / SECOND, span.stop_ns and span.stop_ns / SECOND) for span in spans] == [(1, 2), (2, 3)]


def test_a_fault_by_hand_is_in_recovery_what_was_done_the_header_and_the_comparison(made_up: Build) -> None:
    plain = made_up()
    silent = ("lab", "blackhole", "p1l0-p1s0")
    meddled = Run([*plain.lines, line(18, *silent, "begin"), line(20, *silent, "end")])
    titles = [found.title for found in recovery.recoveries(meddled)]
    assert titles == ["link-down p0l0-p0s1", "blackhole p1l0-p1s0 (by hand)"]
    assert tables.fault_rows(meddled)[1] == ["18.00 s", "blackhole", "p1l0-p1s0 (by hand)", "2.00 s"]
    text = report.summary(meddled, Story("A claim", ""), verdict_of(meddled, checks.always()))
    assert text.splitlines()[1].endswith(" · blackhole p1l0-p1s0 (by hand)")
    assert "blackhole p1l0-p1s0 (by hand)" in text
    likeness = comparison.findings_between([plain, meddled])[0]
    assert (likeness.holds, "other faults were injected" in likeness.reason) == (None, True)


@pytest.mark.parametrize("at_s", [3.5, 4.5])  # before the timeline does the same, and while it is in force
def test_a_run_goes_on_when_somebody_did_or_undid_what_its_timeline_would(tmp_path: Path, at_s: float) -> None:
    class Meddled(SimulatedWorld):
        """Somebody takes the link down before the timeline does, or brings it back before."""

        done = False

        def wait_until(self, t_ns: int) -> None:
            if t_ns >= at_s * SECOND and not self.done:
                super().wait_until(round(at_s * SECOND))
                self.done = True
                if at_s < 4.2:
                    self.active.inject("link-down", "p0l0-p0s0")
                else:
                    self.active.undo(self.active.faults()[0])
            super().wait_until(t_ns)

    scenario = library.find("smoke")
    choices = Choices(transport("mrc"), load_plan("tiny"), seed=1, world="simulated")
    directory = RunDirectory.create(tmp_path, "smoke", 1)
    told: list[str] = []
    runner = Runner(RunSpec(scenario, choices), directory, told.append)
    runner.run(lambda: Meddled(choices.running_plan, choices.transport, 1, directory, told.append))
    run = Run.open(directory.path)
    assert ("link-down p0l0-p0s0: by hand already" in told) == (at_s < 4.2)
    assert ("link-down p0l0-p0s0 undone: by hand already" in told) == (at_s > 4.2)
    assert list(run.phases) == ["warmup", "reference", "faults", "heal"]
    assert not [line for line in run.kind("error") if line.get("fatal")]
