"""Short runs: too little evidence is unknown, in round trips and packets, and what is enough keeps its verdict."""

from collections.abc import Callable

import pytest

from judging import checks, sample_size
from judging.run import Run
from scenarios import library, nic_port
from scenarios.collision import at_line_rate
from scenarios.scenario import Scenario, Setting
from topo.planfile import load_plan

Build = Callable[..., Run]
MS = 1_000_000
BASE_RTT_NS = 50 * MS  # of the made-up run
SHORT = [scenario.name for scenario in library.scenarios() if scenario.short]


def with_phases(run: Run, **spans: tuple[float, float]) -> Run:
    """The same journal with other phases, in seconds."""
    others = [line for line in run.lines if line["kind"] != "phase"]
    marks = [
        {"t_ns": round(at_s * 1e9), "node": "runner", "kind": "phase", "name": name, "state": state}
        for name, (start_s, stop_s) in spans.items()
        for state, at_s in (("start", start_s), ("stop", stop_s))
    ]
    return Run(sorted([*others, *marks], key=lambda line: int(line["t_ns"])))


@pytest.mark.parametrize(
    ("off", "limit", "error", "holds"),
    [
        (0.02, 0.03, 0.01, True),
        (0.02, 0.03, 0.04, None),  # the error alone is greater than what is allowed
        (0.035, 0.03, 0.01, None),  # the error may explain the miss
        (0.05, 0.03, 0.01, False),
        (0.50, 0.03, 0.10, False),  # however short: no error explains that
        (-0.24, 0.03, 0.10, None),
    ],
)
def test_a_figure_is_judged_with_its_error(off: float, limit: float, error: float, holds: bool | None) -> None:
    assert sample_size.holds(off, limit, error) is holds


def test_a_rate_is_known_to_within_a_round_trip_of_its_span(made_up: Build) -> None:
    run = made_up()
    assert sample_size.rate_error(run, 100 * BASE_RTT_NS) == pytest.approx(0.01)
    assert sample_size.rate_error(run, 100 * BASE_RTT_NS, 50 * BASE_RTT_NS) == pytest.approx(0.03)
    assert sample_size.rate_error(run, 0) == 1.0
    assert sample_size.share_error(800, 8) == pytest.approx(0.01)
    assert sample_size.share_error(0, 8) == 1.0


def test_planes_of_a_few_packets_and_the_line_rate_of_a_few_round_trips_are_unknown(made_up: Build) -> None:
    run = with_phases(made_up(), reference=(2.0, 2.05))
    finding = checks.planes_even(0.05)(run)
    assert finding.holds is None
    assert "few packets" in finding.reason
    setting = Setting(load_plan("tiny"), "mrc", 1, {"reference": 10.0})
    check = at_line_rate(setting, at_least=0.2)
    assert check(made_up()).holds is True
    assert check(with_phases(made_up(), reference=(2, 2.05))).holds is None


def streams(run: Run, message_bytes: int, skew: float = 0.0) -> Run:
    """Two flows of 8 Mb/s in which the receiver counts a message at a time; `skew` is how far each is from the mean."""
    lines = list(run.lines)
    for host, factor in (("h1", 1 + skew), ("h2", 1 - skew)):
        done, every_ns = 0, message_bytes * 8 * 10**9 / (8_000_000 * factor)
        for tick in range(240):
            begin_ns, end_ns = tick * 100 * MS, (tick + 1) * 100 * MS
            count = int(end_ns // every_ns) - done
            done += count
            fields = {"workload": "main", "peer": "h0", "bytes": count * message_bytes, "verified": True}
            lines.append(
                {"t_ns": end_ns, "node": host, "kind": "transfer", **fields, "start_ns": begin_ns, "end_ns": end_ns}
            )
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


def test_flows_that_are_seen_message_by_message_need_many_messages(made_up: Build) -> None:
    assert checks.flows_even("main", 0.10, skip_s=0.0)(streams(made_up(), 262144)).holds is True
    short = with_phases(streams(made_up(), 262144), reference=(2, 12), faults=(12, 13.5))
    assert checks.flows_even("main", 0.10, skip_s=0.0)(short).holds is None
    assert checks.flow_kept("main", 0.95, skip_s=0.0)(short).holds is None
    uneven = checks.flows_even("main", 0.10, skip_s=0.0)(streams(made_up(), 262144, skew=0.3))
    assert uneven.holds is False


def long(run: Run) -> Run:
    """The same run with calm phases of 8 s before and after: long beside a round trip of 50 ms."""
    return with_phases(run, reference=(0.0, 8.0), faults=(8.0, 16.0), heal=(16.0, 24.0))


def paced(run: Run, shares: dict[str, float]) -> Run:
    """Two flows of 8 Mb/s, but for those phases in which they have another share of it."""
    lines = list(run.lines)
    for tick in range(240):
        begin_ns, end_ns = tick * 100 * MS, (tick + 1) * 100 * MS
        phase = next((name for name, span in run.phases.items() if span.contains(begin_ns)), "")
        fields = {
            "workload": "victim", "peer": "h0", "bytes": round(100_000 * shares.get(phase, 1.0)), "verified": True,
        }  # fmt: skip
        for host in ("h1", "h2"):
            own = {"t_ns": end_ns, "node": host, "kind": "transfer", "start_ns": begin_ns, "end_ns": end_ns}
            lines.append({**own, **fields})
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


@pytest.mark.parametrize(
    ("shares", "holds", "share"),
    [
        ({}, True, 1.0),
        ({"faults": 0.96}, True, 0.96),
        ({"faults": 0.5}, False, 0.5),
        ({"reference": 0.99, "heal": 1.01, "faults": 1.0}, True, 1.0),  # the machine drifts, the flow keeps its rate
        ({"reference": 1.0, "heal": 0.9, "faults": 0.95}, None, 1.0),  # it drifts by more than the limit allows
        ({"reference": 1.0, "heal": 0.9, "faults": 0.7}, False, 0.737),
    ],
)
def test_a_flow_is_compared_with_itself_before_and_after(made_up, shares, holds, share) -> None:
    finding = checks.flow_kept("victim", 0.95)(paced(long(made_up()), shares))
    assert finding.holds is holds, finding.reason
    assert finding.figures["faults_mbps"] / finding.figures["calm_mbps"] == pytest.approx(share, abs=0.005)


def test_rates_of_flows_are_told_in_megabits_and_no_message_at_all_is_unknown(made_up: Build) -> None:
    figures = checks.flows_even("main", 0.10, skip_s=0.0)(streams(made_up(), 262144)).figures
    assert list(figures["mbps"].values()) == pytest.approx([8.0, 8.0], rel=0.05)
    assert checks.flows_even("main", skip_s=2.0)(made_up()).holds is None
    assert checks.flow_kept("main", skip_s=2.0)(made_up()).holds is None


def setting_of_short(scenario: Scenario, seed: int) -> Setting:
    short = scenario.shortened()
    return Setting(load_plan(scenario.plan), "mrc", seed, {phase.name: phase.seconds for phase in short.phases})


def test_one_uneven_plateau_does_not_make_all_of_them_doubtful() -> None:
    """Worked by hand: 2 √(2 · (0.02² + 0.01² + 0.01²) / 6) = 2 √0.0002; by the worst alone it were above 4 %."""
    assert nic_port.quotient_error([0.02, 0.01, 0.01, 0.0, 0.0, 0.0]) == pytest.approx(0.02828, abs=1e-5)


@pytest.mark.parametrize("name", SHORT)
def test_a_short_form_has_all_its_faults_and_time_to_heal_from_any_seed(name: str) -> None:
    scenario = library.find(name)
    for seed in range(50):
        setting = setting_of_short(scenario, seed)
        for fault in scenario.timeline(setting):
            assert 0 <= fault.at_s < setting.phases[fault.phase]
            end_s = fault.at_s + (fault.for_s or 0.0)
            assert end_s <= setting.phases[fault.phase] + 1e-9, (seed, fault)
    if name == "link-flap":
        assert all(len(scenario.timeline(setting_of_short(scenario, seed))) >= 4 for seed in range(200))


@pytest.mark.parametrize("name", SHORT)
def test_a_short_form_takes_less_than_half_a_minute_but_for_plateaus_and_real_training(name: str) -> None:
    short = library.find(name).shortened()
    assert sum(phase.seconds for phase in short.phases) <= {"nic-port": 43.0, "ddp": 61.0}.get(name, 25.0)


def test_a_scenario_without_a_short_form_says_so() -> None:
    with pytest.raises(ValueError, match="smoke has no short form"):
        library.find("smoke").shortened()


def test_a_fault_may_cost_a_round_trip_more_where_hosts_wait_for_the_last_packet(made_up: Build) -> None:
    run = made_up()
    assert sample_size.repair_round_trips(run) == 3
    streaming = Run([line for line in run.lines if line["kind"] != "step"])
    assert sample_size.repair_round_trips(streaming) == 2
