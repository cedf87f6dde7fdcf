"""The cost of faults: laps against quiet ones and limits, and stalls of the machine, which are left out."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from judging import checks, evidence
from judging.judge import verdict_of
from judging.measures import cost, recovery, stalls
from judging.reports import plots, tables
from judging.run import Run
from judging.verdict import Finding
from scenarios.collision import at_line_rate
from scenarios.grey_link import prober_names_it
from scenarios.scenario import Setting
from tests.helpers.made_up_run import own_checks
from topo.planfile import load_plan

Build = Callable[..., Run]
MS = 1_000_000
RTT_MS, LAP_MS = 50, 1000
AT = (3, 8, 13)  # of the 20 laps of the phase with faults, those in which a fault begins
BETWEEN = (10, 30)  # laps of the run: the phase with faults begins and ends


def run_of(
    costs: Mapping[int, float], *, at: Sequence[int] = AT, for_ms: float = 600,
    drift: Sequence[float] = (1.0, 1.0, 1.0), noise: float = 0.0, stalls: Sequence[tuple[float, float]] = (),
    made: int = 34, options: Mapping[str, Any] | None = None, over: bool = False, met: Sequence[int] | None = None,
) -> Run:  # fmt: skip
    """Laps of 1 s: 10 of the reference, 20 of the faults, 4 of heal. `costs` are round trips by the lap of the phase
    with faults, `drift` factors of the phases' laps, `noise` their standard deviation in ms, `stalls` (lap, ms). After
    the faults of the laps `met`, all of them by default, packets are sent again."""
    rng, t_ns, met = Random(7), 0, at if met is None else met
    lines: list[dict[str, Any]] = []
    begins: list[int] = []
    for lap in range(34):
        begins.append(t_ns)
        phase = 0 if lap < BETWEEN[0] else 1 if lap < BETWEEN[1] else 2
        length_ms = LAP_MS * drift[phase] + rng.gauss(0, noise) + costs.get(lap - BETWEEN[0], 0.0) * RTT_MS
        t_ns += round(length_ms * MS)
        if lap < made:
            step = {"workload": "main", "rank": 0, "step": lap, "compute_ns": 0, "bytes": 1}
            lines.append(
                {
                    "node": "h0", "kind": "step", "t_ns": t_ns, "total_ns": t_ns - begins[-1],
                    "comm_ns": t_ns - begins[-1], **step,
                }
            )  # fmt: skip
    begins.append(t_ns)
    usual = {"base_rtt_ns": RTT_MS * MS, "port_rate_bps": 10_000_000, "hardware_rate_bps": 10**11}
    lines.append({"node": "runner", "kind": "options", "t_ns": 0, **usual, **(options or {})})
    marks = {"reference": (0, BETWEEN[0]), "faults": BETWEEN, "heal": (BETWEEN[1], 34)}
    for name, (first, last) in marks.items():
        for state, lap in (("start", first), ("stop", last)):
            lines.append({"node": "runner", "kind": "phase", "name": name, "state": state, "t_ns": begins[lap]})
    for number, lap in enumerate(at):
        begin_ns = begins[BETWEEN[0] + lap] + 100 * MS
        fault = {"node": "runner", "kind": "fault", "verb": "link-down", "target": f"p0l{number}-p0s0"}
        lines.append({**fault, "state": "begin", "t_ns": begin_ns})
        lines.append({**fault, "state": "end", "t_ns": begin_ns + round(for_ms * MS)})
    for place, length_ms in stalls:
        begin_ns = begins[BETWEEN[0] + int(place)] + round(place % 1 * LAP_MS * MS)
        stall = {"node": "cpu0", "kind": "stall", "late_ns": round(length_ms * MS)}
        lines.append({**stall, "t_ns": begin_ns + round(length_ms * MS)})
    for state in ("start", "stop") if over else ("start",):
        job = {"node": "h0", "kind": "workload", "name": "main", "state": state, "outcome": "finished"}
        lines.append({**job, "t_ns": 0 if state == "start" else begins[made]})
    for tick_ns in range(0, t_ns, 250 * MS):
        again = sum(min(max(0, tick_ns - begins[BETWEEN[0] + lap] - 200 * MS), 600 * MS) for lap in met)
        qps = [{"qp": 1, "acked_bytes": tick_ns // 1000, "retransmits": again}]
        lines.append({"node": "h0", "kind": "sample", "t_ns": tick_ns, "qps": qps, "ports": []})
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


def judged(run: Run) -> Finding:
    return checks.fault_cost()(run)


def test_the_cost_is_what_laps_lose_against_the_quiet_ones_of_their_phase_and_at_the_faults_end() -> None:
    found = cost.of_phase(run := run_of({3: 2.0, 8: 1.0, 13: 3.0}), run.phases["faults"])
    assert found is not None
    assert [one.lost_ns / MS / RTT_MS for one in found.costs] == pytest.approx([2.0, 1.0, 3.0])
    assert found.together.bursts == 3
    assert found.drift == pytest.approx(0.0)
    assert judged(run).holds is True
    assert judged(run_of({6: 12.0}, at=(3,), for_ms=3200)).holds is False


@given(st.floats(0.9, 1.1), st.floats(0.0, 2.8))
def test_drift_touches_neither_the_cost_nor_its_verdict(factor: float, each: float) -> None:
    run = run_of(dict.fromkeys(AT, each), drift=(1.0, factor, factor))
    finding = judged(run)
    assert finding.figures["mean_round_trips"] == pytest.approx(each, abs=0.02)
    assert finding.holds is True
    assert checks.drift()(run).figures["drift"] == pytest.approx(factor - 1, abs=1e-3)


def test_drift_is_not_told_from_two_quiet_laps_alone() -> None:
    """Only laps 18 and 19 are quiet, one of them is 150 ms slow, and the four of heal are as the reference's."""
    run = run_of({18: 3.0}, at=range(17), options={"world": "simulated"})
    finding = checks.drift()(run)
    assert (finding.holds, finding.figures["drift"]) == (True, pytest.approx(0.0))
    slow_for_good = run_of({}, at=range(17), drift=(1.0, 1.05, 1.05), options={"world": "simulated"})
    assert checks.drift()(slow_for_good).holds is False


@pytest.mark.parametrize(
    ("costs", "holds"),
    [
        ({3: 2.9, 8: 2.9, 13: 2.9}, True),
        ({3: 3.3, 8: 3.3, 13: 3.3}, False),  # the mean of all
        ({3: 5.9, 8: 0.0, 13: 0.0}, True),
        ({3: 6.3, 8: 0.0, 13: 0.0}, False),  # one of them, although the mean is small
        ({3: 2.5, 4: 2.5, 5: 2.5}, False),  # slow for three steps after a fault, and well before the next
        ({3: 0.0, 6: 7.0}, False),  # slow for no reason known, long after a fault: it is that fault's
        ({1: 20.0}, True),  # before the first fault: no fault's
    ],
)
def test_the_limits_are_three_round_trips_on_average_and_six_for_one(costs: dict[int, float], holds: bool) -> None:
    assert judged(run_of(costs)).holds is holds


def test_a_transport_that_the_first_fault_makes_slow_for_good_is_false() -> None:
    slow = dict.fromkeys(range(3, 20), 3.0)  # 15 % from the first fault on, and so in heal
    run = run_of(slow, drift=(1.0, 1.0, 1.15))
    assert checks.drift()(run).holds is False
    little = dict.fromkeys(range(3, 20), 0.6)
    assert checks.drift()(run_of(little)).holds is None, "3 %: a machine may do that"
    virtual = checks.drift()(run_of(little, options={"world": "simulated"}))
    assert virtual.holds is False, "virtual time has no machine"


@pytest.mark.parametrize(("factor", "holds"), [(1.019, True), (1.021, None), (1.09, None), (1.12, False), (0.9, True)])
def test_drift_of_a_machine_is_unknown_above_two_percent(factor: float, holds: bool | None) -> None:
    finding = checks.drift()(run_of({}, drift=(1.0, factor, factor)))
    assert finding.holds is holds
    assert f"{abs(factor - 1):.1%}" in finding.reason


def test_where_each_step_has_a_fault_those_of_other_phases_are_the_quiet_ones() -> None:
    everywhere = range(20)
    run = run_of(dict.fromkeys(everywhere, 2.0), at=everywhere)
    finding = judged(run)
    assert finding.figures["mean_round_trips"] == pytest.approx(2.0, abs=0.01)
    assert finding.holds is True
    assert judged(run_of(dict.fromkeys(everywhere, 8.0), at=everywhere)).holds is False
    assert checks.drift()(run).holds is True, "as heal says"


def test_a_job_that_comes_to_a_halt_owes_a_step_and_one_that_is_over_does_not() -> None:
    assert judged(run_of({}, made=BETWEEN[0] + 9)).holds is False
    assert judged(run_of({}, made=BETWEEN[0] + 16, over=True)).holds is True


def test_a_stall_may_explain_a_cost_and_never_hides_one() -> None:
    hit = run_of({3: 14.0}, stalls=[(3.5, 500)])  # 10 round trips, and two of repair
    finding = judged(hit)
    assert finding.holds is None
    assert "500 ms" in finding.reason
    assert judged(run_of({3: 30.0}, stalls=[(3.5, 500)])).holds is False, "no stall explains so much"
    assert judged(run_of({3: 2.0}, stalls=[(3.5, 500)])).holds is True, "it cost less, whatever the stall took"


def test_laps_that_differ_without_faults_say_how_little_is_known() -> None:
    finding = judged(run_of({3: 2.0, 8: 2.0, 13: 2.0}, noise=20))
    assert finding.holds is True
    assert 0.3 < finding.figures["error_round_trips"] < 3
    wild = judged(run_of({3: 2.0, 8: 2.0, 13: 2.0}, noise=200))
    assert wild.holds is None
    assert "laps differ as much without faults" in wild.reason
    assert judged(run_of(dict.fromkeys(AT, 36.0), noise=60)).holds is False


def test_laps_of_several_faults_vary_apart_and_their_pace_is_wrong_for_all_alike() -> None:
    """Variances of independent laps add up: n laps deviate together by √n times as much as one, not n times."""
    found = cost.of_phase(run := run_of({3: 2.0, 8: 2.0, 13: 2.0}, noise=20), run.phases["faults"])
    assert found is not None
    every = found.together
    assert every.spread_ns**2 == pytest.approx(sum(one.spread_ns**2 for one in found.costs))
    assert every.pace_ns == pytest.approx(sum(one.pace_ns for one in found.costs))
    assert every.noise_ns == pytest.approx(every.spread_ns + every.pace_ns)


def test_faults_of_one_step_share_its_cost() -> None:
    run = run_of({3: 5.8}, at=(3, 3), for_ms=300)
    later = [
        {**line, "t_ns": line["t_ns"] + 400 * MS} if line["kind"] == "fault" and line["target"] == "p0l1-p0s0" else line
        for line in run.lines
    ]
    both = Run(sorted(later, key=lambda line: int(line["t_ns"])))
    assert judged(both).figures["bursts"] == 2
    assert judged(both).holds is True, "2.9 each"
    assert judged(run).figures["bursts"] == 1, "at the same instant they are one burst"
    assert judged(run).holds is False


def test_the_mean_is_over_faults_that_packets_met() -> None:
    finding = judged(run_of({8: 5.0}, met=(8,)))
    assert (finding.figures["mean_round_trips"], finding.holds) == (pytest.approx(5.0), False), "1.7 over all three"
    assert judged(run_of({3: 2.0, 8: 3.5}, met=(3, 8))).holds is True, "2.75"
    assert judged(run_of({}, met=())).holds is None
    assert judged(run_of({3: 24.0}, met=())).holds is False, "a job halts, although nothing is sent again"


def test_lost_ports_cost_what_they_carried_beside() -> None:
    run = run_of({3: 12.0, 8: 2.0, 13: 2.0})
    assert judged(run).holds is False
    finding = checks.fault_cost(away_ns=lambda fault: 10.0 * RTT_MS * MS if fault.target == "p0l0-p0s0" else 0.0)(run)
    assert finding.holds is True
    assert finding.figures["mean_round_trips"] == pytest.approx(2.0)
    assert "beside 10 for ports that were away" in finding.reason


def test_a_limit_is_that_of_as_many_repairs_as_may_be_needed_in_turn() -> None:
    run = run_of({3: 5.9, 8: 5.9, 13: 5.9})
    assert judged(run).holds is False
    assert checks.fault_cost(repairs=2)(run).holds is True
    assert checks.fault_cost(repairs=2)(run_of({3: 6.2, 8: 6.2, 13: 6.2})).holds is not True


def test_the_report_says_round_trips_steps_bytes_and_the_hardware() -> None:
    run = run_of({3: 2.0, 8: 1.0, 13: 3.0})
    assert judged(run).reason == (
        "3 faults cost 2.0 round trips each, the worst 3.0 (at most 3 and 6); together 1.48% of the phase, 0.30 steps,"
        " 0.3 MB; 10.0 µs each on the hardware"
    )
    assert [row[2] for row in tables.recovery_rows(run)] == ["100 ms (2.0)", "50 ms (1.0)", "150 ms (3.0)"]


def waiting(run: Run, at: Sequence[int]) -> Run:
    """The run with a host that waits for a processor for half of these laps of the phase with faults."""
    ends = [int(line["t_ns"]) for line in run.kind("step")]
    spans = [(ends[BETWEEN[0] + lap - 1], ends[BETWEEN[0] + lap]) for lap in at]
    lines, waited_ns = list(run.lines), 0
    for t_ns in range(0, ends[-1], 50 * MS):
        waited_ns += 25 * MS * any(start_ns < t_ns <= stop_ns for start_ns, stop_ns in spans)
        lines.append({"node": "h0", "kind": "cpu", "t_ns": t_ns, "wall_ns": t_ns, "wait_ns": waited_ns})
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


def test_waiting_for_a_processor_explains_a_cost_where_quiet_laps_did_not_wait_as_long() -> None:
    run = run_of({3: 13.0})
    assert judged(run).holds is False
    assert judged(waiting(run, [3])).holds is None
    assert judged(waiting(run, range(20))).holds is False, "its quiet laps waited as long"
    assert judged(waiting(run_of({3: 60.0}), [3])).holds is False, "nobody waited for so long"


def test_drift_of_a_busy_machine_is_not_blamed_on_the_transport() -> None:
    drift = (1.0, 1.2, 1.2)
    assert checks.drift()(run_of({}, drift=drift)).holds is False
    finding = checks.drift()(waiting(run_of({}, drift=drift), range(20)))
    assert finding.holds is None
    assert "hosts waited for a processor" in finding.reason


def test_in_steps_of_a_few_round_trips_hosts_mostly_wait_for_each_other() -> None:
    finding = judged(run_of({3: 3.0}, options={"base_rtt_ns": 150 * MS}))
    assert finding.holds is True
    finding = judged(run_of(dict.fromkeys(AT, 24.0), options={"base_rtt_ns": 150 * MS}))  # 8 of these round trips
    assert finding.holds is None
    assert "in steps of 6.7 round trips" in finding.reason
    assert judged(run_of(dict.fromkeys(AT, 24.0))).holds is False


def test_without_phase_fault_or_quiet_lap_nothing_is_known() -> None:
    assert checks.fault_cost("nowhere")(run_of({})).holds is None
    assert judged(run_of({}, at=())).holds is None
    assert checks.drift("nowhere")(run_of({})).holds is None


def streaming(made_up: Build, **changes: Any) -> Run:
    """The made-up run without its steps: a link is down from 14 s to 16 s."""
    return Run([line for line in made_up(**changes).lines if line["kind"] != "step"])


def test_without_steps_laps_are_bins_of_bytes(made_up: Build) -> None:
    run = streaming(made_up, dip=0.95)  # 5 % of 2 s are two round trips
    finding = judged(run)
    assert finding.figures["mean_round_trips"] == pytest.approx(2.0, abs=0.15)
    assert finding.holds is True
    assert "steps" not in finding.reason
    assert "(at most 2)" in finding.reason
    assert judged(streaming(made_up, dip=0.5)).holds is False


Line = dict[str, Any]

SECOND = 1_000_000_000


def stalled(run: Run, spans: Sequence[tuple[float, float]], who: Sequence[str] = ("h0", "cpu0", "switches")) -> Run:
    """The same lab on a machine that stands still in these spans (begin in seconds, length in ms): all that happens
    later happens so much later, but for phases and faults, which keep to the wall clock; `who` journals the stall."""
    lines: list[Line] = []
    for line in run.lines:
        t_ns = int(line["t_ns"])
        moved = t_ns
        if line["kind"] not in ("phase", "fault", "cpu", "options", "process"):
            for start_s, length_ms in sorted(spans):
                if moved >= start_s * SECOND:
                    moved += round(length_ms * MS)
        changed = {**line, "t_ns": moved}
        if line["kind"] == "step":
            begin_ns = t_ns - line["total_ns"]
            grown = sum(length_ms for start_s, length_ms in spans if begin_ns < start_s * SECOND <= t_ns) * MS
            changed |= {"comm_ns": line["comm_ns"] + round(grown), "total_ns": line["total_ns"] + round(grown)}
        lines.append(changed)
    lines += [
        {"t_ns": round(start_s * SECOND + length_ms * MS), "node": node, "kind": "stall", "late_ns": length_ms * MS}
        for start_s, length_ms in spans
        for node in who
    ]
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


# --- what a stall is ----------------------------------------------------------------------------------------------


def test_lateness_of_less_than_half_a_round_trip_is_nothing(made_up: Build) -> None:
    run = stalled(made_up(), [(13.0, 24), (17.0, 25)])
    assert [stall.length_ns for stall in stalls.stalls(run)] == [25 * MS]


def test_stalls_that_overlap_are_one_and_name_everybody_who_was_late(made_up: Build) -> None:
    lines = [
        {"t_ns": 13_400 * MS, "node": "cpu1", "kind": "stall", "late_ns": 400 * MS},
        {"t_ns": 13_450 * MS, "node": "h3", "kind": "stall", "late_ns": 300 * MS},
        {"t_ns": 13_460 * MS, "node": "cpu1", "kind": "stall", "late_ns": 40 * MS},
        {"t_ns": 18_000 * MS, "node": "switches", "kind": "stall", "late_ns": 30 * MS},
    ]
    run = Run(sorted([*made_up().lines, *lines], key=lambda line: int(line["t_ns"])))
    assert stalls.stalls(run) == [
        stalls.Stall(13_000 * MS, 13_460 * MS, ("cpu1", "h3"), 13_560 * MS),  # and two round trips of repair
        stalls.Stall(17_970 * MS, 18_000 * MS, ("switches",), 18_100 * MS),
    ]
    assert stalls.allowance_ns(run, run.span) == 690 * MS
    assert stalls.describe(run, run.span) == "2 stalls, the longest 460 ms at 13.00 s (cpu1, h3)"


# --- what each length does to each figure --------------------------------------------------------------------------

# A stall in the step of the fault, at 14.5 s, in a phase of 10 steps of 1 s; a base round trip is 50 ms. The fault's
# cost in round trips, how many of them the stall explains, the verdict with the evidence of lateness and without it.
TABLE = [
    # length, cost, explained, verdict, without
    (10, 0.2, 0.0, True, True),
    (20, 0.4, 0.0, True, True),
    (50, 1.0, 3.0, True, True),
    (100, 2.0, 4.0, True, True),
    (200, 4.0, 6.0, None, False),
    (400, 8.0, 10.0, None, False),
    (800, 16.0, 18.0, None, False),
]


@pytest.mark.parametrize(("length_ms", "cost", "explained", "verdict", "without"), TABLE)
def test_a_stall_explains_what_a_fault_seems_to_cost(made_up, length_ms, cost, explained, verdict, without) -> None:
    run = stalled(made_up(), [(14.5, length_ms)])
    found = verdict_of(run, own_checks())
    assert found.holds is verdict, [finding for finding in found.findings if finding.holds is not True]
    finding = checks.fault_cost()(run)
    assert finding.figures["mean_round_trips"] == pytest.approx(cost)
    assert finding.figures["error_round_trips"] == pytest.approx(explained)
    unjournalled = Run([line for line in run.lines if line["kind"] != "stall"])
    assert checks.fault_cost()(unjournalled).holds is without


def test_a_stall_in_another_step_changes_nothing(made_up: Build) -> None:
    for length_ms in (13, 100, 800):
        run = stalled(made_up(), [(20.5, length_ms)])
        assert verdict_of(run, own_checks()).holds is True
        assert checks.fault_cost()(run).figures["mean_round_trips"] == pytest.approx(0.0)


def test_stalls_all_over_the_run_are_unknown_and_named(made_up: Build) -> None:
    run = stalled(made_up(), [(second + 0.5, 600) for second in range(2, 22)])
    verdict = verdict_of(run, own_checks())
    assert verdict.holds is None
    assert next(finding for finding in verdict.findings if finding.check == "fault cost").holds is None
    assert not [finding for finding in verdict.findings if finding.holds is False]


def test_a_transport_that_breaks_down_beside_stalls_is_still_false(made_up: Build) -> None:
    run = stalled(made_up(slow_step_ns=2 * 10**9), [(12.6, 200), (18.5, 300), (20.2, 60)])
    verdict = verdict_of(run, own_checks())
    assert verdict.holds is False
    assert [finding.check for finding in verdict.findings if finding.holds is False] == ["fault cost"]


# --- no other cause is blamed -----------------------------------------------------------------------------------------


def repairs(run: Run, *rows: tuple[float, float, float]) -> Run:
    """Of h0, each from when a packet was sent over when it was taken for lost to when all had arrived, in seconds."""
    lines = [
        {"node": "h0", "kind": "repair", "qp": 1, "packets": 3, "late": 0, "sent_ns": round(sent_s * SECOND)}
        | {"noticed_ns": round(noticed_s * SECOND), "t_ns": round(end_s * SECOND)}
        for sent_s, noticed_s, end_s in rows
    ]
    return Run(sorted([*run.lines, *lines], key=lambda line: int(line["t_ns"])))


def test_what_was_lost_for_a_fault_is_repaired_apart_from_the_rate_and_no_measure_is_a_dash(made_up: Build) -> None:
    run = repairs(made_up(), (13.0, 13.1, 13.2), (14.01, 14.11, 14.25), (14.02, 14.14, 14.24))
    (item,) = recovery.recoveries(run)
    assert (item.abandoned_ns, item.missed_ns, item.repaired_ns) == (100 * MS, 120 * MS, 250 * MS)
    assert tables.recovery_rows(run)[0][2:] == ["0 ms (0.0)", "120 ms (2.4)", "100 ms (2.0)", "250 ms (5.0)"]
    (item,) = recovery.recoveries(made_up())
    assert (item.missed_ns, item.repaired_ns) == (None, None)
    assert tables.recovery_rows(made_up())[0][3:] == ["–", "100 ms (2.0)", "–"]


def test_a_repair_of_what_a_stall_seemed_to_lose_is_not_the_faults(made_up: Build) -> None:
    run = repairs(stalled(made_up(), [(18.0, 300)]), (18.02, 18.35, 18.5))
    (item,) = recovery.recoveries(run)
    assert item.repaired_ns is None
    assert item.missed_ns is None


def abandoned(run: Run, at_s: float, back_s: float | None, cause: str = "late_ack") -> Run:
    path = {"qp": 1, "peer": "h1", "ev": 49154, "plane": 1, "via": "p1s0", "node": "h1", "kind": "ev"}
    lines = [{**path, "t_ns": round(at_s * SECOND), "old": "good", "new": "assumed_bad", "cause": "loss"}]
    if back_s is not None:
        lines.append({**path, "t_ns": round(back_s * SECOND), "old": "assumed_bad", "new": "good", "cause": cause})
    return Run(sorted([*run.lines, *lines], key=lambda line: int(line["t_ns"])))


def test_a_path_that_a_stall_near_the_end_took_is_unknown_and_another_is_false(made_up: Build) -> None:
    late = abandoned(stalled(made_up(), [(23.0, 300)]), 23.32, None)
    assert checks.paths_healed()(late).holds is None
    assert checks.paths_healed()(abandoned(made_up(), 23.32, None)).holds is False
    both = abandoned(stalled(made_up(heals=False), [(23.0, 300)]), 23.32, None)
    assert checks.paths_healed()(both).holds is False


# --- what a reader sees ---------------------------------------------------------------------------------------------


def test_the_evidence_says_how_many_stalls_and_how_much_is_left_out(made_up: Build) -> None:
    finding = evidence.machine(stalled(made_up(), [(13.0, 30), (18.0, 300)]))
    assert finding.holds is True
    told = "2 stalls, the longest 300 ms at 18.00 s (cpu0, h0, switches); they may have taken 0.5 s"
    assert finding.reason == f"hosts waited for a processor at most 3% of a phase; {told}"


def test_stalls_are_drawn_in_every_chart_over_time(made_up: Build) -> None:
    calm, run = made_up(), stalled(made_up(), [(18.0, 300)])
    for chart in (
        lambda run: plots.goodput_over_time([("mrc", run)]),
        lambda run: plots.step_times([("mrc", run)]),
        lambda run: plots.plane_load(run),
        plots.path_health,
    ):
        assert plots.STALL in str(chart(run))
        assert plots.STALL not in str(chart(calm))


# --- a lab that did not keep up ---------------------------------------------------------------------------------------


def missing_line_rate(run: Run) -> Any:
    setting = Setting(load_plan("tiny"), "mrc", 1, {"reference": 10.0})  # 4 hosts of 20 Mb/s; 13.6 of them are sent
    return at_line_rate(setting)(run)


def test_a_rate_without_a_reference_is_no_fault_of_the_transport_where_hosts_waited(made_up: Build) -> None:
    assert missing_line_rate(made_up()).holds is False
    waiting = missing_line_rate(made_up(waiting=0.18))
    assert waiting.holds is None
    assert "the machine may have taken 18% of 'reference': hosts waited for a processor" in waiting.reason
    virtual = made_up(waiting=0.99, changed={"world": "simulated"})
    assert missing_line_rate(virtual).holds is False, "virtual time keeps up with everything"


def test_what_lies_between_stalls_that_took_most_of_a_phase_is_no_fair_sample(made_up: Build) -> None:
    run = stalled(made_up(dip=0.1), [(12.2 + 0.8 * index, 400) for index in range(12)])
    assert checks.fault_cost()(run).holds is None
    assert missing_line_rate(stalled(made_up(), [(2.2 + 0.8 * index, 400) for index in range(12)])).holds is None


def test_a_link_that_was_blamed_for_a_stall_is_no_wrong_name(made_up: Build) -> None:
    def blame(run: Run, at_s: float, ends: tuple[str, str]) -> Run:
        a, b = ends
        fields = {"node": "h0", "kind": "link", "a": a, "b": b, "state": "lossy", "loss": 0.3, "blame": f"{a}-{b}"}
        return Run(sorted([*run.lines, {**fields, "t_ns": round(at_s * SECOND)}], key=lambda line: int(line["t_ns"])))

    named = blame(made_up(), 14.9, ("p0l0", "p0s1"))
    assert prober_names_it()(named).holds is True
    assert prober_names_it()(blame(named, 18.35, ("p1l1", "p1s0"))).holds is False
    assert prober_names_it()(blame(stalled(named, [(18.0, 300)]), 18.35, ("p1l1", "p1s0"))).holds is True
    alone = blame(stalled(made_up(), [(18.0, 300)]), 18.35, ("p1l1", "p1s0"))
    assert prober_names_it()(alone).holds is None


# --- a control call that was not answered in time ------------------------------------------------------------------


def unanswered(made_up: Build, *, frozen_s: float | None, waited_s: float | None = 2.0) -> Run:
    """A run whose host did not answer at its end, for 2 s until 26 s, after a freeze of half a second."""
    waited = {} if waited_s is None else {"waited_s": waited_s}
    error = {"t_ns": 26 * SECOND, "node": "runner", "kind": "error", "message": "h3 did not answer", "fatal": True}
    run = made_up() if frozen_s is None else stalled(made_up(), [(frozen_s, 500)])
    return Run(sorted([*run.lines, {**error, **waited}], key=lambda line: int(line["t_ns"])))


def test_a_fatal_timeout_under_a_freeze_alone_is_unknown_and_names_the_stall(made_up: Build) -> None:
    found = evidence.complete(unanswered(made_up, frozen_s=24.5))
    assert (found.holds, found.spoils) == (None, True)
    assert "h3 did not answer" in found.reason
    assert "one stall, 500 ms at 24.50 s (cpu0, h0, switches)" in found.reason
    assert verdict_of(unanswered(made_up, frozen_s=24.5), own_checks()).holds is None
    assert evidence.complete(unanswered(made_up, frozen_s=None)).holds is False
    assert evidence.complete(unanswered(made_up, frozen_s=13.0)).holds is False, "that stall was over long before"
    assert evidence.complete(unanswered(made_up, frozen_s=24.5, waited_s=None)).holds is False
