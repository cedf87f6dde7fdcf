"""The conclusions from two runs of the same experiment: sentences with figures, each true, false or unknown.

The claims are two: a baseline fails or stalls where MRC does not, and without trimming congestion looks like broken
paths. Nothing is claimed of runs that are not alike, or whose evidence is not sound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from judging import evidence
from judging.checks import qp_errors
from judging.measures import counters, flows, goodput, paths, steps
from judging.reports.likeness import Likeness, likeness
from judging.run import Run, Span
from judging.units import brief
from judging.verdict import Finding

P99_FACTOR = 2.0  # the baseline's p99 step is at least so many times MRC's, unless one of its queue pairs failed
CALM = ("warmup", "reference", "pause", "heal")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The outcome of one run, from the first phase with faults to the last."""

    name: str
    qp_errors: int
    p99_ns: int | None  # of training steps, None without any; an unfinished step counts for as long as it lasted
    goodput_bps: float
    kept: float | None  # goodput as a share of the reference phase's; None without faults
    unsound: str  # why its evidence is worth nothing; "" when it is sound


def faulty_span(run: Run) -> Span | None:
    """From the beginning of the first phase that is not calm to the end of the last."""
    spans = [span for name, span in run.phases.items() if name not in CALM]
    if not spans:
        return None
    return Span("faults", min(span.start_ns for span in spans), max(span.stop_ns for span in spans))


def outcome(name: str, run: Run) -> RunOutcome:
    """The outcome of a run; missing phases leave their figures empty."""
    errors = len(qp_errors(run))
    reference, span = run.phases.get("reference"), faulty_span(run)
    unsound = next((f"{finding.reason}" for finding in evidence.sound(run) if finding.holds is not True), "")
    unsound = unsound or (evidence.behind(run, span) if span else "")
    if span is None:
        return RunOutcome(name, errors, None, 0.0, None, unsound)
    all_steps = steps.steps(run)
    during = steps.times(steps.of_phase(all_steps, span))
    p99_ns = max(during.p99_ns, steps.stalled_ns(all_steps, span)) if during else None
    bps = goodput.of_phase(run, span)
    before = goodput.of_phase(run, reference) if reference else 0.0
    return RunOutcome(name, errors, p99_ns, bps, bps / before if before and run.faults else None, unsound)


def findings(named: list[tuple[str, Run]]) -> list[Finding]:
    """The findings between two runs; of more, those of each against the first, with its name in the check."""
    if len(named) == 2:
        return of_two(named)
    return [
        replace(found, check=f"{other[0]}: {found.check}") for other in named[1:] for found in of_two([named[0], other])
    ]


def of_two(named: list[tuple[str, Run]]) -> list[Finding]:
    """Whether the two runs are alike, the outcome of each, and the claims about the thing in which they differ."""
    (_, first), (_, second) = named
    alike = likeness(first, second)
    found = [likeness_finding(alike)]
    if not alike.alike:
        return found
    outcomes = [outcome(name, run) for name, run in named]
    found += ratios(outcomes)
    single = [bool(run.options.get("single_plane")) for _, run in named]
    if single.count(True) == 1:
        found.append(baseline_worse(outcomes[single.index(False)], outcomes[single.index(True)]))
    off = [trimming_off(run) for _, run in named]
    if off.count(True) == 1 and not any(single):
        found.append(trimming_matters(named[off.index(False)], named[off.index(True)]))
    return found


def likeness_finding(alike: Likeness) -> Finding:
    """Whether the two runs may be compared at all."""
    if not alike.alike:
        return Finding("like with like", None, "; ".join(alike.unlike) + ": nothing follows from a difference")
    return Finding(
        "like with like", True, f"the same experiment, but for {alike.subject or 'nothing: it was repeated'}"
    )


def ratios(outcomes: list[RunOutcome]) -> list[Finding]:
    """The second run's figures against the first's: measured, not judged, so they hold."""
    first, second = outcomes
    failed = f"{first.name} {first.qp_errors}, {second.name} {second.qp_errors}"
    found = [Finding("queue pairs failed", True, failed, {o.name: o.qp_errors for o in outcomes})]
    if first.p99_ns and second.p99_ns:
        ratio = second.p99_ns / first.p99_ns
        reason = f"{second.name} {brief(second.p99_ns)}, {ratio:.2f} times {first.name}'s {brief(first.p99_ns)}"
        found.append(Finding("p99 step", True, reason, {"ratio": round(ratio, 3)}))
    if first.goodput_bps and second.goodput_bps:
        ratio = second.goodput_bps / first.goodput_bps
        kept = [f"{o.name} kept {o.kept:.1%} of its own reference" for o in outcomes if o.kept is not None]
        reason = "; ".join([f"{second.name} carried {ratio:.2f} times what {first.name} did", *kept])
        found.append(Finding("goodput", True, reason, {"ratio": round(ratio, 3)}))
    return found


def baseline_worse(mrc: RunOutcome, baseline: RunOutcome) -> Finding:
    """On the same timeline the baseline has a QP error, or a p99 step of at least `P99_FACTOR` times MRC's."""
    check = "baseline worse"
    for run in (mrc, baseline):
        if run.unsound:
            return Finding(check, None, f"{run.name}: {run.unsound}")
    if mrc.qp_errors:
        return Finding(check, False, f"{mrc.qp_errors} queue pairs of {mrc.name} failed on this timeline")
    if baseline.qp_errors:
        reason = f"{baseline.qp_errors} queue pairs of {baseline.name} failed, none of {mrc.name}"
        return Finding(check, True, reason, {"errors": baseline.qp_errors})
    if mrc.p99_ns is None or baseline.p99_ns is None:
        return Finding(check, None, "no queue pair failed in either run, and there are no training steps to compare")
    ratio = baseline.p99_ns / mrc.p99_ns
    reason = f"no queue pair failed, and {baseline.name}'s p99 step is {ratio:.2f} times {mrc.name}'s"
    return Finding(check, ratio >= P99_FACTOR, f"{reason} (at least {P99_FACTOR:g}, or a failure, was expected)")


def trimming_off(run: Run) -> bool:
    """Whether a run was told to do without trimming."""
    return str((run.options.get("overrides") or {}).get("trimming.enabled", "true")).lower() == "false"


@dataclass(frozen=True, slots=True)
class Harm:
    """The harm that congestion did to a run; less is better in every field."""

    timeouts: int
    vanished: int  # packets that a switch dropped without telling any host
    abandoned: int  # paths
    began_ns: int  # until every flow of the slowest workload had its first bytes
    silence_ns: int  # the longest time in which a flow of some workload received nothing

    def sentence(self) -> str:
        """All of it in words."""
        waits = f"first bytes everywhere after {brief(self.began_ns)}, longest silence {brief(self.silence_ns)}"
        return f"{self.timeouts} timeouts, {self.vanished} packets vanished, {self.abandoned} paths abandoned, {waits}"


def harm(run: Run) -> Harm:
    """Summed over the run, and the worst of its flows from the first phase that is not calm on."""
    totals, drops, span = counters.qp_totals(run), counters.switch_drops(run), faulty_span(run)
    seen = [flows.within(run, span, workload) for workload in flows.workloads(run)] if span else []
    return Harm(
        timeouts=totals["rto"],
        vanished=drops["drop_program"] + drops["drop_trimmed_share"] + drops["drop_queue_full"],
        abandoned=paths.abandoned(run)[0],
        began_ns=max((one.first_ns or 0 for one in seen if one), default=0),
        silence_ns=max((one.silence_ns for one in seen if one), default=0),
    )


def trimming_matters(trimmed: tuple[str, Run], dropped: tuple[str, Run]) -> Finding:
    """Without trimming, congested switches drop packets silently; hosts wait for timeouts or give up sound paths."""
    check = "worse without trimming"
    for name, run in (trimmed, dropped):
        unsound = outcome(name, run).unsound
        if unsound:
            return Finding(check, None, f"{name}: {unsound}")
    with_, without = harm(trimmed[1]), harm(dropped[1])
    reason = f"with: {with_.sentence()}; without: {without.sentence()}"
    if not counters.qp_totals(trimmed[1])["trims"] or not without.vanished:
        return Finding(check, None, f"no queue was ever full enough to tell ({reason})")
    worse = without.timeouts > with_.timeouts or without.abandoned > with_.abandoned
    return Finding(check, worse and without.vanished > with_.vanished, reason)
