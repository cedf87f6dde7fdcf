"""Planted stalls of known length, and what each does to each figure: no fault and no transport is blamed for them."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from judging import checks, evidence
from judging.judge import verdict_of
from judging.measures import recovery, stalls
from judging.reports import plots, tables
from judging.run import Run
from scenarios.collision import at_line_rate
from scenarios.grey_link import prober_names_it
from scenarios.scenario import Setting
from tests.helpers.made_up_run import own_checks
from topo.planfile import load_plan

Build = Callable[..., Run]
Line = dict[str, Any]
MS = 1_000_000
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


def unjournalled(run: Run) -> Run:
    return Run([line for line in run.lines if line["kind"] != "stall"])


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
    assert checks.fault_cost()(unjournalled(run)).holds is without


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


def test_mild_stalls_neither_spoil_nor_excuse_anything(made_up: Build) -> None:
    mild = [(second / 2, 20) for second in range(2, 46)]  # four tenths of a round trip, twice a second
    assert verdict_of(stalled(made_up(), mild), own_checks()).holds is True
    assert verdict_of(stalled(made_up(slow_step_ns=10**9), mild), own_checks()).holds is False


# --- nobody else is blamed -----------------------------------------------------------------------------------------


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
