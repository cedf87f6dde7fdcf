"""The rate that a machine can keep follows from how busy it was at another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.choosing import choose
from cli.main import main, parser
from judging.measures import stalls
from running import calibration
from running.calibration import MeasuredLoad
from scenarios import library
from scenarios.scenario import Scenario, Setting
from topo.plan import Plan
from topo.planfile import load_plan

SMOKE = library.find("smoke")
MEASURED = {"port_rate_bps": 10_000_000, "measured_at_bps": 10_000_000, "busy_idle": 0.1, "busy_loaded": 0.75}


@pytest.mark.parametrize(
    ("rate_bps", "idle", "loaded", "fits"),
    [
        (10_000_000, 0.05, 0.75, 10_000_000),
        (10_000_000, 0.05, 0.50, 15_000_000),
        (10_000_000, 0.0, 0.10, 15_000_000),  # never more than half again the plan's own
        (5_000_000, 0.15, 0.90, 4_000_000),
        (10_000_000, 0.3, 0.3, 15_000_000),  # traffic that costs nothing measurable
    ],
)
def test_the_rate_that_leaves_a_quarter_free(rate_bps: int, idle: float, loaded: float, fits: int) -> None:
    assert calibration.fitting(rate_bps, idle, loaded, 10_000_000) == fits


def test_what_a_busy_machine_measured_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = load_plan("tiny")
    monkeypatch.setattr(calibration, "busy", lambda plan, rate_bps, scenario: MeasuredLoad(0.8, 0.9))
    told: list[str] = []
    found = calibration.calibrated(plan, SMOKE, told.append)
    assert found["port_rate_bps"] == plan.links.host_rate_bps
    assert "80% busy with other things" in told[-1]
    assert not (tmp_path / "mrclab").exists()


def test_measurements_are_kept_by_what_they_hold_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = load_plan("tiny")
    monkeypatch.setattr(calibration, "look", lambda base_rtt_ns: MeasuredLoad(0.1, 0.0))
    monkeypatch.setattr(calibration, "measure", lambda plan, scenario, tell: {**MEASURED, "port_rate_bps": 7_000_000})
    assert calibration.calibrated(plan, SMOKE, lambda line: None) == {
        **MEASURED,
        "port_rate_bps": 7_000_000,
        "source": "measured now",
        "busy_now": 0.1,
        "longest_stall_ns": 0,
    }
    monkeypatch.setattr(calibration, "measure", lambda plan, scenario, tell: {**MEASURED, "port_rate_bps": 8_000_000})
    assert calibration.calibrated(plan, SMOKE, lambda line: None)["source"] == "cache"
    assert calibration.calibrated(plan, SMOKE, lambda line: None, again=True)["port_rate_bps"] == 8_000_000
    assert calibration.calibrated(load_plan("lab"), SMOKE, lambda line: None)["source"] == "measured now"
    (tmp_path / "mrclab" / "calibration.json").write_text("torn {")
    assert calibration.calibrated(plan, SMOKE, lambda line: None)["source"] == "measured now"


def test_a_rate_at_which_the_lab_is_late_is_halved_until_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def busy(plan: Plan, rate_bps: int, scenario: Scenario) -> MeasuredLoad:
        seen.append(rate_bps)
        return MeasuredLoad(0.05, 0.4, spoilt=0.3 if rate_bps > 3_000_000 else 0.02)

    monkeypatch.setattr(calibration, "busy", busy)
    told: list[str] = []
    found = calibration.measure(load_plan("lab"), SMOKE, told.append)
    assert seen == [10_000_000, 5_000_000, 2_500_000]
    assert 2_500_000 <= found["port_rate_bps"] < 5_000_000, "not back to where it was late"
    assert "stalls spoilt 30% of the time" in told[0]


def test_a_machine_that_is_late_at_any_rate_is_used_all_the_same_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "busy", lambda plan, rate_bps, scenario: MeasuredLoad(0.05, 0.3, spoilt=0.5))
    told: list[str] = []
    assert calibration.measure(load_plan("lab"), SMOKE, told.append)["spoilt"] == 0.5
    assert told[-1] == "the machine is late at any rate: parts of every run will not count"


def test_other_work_makes_the_lab_slower_than_it_was_measured() -> None:
    told: list[str] = []
    plan = load_plan("lab")
    same = calibration.as_it_is(plan, {**MEASURED, "source": "cache"}, MeasuredLoad(0.15, 0.0), told.append)
    assert (same["port_rate_bps"], told) == (10_000_000, [])
    slower = calibration.as_it_is(plan, {**MEASURED, "source": "cache"}, MeasuredLoad(0.45, 0.0), told.append)
    assert slower["port_rate_bps"] == 4_600_000  # 30 % are left up to three quarters, of 65 % that 10 Mb/s want
    assert slower["source"] == "cache, slower for other work"
    assert "45% busy with other things, 10% when it was measured: 4.6 instead of 10 Mb/s per port" in told[0]
    least = calibration.as_it_is(plan, {**MEASURED, "source": "cache"}, MeasuredLoad(0.99, 0.0), told.append)
    assert least["port_rate_bps"] == 2_500_000


LAB = load_plan("lab")  # a base round trip of 54 ms at 10 Mb/s


@pytest.mark.parametrize(
    ("stall_ms", "rate_bps", "told"),
    [
        (0, 10_000_000, ""),
        (13, 10_000_000, ""),  # less than a quarter of the round trip
        (20, 6_800_000, "stands still for up to 20 ms: 6.8 instead of 10 Mb/s per port, for longer round trips"),
        (100, 2_500_000, "2.5 instead of 10 Mb/s"),  # the slowest: it is less than half of a round trip there
        (110, 10_000_000, "stands still for up to 110 ms: parts of the run may not count"),  # more than half: in vain
        (800, 10_000_000, "parts of the run may not count"),
    ],
)
def test_a_machine_that_stands_still_has_a_slower_lab_where_that_makes_stalls_small(
    stall_ms: int, rate_bps: int, told: str
) -> None:
    heard: list[str] = []
    now = MeasuredLoad(0.1, 0.0, longest_ns=stall_ms * 1_000_000)
    found = calibration.as_it_is(LAB, {**MEASURED, "source": "cache"}, now, heard.append)
    assert found["port_rate_bps"] == rate_bps
    assert found["longest_stall_ns"] == stall_ms * 1_000_000
    assert bool(heard) == bool(told)
    assert all(told in line for line in heard)
    assert ("slower for stalls" in found["source"]) == (rate_bps < 10_000_000)
    if rate_bps < 10_000_000:
        rtt_ns = LAB.at_rate(rate_bps).base_rtt_ns
        assert now.longest_ns < stalls.SPOILS * rtt_ns
        assert now.longest_ns <= stalls.NOTHING * rtt_ns or rate_bps == 10_000_000 // calibration.SLOWER_MAX


@given(st.integers(0, 400_000_000), st.floats(0.0, 0.9), st.integers(1_000_000, 15_000_000))
def test_nothing_makes_a_lab_faster_or_slower_than_a_fourth(longest_ns: int, idle: float, rate_bps: int) -> None:
    found = {**MEASURED, "port_rate_bps": rate_bps, "source": "cache"}
    slowed = calibration.as_it_is(LAB, found, MeasuredLoad(idle, 0.0, longest_ns=longest_ns), lambda line: None)
    assert rate_bps // calibration.SLOWER_MAX <= slowed["port_rate_bps"] <= rate_bps


def test_a_look_that_finds_a_stall_looks_again_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    longest_ns = iter((0, 6_000_000, 17_000_000, 9_000_000, 12_000_000, 19_000_000, 5_000_000))

    def glance(seconds: float) -> MeasuredLoad:
        seen.append(seconds)
        return MeasuredLoad(0.3, 0.0, longest_ns=next(longest_ns))

    monkeypatch.setattr(calibration, "glance", glance)
    assert calibration.look(36_000_000).longest_ns == 0
    assert seen == [calibration.LOOK_S]
    assert calibration.look(36_000_000).longest_ns == 17_000_000, "the first that were seen were short"
    assert calibration.look(30_000_000).longest_ns == 12_000_000
    assert seen == [calibration.LOOK_S] + 2 * [calibration.LOOK_S, calibration.LOOK_AGAIN_S]
    assert calibration.look(30_000_000).longest_ns == 5_000_000, "the stall of the first look did not come again"


def test_a_rate_by_hand_that_the_machine_will_not_keep_is_warned_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan, told = load_plan("tiny"), list[str]()
    assert calibration.by_hand(plan, SMOKE, 10**9, told.append) == {"source": "--rate", "port_rate_bps": 10**9}
    assert told == [], "this machine was never measured"
    calibration.store(calibration.cache_file(), calibration.key(plan, SMOKE), MEASURED)
    calibration.by_hand(plan, SMOKE, 12_000_000, told.append)
    assert told == []
    calibration.by_hand(plan, SMOKE, 20_000_000, told.append)
    assert told == [
        "--rate 20 wants 140% of this machine: expect an unknown verdict; 10 Mb/s leave a quarter of the processor free"
    ]


@pytest.mark.parametrize("name", library.NAMES)
def test_every_scenario_is_calibrated_with_its_own_workloads_from_the_first_moment_on(name: str) -> None:
    scenario = library.find(name)
    plan = load_plan(scenario.plan)
    sent = calibration.busiest(scenario, Setting(plan, "mrc", 1, {"idle": 1.5, "warmup": 2.0, "loaded": 4.0}))
    assert {one.phase for one in sent} == {"warmup"}
    assert not any("duration_ns" in one.options for one in sent)
    kinds = {one.kind for one in sent}
    own = {
        one.kind for one in scenario.workloads(Setting(plan, "mrc", 1, {p.name: p.seconds for p in scenario.phases}))
    }
    assert kinds == {"all_reduce" if kind == "training" else kind for kind in own}


def test_looking_at_the_machine_finds_it_neither_idle_for_ever_nor_more_than_busy() -> None:
    now = calibration.glance(0.3)
    assert 0.0 <= now.idle <= 1.0
    assert now.longest_ns >= 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--setting", "x=y"], "no setting 'x'"),
        (["--fault", "link-down:p0l0-p9s9@faults+1"], "p9s9"),
        (["--fault", "link-down:p0l0-p0s0@faults+999"], "999"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_machine_is_measured(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*_: object) -> None:
        pytest.fail("links were built to measure with")

    monkeypatch.setattr(calibration, "calibrated", measured)
    with pytest.raises(ValueError, match=re.escape(said)):
        choose(SMOKE, parser("run").parse_args(["run", "smoke", *words]), lambda line: None)


@pytest.mark.parametrize("words", [["--processes", "0"], ["--processes", "2"]])
def test_processes_on_real_links_are_refused_before_anything_else(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cli.commands.run.need_root", lambda why: pytest.fail("root was asked for"))
    assert main(["run", "smoke", *words]) == 2
    assert "--processes" in capsys.readouterr().err
