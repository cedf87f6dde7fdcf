"""Faults added to a scenario by words or by hand during a run: stored and repeated like any timeline."""

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import main as cli
from judging import checks
from judging.judge import verdict_of
from judging.measures import recovery
from judging.reports import comparison, report, tables
from judging.run import Run, fault_spans
from judging.story import Story
from running.directory import RunDirectory, find
from running.fault_words import parse, spell
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from scenarios import library
from scenarios.scenario import TimedFault
from topo.fault import FaultError
from topo.planfile import load_plan

PHASES = library.find("smoke").phases
SIMULATED = ("--world", "simulated", "--plain", "--seed", "3")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("link-down p0l0-p0s0 @5 for 3", TimedFault(5, "link-down", "p0l0-p0s0", 3)),
        ("loss p0l0>p0s0 20% @ 1.5", TimedFault(1.5, "loss", "p0l0>p0s0", value=20)),
        ("switch-reboot p1s0 @0 in reference", TimedFault(0, "switch-reboot", "p1s0", phase="reference")),
    ],
)
def test_words_make_a_fault(text: str, fault: TimedFault) -> None:
    assert parse(text, PHASES) == fault


@given(
    st.builds(
        TimedFault,
        at_s=st.integers(0, 100).map(lambda n: n / 4),
        verb=st.sampled_from(["link-down", "loss", "drain"]),
        target=st.sampled_from(["p0l0-p0s0", "p1s3", "h3.p2", "p0l0>h1"]),
        for_s=st.none() | st.integers(1, 100).map(lambda n: n / 4),
        value=st.none() | st.integers(0, 100).map(float),
        phase=st.sampled_from(["faults", "heal"]),
    )
)
def test_what_is_stored_reads_back_as_the_same_fault(fault: TimedFault) -> None:
    assert parse(spell(fault), PHASES) == fault


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("link-down p0l0-p0s0", "such as 'link-down p0l0-p0s0 @5 for 3'"),
        ("link-up p0l0-p0s0 @5", r"no fault 'link-up' \(did you mean link-down\?\): valid are link-down, "),
        ("loss p0l0-p0s0 1.2.3 @5", "could not convert"),
    ],
)
def test_words_that_are_none_are_refused_with_the_form(text: str, said: str) -> None:
    with pytest.raises(FaultError, match=said):
        parse(text, PHASES)


def test_a_scenario_without_faults_takes_them_while_it_is_judged() -> None:
    assert parse("drain p0s0 @1", library.find("collision").phases).phase == "reference"


def test_added_faults_happen_are_stored_repeat_and_are_what_a_comparison_is_about(tmp_path, capsys) -> None:
    runs = ("--runs", str(tmp_path))
    added = ("--fault", "loss p1l0-p1s0 20 @1 for 2", "--fault", "link-down p0l1-p0s1 @3 for 0.5")
    cli.main(["run", "smoke", *SIMULATED, *runs])
    cli.main(["run", "smoke", *SIMULATED, *runs, *added])
    path = find(tmp_path, "latest")
    assert {fault.target for fault in Run.open(path).faults} >= {"p1l0-p1s0", "p0l1-p0s1"}
    options = json.loads((path / "options.json").read_text())
    assert options["added_faults"] == [
        "loss p1l0-p1s0 20 @1 for 2 in faults",
        "link-down p0l1-p0s1 @3 for 0.5 in faults",
    ]
    assert "loss p1l0-p1s0 20 @1 for 2 in faults" in (path / "summary.txt").read_text().splitlines()[1]
    capsys.readouterr()
    assert cli.main(["compare", *runs]) == 0
    assert "but for faults added by --fault, none against loss p1l0-p1s0 20" in capsys.readouterr().out
    # The command that the report gives repeats the run.
    page = (path / "report.html").read_text().replace("&#x27;", "'").replace("&gt;", ">")
    command = next(line for line in page.split("<pre>") if line.startswith("./lab run")).split("</pre>")[0]
    cli.main([*shlex.split(command)[1:], "--plain", *runs])
    assert json.loads((find(tmp_path, "latest") / "options.json").read_text())["key"] == options["key"]


def test_the_baseline_has_added_faults_on_its_one_plane(tmp_path) -> None:
    words_ = ["run", "smoke", *SIMULATED, "--runs", str(tmp_path), "--transport", "roce"]
    cli.main([*words_, "--fault", "loss p1l0-p1s0 20 @1 for 2"])
    assert "p0l0-p0s0" in {fault.target for fault in Run.open(find(tmp_path, "latest")).faults if fault.verb == "loss"}


def test_two_runs_with_other_added_faults_differ_in_those_only(made_up: Callable[..., Run]) -> None:
    first, second = made_up(changed={"added_faults": ["a @1"]}), made_up(changed={"added_faults": ["b @1"]})
    assert comparison.findings_between([first, second])[0].reason.endswith(
        "but for faults added by --fault, a @1 against b @1"
    )


Build = Callable[..., Run]
SECOND = 10**9


def line(t_s: float, node: str, verb: str, target: str, state: str) -> dict[str, Any]:
    fields = {"verb": verb, "target": target, "state": state, "arguments": {}}
    return {"t_ns": round(t_s * SECOND), "node": node, "kind": "fault", **fields}


def test_a_fault_that_somebody_undoes_ends_there_and_one_that_begins_again_takes_its_place() -> None:
    (span,) = fault_spans(
        [
            line(1, "runner", "link-down", "p0l0-p0s0", "begin"),
            line(1.1, "lab", "link-down", "p0l0-p0s0", "begin"),
            line(2, "lab", "link-down", "p0l0-p0s0", "end"),
        ]
    )
    assert (span.stop_ns, span.by_hand) == (2 * SECOND, False)
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
def test_a_run_goes_on_when_somebody_did_or_undid_what_its_timeline_would(tmp_path, at_s: float) -> None:
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
