"""Timelines: what a seed decides, the order in which things are done, and how long the runner waits."""

import json
import re
import shlex
from collections.abc import Callable, Collection
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cli import main as cli
from cli.main import parser
from judging import checks
from judging.judge import verdict_of
from judging.measures import recovery
from judging.measures.recovery import bursts
from judging.reports import comparison, report, tables
from judging.reports.plots import CHARACTERS, burst_title, placed
from judging.run import FaultSpan, Run, fault_spans
from judging.story import Story
from running.directory import RunDirectory, find
from running.fault_words import parse, spell
from running.options import Choices
from running.runner import Runner
from running.spec import RunSpec
from running.timeline import moments, rehearse
from running.transport_choice import TRANSPORTS, transport
from running.worlds.simulated import SimulatedWorld
from scenarios import library
from scenarios.scenario import Phase, Scenario, Setting, TimedFault, Workload, merged, on_single_plane
from tests.helpers.chosen import chosen
from topo.fault import FaultError, make_fault
from topo.planfile import load_plan

TRAFFIC = (*library.NAMES, *library.OF_THE_PAPER)


def setting_for(scenario: Scenario, seed: int = 1, transport_name: str = "mrc") -> Setting:
    return Setting(load_plan(scenario.plan), transport_name, seed, {p.name: p.seconds for p in scenario.phases})


@pytest.mark.parametrize("name", TRAFFIC)
def test_every_fault_and_workload_of_every_scenario_fits_its_plan(name: str) -> None:
    scenario = library.find(name)
    setting = setting_for(scenario)
    for fault in scenario.timeline(setting):
        assert 0 <= fault.at_s <= setting.phases[fault.phase]
        make_fault(setting.plan, fault.verb, fault.target, fault.value, fault.seed)
        mapped = on_single_plane(fault)
        make_fault(setting.plan.single_plane(), mapped.verb, mapped.target, mapped.value, mapped.seed)
    for workload in scenario.workloads(setting):
        assert workload.phase in setting.phases
        for host in workload.ranks or ():
            setting.plan.host(host)


@pytest.mark.parametrize("name", TRAFFIC)
def test_the_same_seed_gives_the_same_timeline_and_workloads(name: str) -> None:
    scenario = library.find(name)
    first, second = setting_for(scenario, seed=5), setting_for(scenario, seed=5)
    assert list(scenario.timeline(first)) == list(scenario.timeline(second))
    assert list(scenario.workloads(first)) == list(scenario.workloads(second))
    assert scenario.checks(first)


@pytest.mark.parametrize("name", ["link-flap", "switch-reboot", "nic-port", "cold-start", "maintenance"])
def test_every_fault_of_the_faults_phase_is_undone_before_healing_ends(name: str) -> None:
    scenario = library.find(name)
    setting = setting_for(scenario)
    for fault in scenario.timeline(setting):
        if fault.for_s is not None:
            assert fault.at_s + fault.for_s <= setting.phases[fault.phase]


@pytest.mark.parametrize("short", [False, True])
def test_link_flaps_are_spread_over_their_phase_and_stay_as_many_on_the_single_plane(short: bool) -> None:
    scenario = library.find("link-flap").shortened() if short else library.find("link-flap")
    for seed in range(200):
        setting = setting_for(scenario, seed)
        flaps = scenario.timeline(setting)
        apart_s = [after.at_s - before.at_s for before, after in pairwise(flaps)]
        part_s = (setting.phases["faults"] - 4.0) / len(flaps)
        assert min(apart_s) >= part_s / 2, f"seed {seed}: {apart_s}"
        assert flaps[0].at_s < part_s
        lengths_s = sorted(flap.for_s or 0.0 for flap in flaps)
        assert 0.5 <= lengths_s[0] < 0.9
        assert 1.6 < lengths_s[-1] <= 2.0
        assert flaps[-1].at_s > part_s * (len(flaps) - 1)
        assert len(merged([on_single_plane(flap) for flap in flaps])) == len(flaps)


@pytest.mark.parametrize("name", [name for name in TRAFFIC if name != "flap-trace"])
def test_a_chart_has_room_for_the_name_of_every_fault_of_a_shipped_timeline(name: str) -> None:
    scenario = library.find(name)
    for seed in range(50):
        setting = setting_for(scenario, seed)
        starts_s = dict(zip(setting.phases, accumulate(setting.phases.values(), initial=0.0), strict=False))
        end_s = sum(setting.phases.values())
        faults = scenario.timeline(setting)
        begun = sorted(((starts_s[f.phase] + f.at_s, f) for f in faults), key=lambda pair: pair[0])
        spans = [FaultSpan(one.verb, one.target, {}, round(at_s * 1e9), round(at_s * 1e9) + 1) for at_s, one in begun]
        names = [(burst[0].start_ns / 1e9, burst_title(burst)) for burst in bursts(spans, round(end_s * 1e9 / 50))]
        hidden = [label for label in placed(names, end_s, CHARACTERS) if label.row is None]
        assert hidden == [], f"seed {seed}"


def test_ends_come_before_beginnings_at_the_same_instant_and_a_fault_needs_a_phase() -> None:
    first = TimedFault(0.0, "link-down", "a", 2.0)
    second = TimedFault(2.0, "link-down", "a", 1.0)
    order = [(moment.at_s, moment.begin, moment.fault.at_s) for moment in moments([second, first], {"faults": 10.0})]
    assert order == [(10.0, True, 0.0), (12.0, False, 0.0), (12.0, True, 2.0), (13.0, False, 2.0)]
    with pytest.raises(ValueError, match="no phase 'later': there is faults"):
        moments([TimedFault(0.0, "link-down", "a", phase="later")], {"faults": 0.0})


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.0])
@pytest.mark.parametrize("name", TRAFFIC)
def test_a_stretched_or_shortened_run_has_the_same_faults_at_scaled_times(name: str, factor: float) -> None:
    scenario = library.find(name)

    def faults(time_factor: float) -> list[TimedFault]:
        choices = Choices(transport("mrc"), load_plan(scenario.plan), seed=4, time_factor=time_factor)
        return RunSpec(scenario, choices).faults()

    for usual, scaled in zip(faults(1.0), faults(factor), strict=True):
        assert (scaled.verb, scaled.target, scaled.phase) == (usual.verb, usual.target, usual.phase)
        assert scaled.at_s == pytest.approx(usual.at_s * factor)
        assert scaled.for_s == (None if usual.for_s is None else pytest.approx(usual.for_s * factor))


@pytest.mark.parametrize(
    ("target", "mapped"),
    [
        ("p3l1-p3s2", "p0l1-p0s2"), ("p3s2-p3l1", "p0s2-p0l1"), ("p3s2>p3l1", "p0s2>p0l1"), ("h3-p2l1", "h3-p0l1"),
        ("p2s1", "p0s1"), ("p1l0", "p0l0"), ("p1c3", "p0c3"), ("p3s2>p3c1", "p0s2>p0c1"), ("h3.p2", "h3.p0"),
        ("h12.p7", "h12.p0"),
    ],
)  # fmt: skip
def test_a_target_in_any_plane_becomes_the_one_of_the_single_plane(target: str, mapped: str) -> None:
    fault = TimedFault(1.0, "loss", target, 2.0, 20.0, 9)
    assert on_single_plane(fault) == TimedFault(1.0, "loss", mapped, 2.0, 20.0, 9)


def test_two_planes_links_that_are_one_on_the_single_plane_are_merged_however_they_are_named() -> None:
    faults = [TimedFault(1.0, "link-down", "p1l0-p1s2", 4.0), TimedFault(2.0, "link-down", "p3s2-p3l0", 6.0)]
    assert merged([on_single_plane(fault) for fault in faults]) == [TimedFault(1.0, "link-down", "p0l0-p0s2", 7.0)]


@pytest.mark.parametrize("name", TRAFFIC)
def test_on_the_single_plane_no_target_is_held_twice_at_once_and_no_outage_is_cut_short(name: str) -> None:
    scenario = library.find(name)
    for seed in range(50):
        mapped = [on_single_plane(fault) for fault in scenario.timeline(setting_for(scenario, seed))]
        ends: dict[tuple[str, str, str], float] = {}
        kept = merged(mapped)
        for fault in kept:
            key = (fault.phase, fault.verb, fault.target)
            assert ends.get(key, -1.0) < fault.at_s
            ends[key] = float("inf") if fault.for_s is None else fault.at_s + fault.for_s
        for fault in mapped:
            end_s = float("inf") if fault.for_s is None else fault.at_s + fault.for_s
            assert any(
                other.target == fault.target
                and other.at_s <= fault.at_s
                and end_s <= (float("inf") if other.for_s is None else other.at_s + other.for_s) + 1e-9
                for other in kept
            )


def test_an_unknown_transport_is_refused_with_the_choices() -> None:
    assert set(TRANSPORTS) >= {"mrc", "roce", "roce-8qp"}
    with pytest.raises(ValueError, match="no transport 'tcp': valid are mrc, "):
        transport("tcp")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (TimedFault(-1.0, "link-down", "p0l0-p0s0", 1.0), "at -1 s: phase 'faults' lasts 4.5 s"),
        (TimedFault(4.6, "link-down", "p0l0-p0s0"), "at 4.6 s: phase 'faults' lasts 4.5 s"),
        (TimedFault(1.0, "link-down", "p0l0-p0s0", 60.0), "for 60 s: the run ends 5.5 s after that"),
        (TimedFault(1.0, "link-down", "p0l0-p0s0", 0.0), "it may last up to 5.5 s; without for_s it stays"),
        (TimedFault(1.0, "link-down", "p0l0-p0s0", phase="later"), "no phase 'later': there is warmup, "),
        (TimedFault(float("nan"), "link-down", "p0l0-p0s0"), "a fault in it begins at 0 to 4.5"),
        (TimedFault(1.0, "switch-reboot", "p0s0", 3.0), "switch-reboot p0s0 is not in force; faults in force: none"),
        (TimedFault(1.0, "loss", "p0l0-p0s9", 3.0, 5.0), "no p0s9"),
    ],
)
def test_a_fault_at_no_time_of_the_run_is_refused_with_the_times_there_are(fault: TimedFault, said: str) -> None:
    scenario = replace(library.find("smoke"), timeline=lambda setting: [fault])
    with pytest.raises(ValueError, match=re.escape(said)):
        rehearse(RunSpec(scenario, Choices(transport("mrc"), load_plan("tiny"), seed=1)))


def test_the_same_fault_twice_is_refused_and_one_after_the_other_is_not() -> None:
    first = TimedFault(0.0, "link-down", "p0l0-p0s0", 2.0)
    choices = Choices(transport("mrc"), load_plan("tiny"), seed=1)
    other_end = replace(first, at_s=1.0, target="p0s0-p0l0")
    for second, fine in ((other_end, False), (first, False), (replace(first, at_s=2.0), True)):
        scenario = replace(library.find("smoke"), timeline=lambda setting, second=second: [first, second])
        if fine:
            rehearse(RunSpec(scenario, choices))
        else:
            with pytest.raises(ValueError, match="link-down p0l0-p0s0 is in force already"):
                rehearse(RunSpec(scenario, choices))


@pytest.mark.parametrize("factor", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("name", TRAFFIC)
def test_every_shipped_timeline_keeps_within_its_run(name: str, factor: float) -> None:
    scenario = library.find(name)
    for seed in range(5):
        chosen = Choices(transport("mrc", scenario.settings), load_plan(scenario.plan), seed=seed, time_factor=factor)
        rehearse(RunSpec(scenario, chosen))


STREAM = Scenario(
    name="own", title="own", description="", plan="tiny", until_done=True, phases=(Phase("run", 50.0),),
    workloads=lambda setting: [Workload("permutation", {"messages": 1}, phase="run")],
    checks=lambda setting: [checks.bytes_right()],
)  # fmt: skip


@pytest.mark.parametrize("world", ["simulated", "emulated"])
def test_a_run_that_ends_with_its_workloads_ends_soon_however_slow_its_links_are(world: str, tmp_path: Path) -> None:
    """Ports of 10 Mb/s that stand for 100 Gb/s make a second of lab time 10,000 long."""
    directory = RunDirectory.create(tmp_path, "own", 1)
    choices = Choices(transport("mrc"), load_plan("tiny"), seed=1, world=world)
    ended: list[float] = []

    class Timed(SimulatedWorld):
        def close(self) -> None:
            ended.append(self.now_ns() / 1e9)
            super().close()

    def make() -> SimulatedWorld:
        return Timed(load_plan("tiny"), transport("mrc"), 1, directory, lambda text: None)

    Runner(RunSpec(STREAM, choices), directory, tell=lambda text: None).run(make)
    assert 0 < ended[0] < 5


DEAD = {("p0l0", "p0s0")}


def rerouted(tmp_path: Path, words: list[str], lasts_s: float) -> list[tuple[float, set[tuple[str, str]]]]:
    """When a run with a link down from 1 s on changed its routes, and the links that these leave out."""
    spec = chosen(["smoke", "--transport", "roce", "--world", "simulated", "--seed", "1", *words])
    cut = TimedFault(1.0, "link-down", "p0l0-p0s0", for_s=lasts_s, phase="run")
    scenario = replace(
        STREAM,
        until_done=lasts_s > 1,
        phases=(Phase("run", 2 + lasts_s),),
        workloads=lambda setting: [Workload("permutation", {"messages": 100 if lasts_s > 1 else 1}, phase="run")],
        timeline=lambda setting: [cut],
    )
    directory = RunDirectory.create(tmp_path, "own", 1)
    made: list[tuple[float, set[tuple[str, str]]]] = []

    class Listed(SimulatedWorld):
        def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
            made.append((round(self.now_ns() / 1e9, 3), set(dead_links)))
            super().reconverge(dead_links)

        def verify(self) -> int:
            assert super().verify() == 0
            return 0

    def make() -> SimulatedWorld:
        return Listed(spec.choices.running_plan, spec.choices.transport, 1, directory, lambda text: None)

    Runner(RunSpec(scenario, spec.choices), directory, tell=lambda text: None).run(make)
    return made


@pytest.mark.parametrize(
    ("words", "after_s"),
    [
        ([], 0.1),
        (["--reconvergence", "0"], 0.0),
        (["--reconvergence", "0.5"], 0.5),
        (["--reconvergence", "never"], None),
    ],
)
def test_switches_leave_a_dead_link_out_so_long_after_it_fails_and_take_it_back_so_long_after_it_returns(
    words: list[str], after_s: float | None, tmp_path: Path
) -> None:
    expected = [] if after_s is None else [(1 + after_s, DEAD), (2 + after_s, set())]
    assert rerouted(tmp_path, words, 1.0) == expected


@pytest.mark.parametrize("given", ["-1", "-0.5", "nan", "soon"])
def test_a_time_before_the_failure_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    """-1 was taken for the default, whose place it holds."""
    with pytest.raises(SystemExit, match="2"):
        parser("run").parse_args(["run", "smoke", "--transport", "roce", f"--reconvergence={given}"])
    assert f"must be a number of seconds from 0 on, or 'never' (got '{given}')" in capsys.readouterr().err


def test_a_run_that_ends_while_a_link_is_dead_has_the_planned_tables_in_the_end(tmp_path: Path) -> None:
    (first, last) = rerouted(tmp_path, [], 9.0)
    assert first == (1.1, DEAD)
    assert last[0] < 9
    assert last[1] == set()


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
