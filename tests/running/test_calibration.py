"""The rate that a machine can keep follows from how busy it was at another."""

import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cli.choosing import choose
from cli.main import parser
from common import plain_file
from judging.run import Run, Span
from running import calibration
from running.calibration import MeasuredLoad
from running.lateness import Lateness
from running.options import Choices
from running.spec import RunSpec
from running.transport_choice import transport
from scenarios import library
from scenarios.scenario import Scenario, Setting, all_reduce_bytes
from topo.pfc import jitter_ns
from topo.plan import Plan
from topo.planfile import load_plan

SMOKE = library.find("smoke")
LAB = load_plan("lab")  # a base round trip of 54.4 ms at 10 Mb/s
MEASURED = {"measured_at_bps": 5_000_000, "busy_lab": 0.25, "late_ns": 0}


@pytest.mark.parametrize(
    ("now", "late_ms", "fits_mbps"),
    [
        (0.0, 0, 7.0),  # a Mb/s takes 5 % of the machine
        (0.0, 9, 7.0),  # an eighth of 77.7 ms is 9.7 ms
        (0.0, 13.6, 5.0),  # an eighth of 108.8 ms
        (0.0, 800, 1.7),  # a fourth, and no slower
        (0.4, 0, 5.5),  # other work
        (1.0, 0, 3.5),  # half of the machine is a fair share
    ],
)
def test_the_rate_leaves_two_thirds_of_the_processor_free_and_nobody_too_late(now, late_ms, fits_mbps) -> None:
    for found, seen in (
        (MEASURED, MeasuredLoad(now, round(late_ms * 1e6))),
        ({**MEASURED, "late_ns": round(late_ms * 1e6)}, MeasuredLoad(now)),
    ):
        assert calibration.fitting(LAB, found, seen) == pytest.approx(fits_mbps * 1e6)


@given(st.integers(0, 400_000_000), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_processes_are_on_time_or_the_lab_is_a_fourth_as_fast(late_ns: int, now: float, traffic: float) -> None:
    found = {**MEASURED, "busy_lab": traffic}
    usual = calibration.fitting(LAB, found, MeasuredLoad(now))
    slowed = calibration.fitting(LAB, found, MeasuredLoad(now, late_ns))
    assert usual // calibration.SLOWER_MAX * 0.9 <= slowed <= usual <= 25_000_000
    slowest = slowed <= 1.1 * usual / calibration.SLOWER_MAX
    assert slowest or late_ns <= jitter_ns(LAB.at_rate(slowed))


def test_the_timers_of_a_lab_allow_for_an_eighth_of_its_round_trip() -> None:
    assert jitter_ns(LAB) == LAB.base_rtt_ns // 8
    assert jitter_ns(LAB.at_rate(5_000_000)) == pytest.approx(2 * jitter_ns(LAB), rel=1e-6)


@pytest.mark.parametrize(
    ("late", "usual"),
    [
        ({}, 1),
        ({110: 40, 111: 38, 112: 36}, 1),  # one freeze, of whatever length
        ({110: 40, 450: 40}, 1),
        ({110: 40, 450: 30, 700: 20}, 20),  # in three parts of five
        ({0: 9, 210: 9, 420: 9, 630: 9, 840: 9}, 9),
    ],
)
def test_late_is_a_machine_that_is_late_in_most_thirds_of_a_second(late: dict[int, int], usual: int) -> None:
    seen = Lateness()
    seen.wakes = [(5_000_000 + 1_430_000 * at, late.get(at, 1)) for at in range(1048)] + [(1_600_000_000, 99)]
    assert seen.usual(Span("loaded", 5_000_000, 1_505_000_000)) == usual


def test_every_processor_is_watched_while_it_lasts() -> None:
    begun_ns = time.monotonic_ns()
    with Lateness() as late:
        time.sleep(0.3)
    assert all(begun_ns < t_ns < time.monotonic_ns() and late_ns >= 0 for t_ns, late_ns in late.wakes)
    assert len(late.wakes) > 20 * len(os.sched_getaffinity(0))  # 150 of each if none were late


def test_what_a_busy_machine_measured_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "loaded", lambda plan, rate_bps, scenario: MeasuredLoad(0.1))
    monkeypatch.setattr(calibration, "look", lambda: MeasuredLoad(0.8))
    told: list[str] = []
    found = calibration.calibrated(load_plan("tiny"), SMOKE, told.append)
    assert found["port_rate_bps"] == 10_000_000, "a fifth of the processor, where a tenth carries 5 Mb/s"
    assert not (tmp_path / "mrclab").exists()


def test_measurements_are_kept_by_what_they_hold_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = load_plan("tiny")
    busy = iter((0.25, 0.5, 0.25, 0.25))
    monkeypatch.setattr(calibration, "look", lambda: MeasuredLoad(0.1))
    monkeypatch.setattr(calibration, "loaded", lambda plan, rate_bps, scenario: MeasuredLoad(next(busy), 1_000_000))
    measured = {**MEASURED, "late_ns": 1_000_000}
    now = {"port_rate_bps": 6_600_000, "source": "measured now", "busy_now": 0.1, "late_now_ns": 0}
    assert calibration.calibrated(plan, SMOKE, lambda line: None) == {**measured, **now}
    assert calibration.calibrated(plan, SMOKE, lambda line: None) == {**measured, **now, "source": "cache"}
    assert calibration.calibrated(plan, SMOKE, lambda line: None, again=True)["port_rate_bps"] == 3_300_000
    assert calibration.calibrated(load_plan("lab"), SMOKE, lambda line: None)["source"] == "measured now"
    (tmp_path / "mrclab" / "calibration.json").write_text("torn {")
    assert calibration.calibrated(plan, SMOKE, lambda line: None)["source"] == "measured now"


def test_other_work_and_lateness_of_now_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(plain_file, "read_object", lambda path: {calibration.key(LAB, SMOKE): MEASURED})
    told: list[str] = []
    monkeypatch.setattr(calibration, "look", lambda: MeasuredLoad(0.30, 13_600_000))
    calibration.calibrated(LAB, SMOKE, told.append)
    assert told == [
        "the machine is 30% busy with other things, and processes are up to 14 ms late: 5 instead of 7 Mb/s per port"
    ]
    monkeypatch.setattr(calibration, "look", lambda: MeasuredLoad(0.0))
    assert calibration.calibrated(LAB, SMOKE, told.append)["port_rate_bps"] == 7_000_000
    assert len(told) == 1


@pytest.mark.parametrize(
    ("processors", "plan", "mbps"),
    [
        (2.0, "lab", 5.0),  # half of the plan's rate, at most: 32 ports send 4,900 packets of 4,096 bytes
        (0.6, "lab", 1.536),  # 1,500 packets a second
        (2.0, "wide", 2.56),  # twice as many ports
    ],
)
def test_no_machine_is_too_slow_for_the_rate_of_its_measurement(processors, plan, mbps, tmp_path, monkeypatch) -> None:
    seen: list[int] = []

    def loaded(plan: Plan, rate_bps: int, scenario: Scenario) -> MeasuredLoad:
        seen.append(rate_bps)
        return MeasuredLoad(0.2)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "loaded", loaded)
    monkeypatch.setattr(calibration, "look", lambda: MeasuredLoad(0.0))
    monkeypatch.setattr(calibration, "capacity", lambda: processors)
    calibration.calibrated(load_plan(plan), SMOKE, lambda line: None)
    assert seen == [round(mbps * 1e6)]


@pytest.mark.parametrize("mbps", [2.0, 5.0, 15.0, 100_000.0])
@pytest.mark.parametrize("world", ["emulated", "simulated"])
def test_a_run_lasts_as_many_round_trips_at_any_rate_in_both_worlds(mbps: float, world: str) -> None:
    plan = LAB.at_rate(round(mbps * 1e6))
    setting, usual = (
        RunSpec(library.find("switch-reboot"), Choices(transport("mrc"), one, seed=1, world=world)).setting
        for one in (plan, LAB)
    )
    assert setting.phases == usual.phases
    assert setting.pace / usual.pace == pytest.approx(plan.base_rtt_ns / LAB.base_rtt_ns, rel=1e-6)
    assert all_reduce_bytes(setting) == pytest.approx(all_reduce_bytes(usual), rel=0.05), "as many packets in a step"


@pytest.mark.parametrize("leaves", [4, 8, 64])
def test_a_ring_of_more_hosts_has_no_shorter_messages_so_that_waiting_for_them_idles_no_link(leaves: int) -> None:
    """A message that takes L is followed by the next after L and half a round trip: links carry L/(L + R/2)."""
    plan = replace(LAB, leaves=leaves, hosts_per_leaf=4)
    setting = RunSpec(library.find("link-flap"), Choices(transport("mrc"), plan, seed=1)).setting
    message_bytes = all_reduce_bytes(setting) / plan.host_count
    message_s = 8 * message_bytes / setting.host_rate_bps / setting.pace
    assert message_s / (message_s + plan.base_rtt_ns / 2e9) > 0.45


@pytest.mark.parametrize("name", library.NAMES)
def test_every_scenario_is_calibrated_with_its_own_workloads_from_the_first_moment_on(name: str) -> None:
    scenario = library.find(name)
    plan = load_plan(scenario.plan)
    sent = calibration.busiest(scenario, Setting(plan, "mrc", 1, {"warmup": 1.0, "loaded": 2.5}))
    assert {one.phase for one in sent} == {"warmup"}
    assert not any("duration_ns" in one.options for one in sent)
    kinds = {one.kind for one in sent}
    own = {w.kind for w in scenario.workloads(Setting(plan, "mrc", 1, {p.name: p.seconds for p in scenario.phases}))}
    assert kinds == {"all_reduce" if kind == "training" else kind for kind in own}


def test_what_a_lab_takes_is_the_processor_time_of_its_agents_and_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "capacity", lambda: 2.0)
    lines: list[dict[str, Any]] = []
    for t_ns in range(0, 1001, 100):
        for node, share in (("h0", 0.25), ("h1", 0.25), ("switches", 0.5)):
            fields = {"process_ns": 7 + share * t_ns, "wall_ns": 3 + t_ns, "late_ns": 0}
            lines.append({"t_ns": t_ns, "node": node, "kind": "cpu", **fields})
    assert calibration.lab_share(Run(lines), Span("loaded", 200, 900)) == pytest.approx(0.5, abs=0.01)
    assert calibration.lab_share(Run([]), Span("loaded", 200, 900)) == 0.0


def test_a_process_that_serves_several_hosts_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four hosts of one process, and one of another: half and a quarter of a processor, so 0.75 of one."""
    monkeypatch.setattr(calibration, "capacity", lambda: 1.0)
    lines: list[dict[str, Any]] = []
    for node, pid, share in (("h0", 11, 0.5), ("h1", 11, 0.5), ("h2", 11, 0.5), ("h3", 11, 0.5), ("h4", 12, 0.25)):
        lines.append({"t_ns": 0, "node": node, "kind": "process", "role": "agent", "pid": pid})
        for t_ns in range(0, 1000, 100):
            spent = {"process_ns": share * t_ns, "wall_ns": t_ns, "late_ns": 0}
            lines.append({"t_ns": t_ns, "node": node, "kind": "cpu", **spent})
    run = Run(sorted(lines, key=lambda line: int(line["t_ns"])))
    assert calibration.lab_share(run, Span("loaded", 200, 900)) == pytest.approx(0.75)


def test_looking_at_the_machine_finds_it_neither_idle_for_ever_nor_more_than_busy(monkeypatch) -> None:
    monkeypatch.setattr(calibration, "LOOK_S", 0.3)
    now = calibration.look()
    assert 0.0 <= now.busy <= 1.0
    assert now.late_ns >= 0


def test_a_process_has_the_processors_of_its_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    calibration.capacity.cache_clear()
    assert calibration.capacity() <= 1.0
    calibration.capacity.cache_clear()
    own = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu0 "))
    busy, every = calibration.jiffies()
    assert busy >= int(own.split()[1]), "of the first processor alone"
    assert every < 1.2 * sum(int(word) for word in own.split()[1:9])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--setting", "x=y"], "no setting 'x'"),
        (["--fault", "link-down:p0l0-p9s9@faults+1"], "p9s9"),
        (["--fault", "link-down:p0l0-p0s0@faults+999"], "999"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_machine_is_measured(words: list[str], said: str, monkeypatch) -> None:
    def measured(*_: object) -> None:
        pytest.fail("links were built to measure with")

    monkeypatch.setattr(calibration, "calibrated", measured)
    with pytest.raises(ValueError, match=re.escape(said)):
        choose(parser("run").parse_args(["run", "smoke", *words]))


@pytest.mark.parametrize("words", [["--processes", "0"], ["--processes", "2"]])
def test_processes_on_real_links_are_refused_before_anything_else(words: list[str], monkeypatch, refused) -> None:
    monkeypatch.setattr("cli.commands.run.need_root", lambda why: pytest.fail("root was asked for"))
    assert "--processes" in refused("run", "smoke", *words)
