"""The same experiment at lab rates and at real ones: as many round trips, packets and steps, told in microseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import fmean, variance

import pytest
import tomli_w

from endpoint.mrc.paths.probe_budget import SAVED_MAX
from judging.judge import judge
from judging.measures import goodput, steps
from judging.measures.counters import qp_totals
from judging.run import Run
from judging.verdict import Verdict
from running.assessment import setting_of
from running.directory import RunDirectory
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import library
from tests.helpers.baseline import BASELINE
from topo.plan import Links
from topo.planfile import load_plan, plan_document

LAB_BPS, HARDWARE_BPS = 10_000_000, 100_000_000_000


def simulate(
    name: str, rate_bps: int, directory: Path, time_factor: float = 1.0, *, transport_name: str = "mrc", seed: int = 3,
    plan_file: Path | None = None,
) -> tuple[Verdict, Run]:  # fmt: skip
    scenario = library.find(name)
    source = str(plan_file or scenario.plan)
    plan = load_plan(source).at_rate(rate_bps)
    chosen = transport(transport_name, scenario.settings)
    choices = Choices(chosen, plan, seed=seed, world="simulated", time_factor=time_factor, plan_source=source)
    spec = RunSpec(scenario, choices)
    path = make_run(spec, directory)
    verdict, run = judge(path, spec.checks(), scenario.story), RunDirectory(path)
    assert setting_of(run.options(), run.plan()) == spec.setting
    return verdict, Run.open(path)


@pytest.mark.slow
@pytest.mark.parametrize("gigabits", [100, 200, 400])
@pytest.mark.parametrize("name", library.NAMES)
def test_every_scenario_ends_true_at_hardwares_rates(name: str, gigabits: int, tmp_path: Path) -> None:
    verdict, run = simulate(name, gigabits * 10**9, tmp_path)
    totals = qp_totals(run)
    assert totals["probes"] <= 0.02 * totals["data_packets"] + SAVED_MAX * len(run.agent_samples)
    assert [f"{finding.check}: {finding.reason}" for finding in verdict.findings if finding.holds is not True] == []


def test_checks_tell_rates_in_gigabits_at_hardwares_rates(tmp_path: Path) -> None:
    verdict, _ = simulate("incast", HARDWARE_BPS, tmp_path, 0.15)
    told = {finding.check: finding.reason for finding in verdict.findings}
    assert re.match(r"3[3-9]\d\.\d of 3[3-9]\d\.\d Gb/s, ", told["victim kept"])
    assert re.match(r"7 flows of [45]\d\.\d Gb/s, ", told["incast flows even"])


@pytest.mark.slow
@pytest.mark.parametrize("name", library.NAMES)
def test_the_baseline_fails_at_100_gigabits_a_second_as_at_lab_rates(name: str, tmp_path: Path) -> None:
    # How uneven DCQCN leaves an incast's flows is chance, 9 to 18 % from seed to seed, and the limit is 10 %. Whether a
    # flow crosses the grey link is ECMP's draw: with seed 7 none does.
    seed = 4 if name == "grey-link" else 7
    verdict, _ = simulate(name, HARDWARE_BPS, tmp_path, transport_name="roce", seed=seed)
    assert {finding.check: finding.holds for finding in verdict.findings if not finding.holds} == BASELINE[name]


def test_a_plan_that_is_written_at_400_gigabits_a_second_runs_as_many_round_trips(tmp_path: Path) -> None:
    """Cables of a hardware's length: a base round trip of some 11 full frames' time and 8 times 300 ns."""
    links = Links(400 * 10**9, 400 * 10**9, 300, 300, hardware_rate_bps=400 * 10**9)
    file = tmp_path / "fast.toml"
    file.write_text(tomli_w.dumps(plan_document(replace(load_plan("tiny"), links=links))))
    verdict, run = simulate("smoke", 400 * 10**9, tmp_path, plan_file=file)
    assert verdict.holds is True
    assert run.options["base_rtt_ns"] == 4 * (90 + 600)  # 4352 and 154 bytes take 90.12 ns together
    trips = {name: span.length_ns / run.options["base_rtt_ns"] for name, span in run.phases.items()}
    lab_trips = 1_000_000_000 / load_plan("tiny").base_rtt_ns
    assert trips["reference"] == pytest.approx(3 * lab_trips, rel=0.01)
    lab_share = 49.71 / 80  # of line rate, the smoke run of plan tiny at 10 Mb/s a port
    share = (goodput.of_phase(run, run.phases["reference"]) or 0.0) / (4 * 2 * 400e9)
    assert share == pytest.approx(lab_share, rel=0.02)


@dataclass(frozen=True, slots=True)
class Normalised:
    """A run's figures without units of time: what must not depend on the rate."""

    step_trips: float
    window_packets: float
    data_packets: int
    trims: int
    marks: int

    @classmethod
    def of(cls, run: Run) -> Normalised:
        rtt_ns, totals = run.options["base_rtt_ns"], qp_totals(run)
        times = steps.times(steps.steps(run))
        qps = [qp for lines in run.agent_samples.values() for line in lines for qp in line["qps"]]
        windows = [qp["cwnd_bytes"] / 4096 for qp in qps if qp["inflight_bytes"]]
        trips = times.median_ns / rtt_ns if times else 0.0
        return cls(trips, fmean(windows), totals["data_packets"], totals["trims"], totals["ecn"])


@pytest.mark.slow
@pytest.mark.parametrize("gigabits", [1, 100, 400])
def test_steps_and_windows_are_those_of_lab_rates_within_two_percent(gigabits: int, tmp_path: Path) -> None:
    """Measured: 0.1 % at 1 and 0.2 % at 100 Gb/s; 0.7 % at 400, where each frame's 84.68 ns are rounded up to 85."""
    lab = Normalised.of(simulate("link-flap", LAB_BPS, tmp_path / "lab", 0.3)[1])
    real = Normalised.of(simulate("link-flap", gigabits * 10**9, tmp_path / "real", 0.3)[1])
    assert real.step_trips == pytest.approx(lab.step_trips, rel=0.02)
    assert real.window_packets == pytest.approx(lab.window_packets, rel=0.02)
    assert real.data_packets == pytest.approx(lab.data_packets, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("gigabits", [100, 400])
def test_an_incast_trims_and_opens_its_windows_as_at_lab_rates(gigabits: int, tmp_path: Path) -> None:
    """Which of two frames that arrive at one instant comes first is drawn: trims of a run are chance, 3 % from seed to
    seed. So several seeds are put together, and the difference may be 2 % beside twice the error of their mean."""
    runs: dict[int, list[Normalised]] = {LAB_BPS: [], gigabits * 10**9: []}
    for rate_bps, found in runs.items():
        for seed in range(1, 9):
            folder = tmp_path / f"{rate_bps}-{seed}"
            found.append(Normalised.of(simulate("incast", rate_bps, folder, 0.2, seed=seed)[1]))
    lab, real = runs.values()
    shares = [[run.trims / run.data_packets for run in found] for found in (lab, real)]
    error = 2 * sqrt(sum(variance(found) / len(found) for found in shares))
    assert abs(fmean(shares[1]) - fmean(shares[0])) <= 0.02 * fmean(shares[0]) + error
    assert error < 0.05 * fmean(shares[0])  # enough seeds to tell
    assert fmean(r.window_packets for r in real) == pytest.approx(fmean(r.window_packets for r in lab), rel=0.02)
