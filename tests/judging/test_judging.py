"""Checks, numbers and verdicts of made-up runs whose truth is known, at the edges of arithmetic as well."""

import json
import operator
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli import main as cli
from judging import checks, evidence, units
from judging.checks import check
from judging.journal import scan
from judging.judge import verdict_of
from judging.measures import completions, counters, flows, goodput, paths, planes, recovery, steps
from judging.reports import comparison, tables
from judging.reports.figures import figures, write_csv
from judging.run import Run, Span, fault_spans
from judging.verdict import Finding, conclude
from running.directory import find
from running.options import Choices
from running.runner import make_run
from running.spec import RunSpec
from running.transport_choice import transport
from running.view import port_rows
from scenarios import library
from studies.sweeping.metric import measured
from tests.helpers.made_up_run import own_checks
from topo.planfile import load_plan

Build = Callable[..., Run]
LINE_BPS = 8_000_000 * 2 * 0.8 * 4  # rate a port × planes × share acknowledged × hosts


def test_a_sound_run_is_true_and_no_findings_are_unknown(made_up: Build) -> None:
    verdict = verdict_of(made_up(), own_checks())
    assert [finding for finding in verdict.findings if finding.holds is not True] == []
    assert (verdict.holds, verdict.word, verdict.exit_status) == (True, "true", 0)
    assert conclude([]).holds is None
    assert conclude([Finding("a", True, ""), Finding("b", None, "")]).holds is None


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"wrong_bytes": 1}, "bytes right"),
        ({"qp_error": True}, "no QP error"),
        ({"plane_skew": 0.06}, "planes even"),
        ({"slow_step_ns": 10**9}, "fault cost"),
        ({"differences": 2}, "tables unchanged"),
        ({"heals": False}, "paths healed"),
    ],
)
def test_each_defect_is_found_by_its_check(made_up: Build, change: dict[str, object], check: str) -> None:
    verdict = verdict_of(made_up(**change), own_checks())
    assert (verdict.holds, verdict.exit_status) == (False, 1)
    assert [finding.check for finding in verdict.findings if finding.holds is False] == [check]


def test_spoilt_evidence_makes_even_a_false_run_unknown(made_up: Build) -> None:
    assert verdict_of(made_up(slow_step_ns=10**9), own_checks()).holds is False
    verdict = verdict_of(made_up(socket_drops=3, slow_step_ns=10**9), own_checks())
    assert (verdict.holds, verdict.exit_status) == (None, 3)


def test_socket_drops_that_nobody_counted_are_unknown(made_up: Build) -> None:
    silent = Run([line for line in made_up().lines if "device" not in line])
    verdict = verdict_of(silent, own_checks())
    assert verdict.holds is None
    assert [finding.check for finding in verdict.findings if finding.holds is None] == ["sockets"]


@check
def of_nothing(run: Run, value: Any) -> Finding:
    return Finding("of nothing", value.holds, "")


@pytest.mark.parametrize("own", [of_nothing(None), lambda run: sys.exit(0)], ids=["rule", "exit"])
def test_a_check_that_raises_anything_is_unknown_and_its_line_is_named(made_up: Build, own: checks.Check) -> None:
    verdict = verdict_of(made_up(), [own, *own_checks()])
    assert (verdict.holds, len(verdict.findings)) == (None, len(verdict_of(made_up(), own_checks()).findings) + 1)
    (found,) = [finding for finding in verdict.findings if finding.holds is None]
    assert re.fullmatch(
        r"could not be judged: (AttributeError: .*|SystemExit: 0) at test_judging\.py:\d+", found.reason
    )


def test_an_interrupted_run_is_unknown(made_up: Build) -> None:
    whole = made_up()
    cut = Run([line for line in whole.lines if line["t_ns"] < 15 * 10**9])
    assert verdict_of(cut, own_checks()).holds is None


def test_goodput_is_the_acknowledged_bytes_of_all_hosts_and_plane_load_what_they_sent_on_each(made_up: Build) -> None:
    run = made_up(dip=0.5)
    assert goodput.over(run, run.phases["reference"]) == pytest.approx(LINE_BPS, rel=1e-3)
    assert goodput.over(run, run.phases["faults"]) == pytest.approx(LINE_BPS * 0.9, rel=1e-2)
    seconds, rates = goodput.series(run, 500_000_000, run.phases["faults"])
    assert rates.min() == pytest.approx(LINE_BPS * 0.5, rel=1e-2)
    assert 14 < seconds[rates.argmin()] < 16
    run = made_up(plane_skew=0.1)
    sent = planes.bytes_sent(run, run.phases["reference"])
    assert sent[1] / sent[0] == pytest.approx(1.1 / 0.9, rel=1e-3)
    assert planes.spread(sent) == pytest.approx(0.1, rel=1e-3)


def test_steps_last_as_long_as_their_slowest_rank_and_count_when_all_have_finished(made_up: Build) -> None:
    run = made_up(slow_step_ns=500_000_000)
    during = steps.times(steps.of_phase(steps.steps(run), run.phases["faults"]))
    assert during is not None
    assert (during.median_ns, during.slowest_ns) == (1_000_000_000, 1_500_000_000)
    run = made_up()
    fewer = Run([one for one in run.lines if not (one["kind"] == "step" and one["step"] == 5 and one["node"] == "h3")])
    assert len(steps.steps(fewer)) == len(steps.steps(run)) - 1


def test_steps_of_two_jobs_are_told_apart_though_both_count_from_0(made_up: Build) -> None:
    run = made_up()
    second = [{**one, "workload": "second", "step": one["step"] - 12} for one in run.kind("step") if one["step"] > 11]
    first = [line for line in run.lines if line["kind"] != "step" or line["step"] <= 11]
    both = Run(sorted([*first, *second], key=lambda line: int(line["t_ns"])))
    assert [step.end_ns for step in steps.steps(both)] == [step.end_ns for step in steps.steps(run)]


def test_a_job_that_halts_fails_by_the_step_that_it_never_ended_and_stalls_from_the_last(made_up: Build) -> None:
    finding = checks.fault_cost()(made_up(halts_s=15.0))
    assert finding.holds is False
    assert finding.figures["worst_round_trips"] == 8 * 20, "from 15 s to 24 s, but for one step"
    run = made_up()
    halted = Run([line for line in run.lines if line["kind"] != "step" or line["t_ns"] <= 15 * 10**9])
    assert steps.stalled_ns(steps.steps(halted), run.phases["faults"]) == 7 * 10**9
    assert steps.stalled_ns(steps.steps(run), run.phases["faults"]) == 0
    assert steps.stalled_ns([], run.phases["faults"]) == 0


def test_a_job_that_is_over_does_not_stall_but_one_with_a_rank_left_does(made_up: Build) -> None:
    lines = [line for line in made_up().lines if line["kind"] != "step" or line["t_ns"] <= 15 * 10**9]
    nodes = sorted({line["node"] for line in lines if line["kind"] == "step"})

    def job(node: str, at_ns: int, **fields: str) -> dict[str, object]:
        return {"t_ns": at_ns, "node": node, "kind": "workload", "name": "main", **fields}

    stopped = [job(node, 16 * 10**9, state="stop", outcome="finished") for node in nodes]
    by_time = operator.itemgetter("t_ns")
    over = Run(sorted([*lines, *stopped], key=by_time))
    phase = over.phases["faults"]
    assert steps.stalled_ns(steps.steps(over), phase) == 0
    assert steps.span_of_steps(over, phase).stop_ns == 15 * 10**9
    assert steps.stalled_ns(steps.steps(over), Span("faults", phase.start_ns, 155 * 10**8)) == 5 * 10**8
    one_left = Run(sorted([*lines, *stopped[1:]], key=by_time))
    assert steps.stalled_ns(steps.steps(one_left), phase) == 7 * 10**9


def test_faults_that_no_packet_met_show_nothing(made_up: Build) -> None:
    assert checks.faults_felt()(made_up()).holds is True
    for qp_error in (False, True):
        run = made_up(qp_error=qp_error)
        for qp in (qp for line in run.lines for qp in line.get("qps", [])):
            qp["retransmits"] = 3  # before the faults
        assert checks.faults_felt()(Run(run.lines)).holds is (True if qp_error else None)


def test_the_baseline_is_not_praised_for_the_health_of_paths_that_it_does_not_know(made_up: Build) -> None:
    finding = checks.paths_healed()(made_up(changed={"single_plane": True}))
    assert "nothing of its health" in finding.reason


def test_a_path_is_bad_from_the_loss_to_the_probe_that_revived_it(made_up: Build) -> None:
    ((key, spans),) = paths.histories(made_up()).items()
    assert (key.host, key.plane, key.via) == ("h0", 0, "p0s1")
    assert [(s.state, s.start_ns, s.stop_ns) for s in spans] == [("ASSUMED_BAD", 14_100_000_000, 16_300_000_000)]


def test_how_long_hosts_waited_for_a_processor_is_told_where_they_can_tell_and_spoils_nothing(made_up: Build) -> None:
    finding = evidence.machine(made_up(waiting=0.3))
    assert finding.holds is True
    told = "hosts waited for a processor at most 30% of a phase; no process was late by half a round trip"
    assert finding.reason == told
    assert "machine" not in {one.check for one in evidence.sound(made_up(changed={"world": "simulated"}))}
    untold = [
        {key: value for key, value in line.items() if key != "wait_ns"} if line["kind"] == "cpu" else line
        for line in made_up(waiting=0.3).lines
    ]
    assert evidence.machine(Run(untold)).figures["waiting"] == 0


def test_every_path_has_a_strip_which_counts_the_senders_that_gave_it_up(made_up: Build) -> None:
    strips = paths.strips(made_up())
    assert list(strips) == [(0, "p0s0"), (0, "p0s1"), (1, "p1s0"), (1, "p1s1")]
    assert strips.pop((0, "p0s1")) == [paths.Level(14_100_000_000, 16_300_000_000, bad=1, denied=0)]
    assert not any(strips.values())
    assert paths.levels([(10, 1, 0), (40, -1, 0), (20, 1, 0), (30, -1, 0), (50, 0, 1), (60, 0, -1)]) == [
        paths.Level(10, 20, 1, 0),
        paths.Level(20, 30, 2, 0),
        paths.Level(30, 40, 1, 0),
        paths.Level(50, 60, 0, 1),
    ]


def test_beyond_two_even_tiers_the_strips_are_the_ways_that_the_options_name(made_up: Build) -> None:
    """As an EV of three tiers names two switches, and a plane may lack a spine."""
    lines = made_up().lines
    for line in lines:
        if "fabric" in line:
            line["fabric"] = {**line["fabric"], "topology": "list", "ways": [[0, "p0s0"], [0, "p0s0+p0c1"]]}
    strips = paths.strips(Run(lines))
    assert list(strips) == [(0, "p0s0"), (0, "p0s0+p0c1"), (0, "p0s1")]
    assert [bool(levels) for levels in strips.values()] == [False, False, True]


def test_without_faults_or_after_the_last_phase_there_is_nothing_to_recover_from(made_up: Build) -> None:
    assert recovery.recoveries(Run([line for line in made_up().lines if line["kind"] != "fault"])) == []
    run = made_up()
    assert recovery.recoveries(Run([*run.lines, fault(25, "p0l0-p0s0")])) == recovery.recoveries(run)


def fault(t_s: float, target: str) -> dict[str, Any]:
    common = {"kind": "fault", "verb": "link-down", "state": "begin", "arguments": {}}
    return {"t_ns": round(t_s * 1e9), "node": "runner", "target": target, **common}


def test_a_path_that_heals_with_the_last_line_is_healed(made_up: Build) -> None:
    lines = made_up().lines
    (healed,) = (line for line in lines if line["kind"] == "ev" and line["new"] == "GOOD")
    others, last_ns = [line for line in lines if line is not healed], lines[-1]["t_ns"]
    assert checks.paths_healed()(Run([*others, {**healed, "t_ns": last_ns}])).holds is True
    assert checks.paths_healed()(Run([*others, {**healed, "t_ns": last_ns, "new": "DENIED"}])).holds is False
    assert checks.paths_healed()(Run(others)).holds is False


@pytest.mark.parametrize("missing", ["sample", "communication"])
def test_the_load_of_a_run_in_which_nothing_was_sent_is_unknown_for_that_reason(made_up: Build, missing: str) -> None:
    lines = [one if "comm_ns" not in one or missing == "sample" else {**one, "comm_ns": 0} for one in made_up().lines]
    finding = checks.reference_load()(Run([line for line in lines if line["kind"] != missing]))
    assert (finding.holds, finding.reason) == (None, "no host sent anything in the steps of any phase")


def test_faults_that_begin_together_have_one_recovery_named_after_the_first(made_up: Build) -> None:
    run = made_up(dip=0.0)
    more = [
        {**line, "target": f"p1l0-p1s{spine}", "t_ns": line["t_ns"] + spine * 100_000_000}
        for line in run.lines
        if line["kind"] == "fault"
        for spine in range(1, 5)
    ]
    lines = sorted([*run.lines, *more], key=lambda line: int(line["t_ns"]))
    (item,) = recovery.recoveries(Run(lines))
    assert item.title == "link-down p0l0-p0s1 and 4 more"


def test_a_path_that_probes_revive_is_left_when_it_is_abandoned_first(made_up: Build) -> None:
    run = made_up()
    again = [
        {**line, "t_ns": line["t_ns"] + 3_000_000_000, "old": "GOOD", "new": "ASSUMED_BAD"}
        for line in run.kind("ev")
        if line["new"] == "GOOD"
    ]
    (item,) = recovery.recoveries(Run(sorted([*run.lines, *again], key=lambda line: int(line["t_ns"]))))
    assert item.abandoned_ns == 100_000_000


def test_goodput_of_a_phase_is_that_of_its_training_steps(made_up: Build) -> None:
    # Steps of 1 s begin at every second. Those from 3 s to 11 s lie wholly in the phase; 2 s to 12 s are touched by it.
    run = made_up()
    assert steps.span_of_steps(run, Span("reference", 2_400_000_000, 11_600_000_000)) == Span(
        "reference", 3_000_000_000, 11_000_000_000
    )
    assert steps.span_of_steps(run, Span("faults", 2_400_000_000, 11_600_000_000)) == Span(
        "faults", 2_000_000_000, 12_000_000_000
    )
    halted = Run([line for line in run.lines if not (line["kind"] == "step" and line["t_ns"] > 5_000_000_000)])
    assert steps.span_of_steps(halted, Span("faults", 2_400_000_000, 11_600_000_000)) == Span(
        "faults", 2_000_000_000, 11_600_000_000
    )


def test_a_report_tells_time_in_the_unit_of_its_pace() -> None:
    names = [units.unit(pace) for pace in (1.0, 0.01, 0.0099, 0.001, 0.0009)]
    assert names == [*[("s", 1_000_000_000)] * 2, *[("ms", 1_000_000)] * 2, ("µs", 1_000)]


def test_a_run_without_lines_begins_and_ends_at_zero_and_an_unreadable_line_stands_at_no_place() -> None:
    assert (Run([]).start_ns, Run([]).end_ns) == (0, 0)
    lines = list(scan(b'{"t_ns":5,"node":"h0","kind":"a"}\nnoise\n', Path("h0.jsonl")))
    assert [(start, length) for start, length, _ in lines] == [(0, 33), (0, 0)]
    assert lines[1][2]["t_ns"] == 5


def test_bins_of_goodput_are_named_by_their_middle(made_up: Build) -> None:
    run = made_up()  # phases begin at 0 s; four hosts of two ports of 8 Mb/s at 80 %
    centres, rates = goodput.series(run, 500_000_000, Span("part", 2_000_000_000, 4_000_000_000))
    assert centres == pytest.approx([2.25, 2.75, 3.25, 3.75])
    assert rates == pytest.approx([4 * 2 * 8_000_000 * 0.8] * 4, rel=1e-6)


def test_a_window_shows_a_dip_of_its_length_in_full_and_steps_as_a_level_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins of a step drifted where the steps of a run were a little longer than their median."""
    span = Span("all", 0, 4_000)

    def carrying(busy: Callable[[int], bool]) -> Run:
        total = np.concatenate([[0.0], np.cumsum([1.0 if busy(t_ns) else 0.0 for t_ns in range(span.stop_ns)])])
        acknowledged = lambda run, when, hosts=None: np.interp(when, np.arange(len(total)), total)  # noqa: E731
        monkeypatch.setattr(goodput, "acknowledged", acknowledged)
        return Run([])

    for begins in (1_000, 1_013, 1_037):
        times, rates = goodput.sliding(carrying(lambda t_ns, b=begins: not b <= t_ns < b + 100), 100, 25, span)
        assert min(rates) <= 0.13 * max(rates)
        assert times[np.argmin(rates)] == pytest.approx(begins + 100, abs=13)
        assert min(times[rates < max(rates)]) > begins, "no dip before its cause"
    _, rates = goodput.sliding(carrying(lambda t_ns: t_ns % 201 < 140), 200, 25, span)
    assert max(rates) - min(rates) <= 0.01 * max(rates)


def test_times_of_messages_are_those_of_receivers_and_of_senders() -> None:
    def message(number: int) -> completions.MessageCompletion:
        start_ns, took_ns, sender_ns = 1000 * number, 10 * number, 20 * number * number
        times = start_ns, start_ns + sender_ns, start_ns + took_ns
        return completions.MessageCompletion("w", "h0", "h1", number, 7, *times, ideal_ns=5.0 * number)

    found = completions.summed("w", [message(number) for number in range(1, 12)])
    numbers = np.arange(1, 12)
    assert (found["workload"], found["count"], found["bytes"]) == ("w", 11, 77)
    assert (found["median_ns"], found["longest_ns"]) == (60, 110)
    assert found["p99_ns"] == pytest.approx(np.quantile(10 * numbers, 0.99))
    assert found["last_ns"] == 11_000 + 110 - 1000
    assert found["sender_median_ns"] == 20 * 36
    assert found["sender_p99_ns"] == pytest.approx(np.quantile(20 * numbers**2, 0.99))
    assert found["sender_last_ns"] == 11_000 + 20 * 121 - 1000
    assert (found["slowdown_median"], found["slowdown_p99"]) == (2.0, 2.0)


def test_a_message_alone_takes_its_bytes_over_all_ports_and_its_last_packet_over_each_link_more() -> None:
    options = {
        "host_rate_bps": 16_000_000, "port_rate_bps": 8_000_000, "pmtu_bytes": 1000, "hosts": 4,
        "fabric": {"leaves": 2}, "delay_ns": {"local": 10_000, "fabric": 70_000},
    }  # fmt: skip
    lines = [
        {"t_ns": 0, "node": "runner", "kind": "options", **options},
        *(
            {"t_ns": 9, "node": "h0", "kind": "message", "state": "sent", "workload": "w", "peer": peer, "message": 1,
             "bytes": size, "start_ns": 1, "end_ns": 9}
            for peer, size in (("h1", 4000), ("h3", 4000), ("h3", 100))
        ),
    ]  # fmt: skip
    found = completions.completions(Run(lines))
    assert [one.ideal_ns for one in found] == [10_000 + 3e6, 70_000 + 2e6 + 3e6, 70_000 + 5e4 + 3e5]
    assert {one.line for one in found} == {0}, "of a message that is of no file"


def test_a_fault_that_the_lab_carries_out_for_the_runner_is_not_one_by_hand() -> None:
    def fault(t_ns: int, node: str, target: str, state: str) -> dict[str, object]:
        return {"t_ns": t_ns, "node": node, "kind": "fault", "verb": "link-down", "target": target, "state": state}

    found = fault_spans(
        [
            fault(1, "runner", "p0l0-p0s0", "begin"),
            fault(2, "lab", "p0s0-p0l0", "begin"),
            fault(3, "lab", "p1l0-p1s0", "begin"),
            fault(4, "lab", "p1l0-p1s0", "end"),
            fault(5, "runner", "p0l0-p0s0", "end"),
            fault(6, "lab", "p0l0-p0s0", "end"),
        ]
    )
    assert [(one.target, one.start_ns, one.stop_ns, one.by_hand) for one in found] == [
        ("p0l0-p0s0", 1, 5, False),
        ("p1l0-p1s0", 3, 4, True),
    ]


def test_switches_of_linux_count_no_lost_packets_and_lose_none_as_far_as_is_known() -> None:
    options = {"t_ns": 0, "node": "runner", "kind": "options", "switch_kind": "linux"}
    sample = {"t_ns": 0, "node": "h0", "kind": "sample", "ports": [], "qps": []}
    found = evidence.sockets(Run([options, sample]))
    assert found.holds is True, found.reason


def test_a_message_of_nothing_over_cables_without_delay_takes_the_least_time_there_is() -> None:
    run = Run([{"t_ns": 0, "node": "runner", "kind": "options", "hosts": 2}])
    assert completions.ideal(run, "h0", "h1", 0) == 1.0


def test_timeouts_are_counted_where_hosts_tell_of_their_queue_pairs() -> None:
    def sampled(t_ns: int, rto: int) -> dict[str, object]:
        qp = {"qp": 1, "peer": "h1", "rto": rto}
        return {"t_ns": t_ns, "node": "h0", "kind": "sample", "qps": [qp], "ports": []}

    check = checks.retransmission_timeouts(at_most=2)
    assert check(Run([])).holds is None
    assert check(Run([sampled(1, 0), sampled(9, 2)])).holds is True
    assert check(Run([sampled(1, 0), sampled(9, 3)])).holds is False


def test_a_schedule_is_complete_when_each_rank_has_finished() -> None:
    ended = [
        {"t_ns": 1, "node": "h0", "kind": "workload", "state": "stop", "outcome": how} for how in ("finished", "failed")
    ]
    found = [checks.schedule_complete()(Run(stops)).holds for stops in ([], ended[:1], ended)]
    assert found == [None, True, False]


TICK = 100_000_000


def lines(workload: str, sender: str, amounts: dict[int, int]) -> list[dict[str, object]]:
    """`amounts` bytes in the interval that begins at so many ticks; nothing in all others up to tick 20."""
    return [
        {
            "t_ns": (tick + 1) * TICK, "node": "h0", "kind": "transfer", "workload": workload, "peer": sender,
            "bytes": amounts.get(tick, 0), "start_ns": tick * TICK, "end_ns": (tick + 1) * TICK, "verified": True,
        }
        for tick in range(min(amounts), 20)
    ]  # fmt: skip


def test_rates_silences_and_beginnings_of_a_workload_that_starts_with_its_phase() -> None:
    span = Span("faults", 10 * TICK, 20 * TICK)
    run = Run([*lines("in", "h1", {10: 0, 12: 500, 19: 500}), *lines("in", "h2", {10: 0, 14: 2000})])
    seen = flows.within(run, span, "in")
    assert seen is not None
    assert seen.rates == {"h0 → h1": pytest.approx(8000), "h0 → h2": pytest.approx(16000)}
    assert seen.mean_bps == pytest.approx(12000)
    assert seen.first_ns == 5 * TICK  # the later of the two
    assert seen.silence_ns == 6 * TICK  # h1 between ticks 13 and 19


def test_a_flow_from_before_has_no_beginning_one_that_ends_early_is_silent_and_without_writes_there_is_none() -> None:
    run = Run(lines("victim", "h1", dict.fromkeys(range(20), 100)))
    seen = flows.within(run, Span("faults", 10 * TICK, 20 * TICK), "victim")
    assert seen is not None
    assert (seen.first_ns, seen.silence_ns) == (None, 0)
    run = Run(lines("victim", "h1", {0: 100, 5: 100}))
    seen = flows.within(run, Span("faults", 4 * TICK, 20 * TICK), "victim")
    assert seen is not None
    assert seen.silence_ns == 14 * TICK
    run = Run(lines("victim", "h1", {0: 100}))
    assert flows.workloads(run) == ["victim"]
    assert flows.within(run, Span("faults", 0, TICK), "incast") is None
    assert flows.within(run, Span("later", 30 * TICK, 40 * TICK), "victim") is None


SECOND = 1_000_000_000


def run_of(*samples: tuple[float, Mapping[str, Any]]) -> Run:
    """One host whose only queue pair had these counters at these seconds; the phase is from 1 s to 3 s."""
    lines: list[dict[str, Any]] = [
        {"t_ns": SECOND, "node": "runner", "kind": "phase", "name": "reference", "state": "start"},
        {"t_ns": 3 * SECOND, "node": "runner", "kind": "phase", "name": "reference", "state": "stop"},
    ]
    port = {"port": 1, "plane": 0, "tx_bytes": 0}
    for at_s, counted in samples:
        qps = [{"qp": 1, "peer": "h1", **counted}]
        lines.append({"t_ns": round(at_s * SECOND), "node": "h0", "kind": "sample", "ports": [port], "qps": qps})
    return Run(sorted(lines, key=lambda line: int(line["t_ns"])))


def test_one_sample_at_the_end_tells_the_goodput_of_all_that_was_counted_since_the_first_phase() -> None:
    # 1,000 bytes in the two seconds since the first phase began: 4,000 bit/s.
    run = run_of((3, {"acked_bytes": 1000, "data_packets": 5}))
    assert goodput.of_phase(run, run.phases["reference"]) == pytest.approx(4000)
    assert counters.qp_totals(run) == {"data_packets": 5, "acked_bytes": 1000}
    # 300 bytes before the phase, 700 in it: 2,800 bit/s.
    run = run_of((0.5, {"acked_bytes": 300}), (1, {"acked_bytes": 300}), (3, {"acked_bytes": 1000}))
    assert goodput.of_phase(run, run.phases["reference"]) == pytest.approx(2800)
    assert counters.qp_totals(run)["acked_bytes"] == 1000


def test_a_run_without_samples_has_no_goodput_and_no_counters(tmp_path) -> None:
    run = run_of()
    assert goodput.of_phase(run, run.phases["reference"]) is None
    assert tables.goodput_rows(run) == [["reference", "2.0 s", "not read", ""]]
    assert {told for _, told in tables.counter_rows(run)} == {"not read"}
    found = figures(run)
    assert found["acked_bytes"] is None
    assert set(found["counters_packets"].values()) == {None}
    assert found["phases"][0]["goodput_bps"] is None
    files = {path.name: path.read_text().splitlines() for path in write_csv(run, tmp_path / "csv")}
    assert files["goodput.csv"] == ["time_s,goodput_bps"]
    assert "retransmits," in files["counters.csv"]
    assert measured(run) == {}
    assert {row[1] for row in comparison.rows([run, run]) if row[0] in tables.COUNTER_TITLES.values()} == set()


@pytest.mark.parametrize("judged", [checks.faults_felt("reference"), checks.switches_trimmed()])
def test_checks_of_counters_say_that_no_host_reported_any(judged: checks.Check) -> None:
    assert judged(run_of()).reason == "no host reported its queue pairs"


def test_a_counter_that_no_queue_pair_has_is_not_read() -> None:
    rows = dict(tables.counter_rows(run_of((3, {"acked_bytes": 1000, "retransmits": 0}))))
    assert (rows["retransmitted"], rows["trimmed on the way"], rows["switch drops"]) == ("0", "not read", "not read")


def test_switches_that_wrote_no_samples_prove_nothing_about_trimming(made_up: Callable[..., Run]) -> None:
    run = made_up(trims=9, changed={"world": "simulated"})
    blind = [Run([line for line in run.lines if line.get("device") is None]) for _ in range(2)]
    found = comparison.trimming_matters(("with", blind[0]), ("without", blind[1]))
    assert (found.holds, found.reason) == (None, "with: no switch wrote samples")


def test_a_switch_that_runs_no_program_has_no_trims_and_none_becomes_a_count() -> None:
    row: dict[str, Any] = {"IFACE": "p0l0-eth1", "TRIM_PKTS": None, "DROPS": {}}
    assert port_rows.added({"ports": [row]}, {"ports": [{**row, "TRIM_PKTS": 4}]})["ports"][0]["TRIM_PKTS"] == 4


def test_a_run_ends_with_a_sample_however_short_it_is(tmp_path) -> None:
    """A rank that computes for a third of the time between two samples, and then sends 100,000 bytes: 25 packets."""
    goal = tmp_path / "two.goal"
    goal.write_text(
        "num_ranks 2\nrank 0 {\na: calc 3000\nb: send 100000b to 1 tag 1\nb requires a\n}\n"
        "rank 1 {\na: recv 100000b from 0 tag 1\n}\n"
    )
    cli.main(["run", str(goal), "--plan", "tiny", "--world", "simulated", "--seed", "1", "--runs", str(tmp_path)])
    run = Run.open(find(tmp_path, "latest"))
    assert counters.qp_totals(run)["data_packets"] == 25
    took_s = run.phases["run"].length_ns / 1e9
    assert goodput.of_phase(run, run.phases["run"]) == pytest.approx(800_000 / took_s, rel=0.02)
    last = {host: int(samples[-1]["t_ns"]) for host, samples in run.agent_samples.items()}
    assert set(last.values()) == {run.end_ns}


def test_packets_that_no_queue_pair_counts_are_told_beside_reliability_probes(tmp_path: Path) -> None:
    """The log of all packets is the truth: EV probes and port updates are requests and responses."""
    choice = replace(transport("mrc"), payload="counted")
    choices = Choices(
        choice, load_plan("tiny"), seed=3, world="simulated", time_factor=0.1, record_packets_s=(0.0, 1e4)
    )
    folder = make_run(RunSpec(library.find("smoke"), choices), tmp_path)
    lines = map(json.loads, next(folder.rglob("packets.jsonl")).read_text().splitlines())
    sent = Counter(line["op"] for line in lines if line.get("node", "")[:1] == "h" and line["fate"] == "sent")
    assert min(sent["ENDPOINT_REQUEST"], sent["ENDPOINT_RESPONSE"], sent["ACKNOWLEDGE"], sent["PROBE"]) > 0
    run = Run.open(folder)
    others = sent["ENDPOINT_REQUEST"] + sent["ENDPOINT_RESPONSE"] + sent["ACKNOWLEDGE"]
    assert counters.other_packets(run) == others
    assert counters.qp_totals(run)["probes"] == sent["PROBE"]
    told = {"reliability probes sent": f"{sent['PROBE']:,}", "EV probes, ACKs, updates": f"{others:,}"}
    assert told.items() <= dict(tables.counter_rows(run)).items()
    assert told.items() <= {row[0]: row[1] for row in comparison.rows([run, run])}.items()
    csv_rows = next(path for path in write_csv(run, tmp_path / "csv") if path.name == "counters.csv").read_text()
    assert f"\nother_packets,{others}\n" in csv_rows
    assert figures(run)["counters_packets"]["other_packets"] == others


def test_packets_of_a_queue_pair_that_was_closed_between_samples_are_not_taken_for_others() -> None:
    own = {"data_packets": 5, "sacks_sent": 1, "nacks_sent": 0, "retransmits": 0, "probes": 0}
    run = run_of((1, own), (3, own))
    for line in run.agent_samples["h0"]:
        line["ports"][0]["tx_packets"] = 9
    assert counters.other_packets(run) == 3
    run.agent_samples["h0"][0]["qps"].append({"qp": 2, "workload": "a program", **own})
    assert counters.other_packets(run) is None
    assert counters.other_packets(run_of((3, {"data_packets": 5}))) is None, "RoCE counts no SACKs"
