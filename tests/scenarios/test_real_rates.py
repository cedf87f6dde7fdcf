"""The same experiment at lab rates and at real ones: as many round trips, packets and steps, told in microseconds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scenarios import library
from scenarios.judging import steps
from scenarios.judging.counters import qp_totals
from scenarios.judging.judge import judge
from scenarios.judging.run import Run
from scenarios.judging.verdict import Verdict
from scenarios.running.directory import RunDirectory
from scenarios.running.runner import Choices, Runner
from scenarios.running.setting import setting_of
from scenarios.running.transport_choice import transport
from scenarios.worlds.simulated import SimulatedWorld
from topo.planfile import load_plan

LAB_BPS, HARDWARE_BPS = 10_000_000, 100_000_000_000


def simulate(name: str, rate_bps: int, directory: Path, time_factor: float = 1.0) -> tuple[Verdict, Run]:
    scenario = library.find(name)
    plan = load_plan(scenario.plan).at_rate(rate_bps)
    chosen = transport("mrc", scenario.settings)
    choices = Choices(chosen, plan, seed=3, world="simulated", time_factor=time_factor)
    run = RunDirectory.create(directory, name, 3)
    runner = Runner(scenario, choices, run, tell=lambda event: None)
    runner.run(lambda: SimulatedWorld(choices.running_plan, chosen, 3, run, runner.tell))
    verdict = judge(run.path, list(scenario.checks(runner.setting)), scenario.story)
    again = setting_of(json.loads((run.path / "options.json").read_text()))
    assert again == runner.setting
    return verdict, Run.open(run.path)


def test_smoke_at_100_gigabits_a_second_is_smoke_in_round_trips(tmp_path: Path) -> None:
    slow_verdict, slow = simulate("smoke", LAB_BPS, tmp_path / "slow")
    fast_verdict, fast = simulate("smoke", HARDWARE_BPS, tmp_path / "fast")
    assert (slow_verdict.holds, fast_verdict.holds) == (True, True)
    assert slow.pace == 1.0
    assert fast.pace == pytest.approx(1e-4, rel=0.001)
    for name, span in slow.phases.items():
        assert fast.phases[name].length_ns == pytest.approx(span.length_ns * fast.pace, rel=0.001)
    slow_steps, fast_steps = (steps.times(steps.steps(run)) for run in (slow, fast))
    assert slow_steps
    assert fast_steps
    assert fast_steps.count == slow_steps.count
    assert fast_steps.median_ns == pytest.approx(slow_steps.median_ns * fast.pace, rel=0.02)
    assert qp_totals(fast)["data_packets"] == pytest.approx(qp_totals(slow)["data_packets"], rel=0.02)
    assert len(fast.kind("sample")) == pytest.approx(len(slow.kind("sample")), rel=0.02)
    summary = (tmp_path / "fast" / "latest" / "summary.txt").read_text()
    assert "reference  300 µs  " in summary
    assert " Gb/s  100.0%" in summary


@pytest.mark.slow
@pytest.mark.parametrize("name", library.NAMES)
def test_every_scenario_ends_true_at_100_gigabits_a_second(name: str, tmp_path: Path) -> None:
    verdict, _ = simulate(name, HARDWARE_BPS, tmp_path)
    assert [f"{finding.check}: {finding.reason}" for finding in verdict.findings if finding.holds is not True] == []
