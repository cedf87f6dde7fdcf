"""Checks, verdicts and statistics over a made-up run whose truth is known."""

import json
import operator
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from judging import checks, evidence
from judging.checks import check
from judging.judge import judge, verdict_of
from judging.measures import goodput, paths, planes, recovery, steps
from judging.run import Run, Span
from judging.story import Story
from judging.verdict import Finding, conclude
from tests.helpers.made_up_run import own_checks

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


def test_a_verdict_is_written_although_a_check_raises(made_up: Build, tmp_path) -> None:
    (tmp_path / "journal").mkdir()
    lines = (json.dumps(line) + "\n" for line in made_up().lines)
    (tmp_path / "journal" / "all.jsonl").write_text("".join(lines))
    judge(tmp_path, [of_nothing(None)], Story("Made up", ""))
    assert json.loads((tmp_path / "verdict.json").read_text())["verdict"] == "unknown"


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
    run = made_up()
    assert checks.faults_felt()(run).holds is None  # whatever was sent again was so before the faults
    for line in run.lines:
        for qp in line.get("qps", []):
            qp["retransmits"] += line["t_ns"] > 15 * 10**9
    assert checks.faults_felt()(Run(run.lines)).holds is True
    assert checks.faults_felt()(made_up(qp_error=True)).holds is True


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
