"""A host's NIC ports go down one by one and come back; then half of them at once."""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean

from judging import Finding, PaperRow, Run, Span, checks, evidence, sample_size
from judging.checks import Check, check
from judging.measures import cost, stalls
from scenarios.scenario import Phase, Scenario, Setting, TimedFault, Workload, carried_out, phases

HOST = "h0"
STEP_S = 5.0
SETTLE_ROUND_TRIPS = 20  # the peer is told, windows find the new rate; the paper allows a glitch of one second


def timeline(setting: Setting) -> list[TimedFault]:
    """All ports but one go down, a plateau apart, and come back in reverse order; then every second port at once."""
    planes = setting.plan.planes
    steps = planes - 1
    step_s = min(STEP_S, setting.phases["faults"] / max(1, 2 * steps))
    one_by_one = [
        TimedFault(step_s * index, "port-down", f"{HOST}.p{index}", step_s * (2 * (steps - index) - 1))
        for index in range(steps)
    ]
    half = [
        TimedFault(step_s / 5, "port-down", f"{HOST}.p{plane}", step_s, phase="half") for plane in range(0, planes, 2)
    ]
    return [*one_by_one, *half]


def level(run: Run, start_ns: int, stop_ns: int) -> tuple[float, float, int]:
    """The median goodput of a time in bins, its standard error as a share, and how many bins; nothing of too few."""
    settled = Span("plateau", start_ns + SETTLE_ROUND_TRIPS * sample_size.base_rtt_ns(run), stop_ns)
    bins = cost.laps(run, settled) if settled.length_ns > 0 else []
    pace = cost.pace([lap for lap in bins if lap.work > 0])
    if pace is None or pace.count < cost.QUIET_MIN:
        return 0.0, 1.0, 0
    return 1 / pace.ns_per_work, 1.25 * pace.spread_ns / bins[0].length_ns / pace.count**0.5, pace.count


@check
def plateaus(run: Run, setting: Setting, name: str, phase: str, wanted: int, limit: float = 0.03) -> Finding:
    """Between two changes, goodput is within `limit` of the live ports' share of what all carry in the same phase.
    Fewer than `wanted` of these plateaus are too little evidence.
    """
    planes = setting.plan.planes
    if setting.single_plane or planes == 1:
        return Finding(name, None, "a host has one port here: without it nothing is left to step down to")
    span = run.phases.get(phase)
    if span is None:
        return Finding(name, None, f"there was no phase {phase!r}")
    spans = []
    for start_ns, stop_ns in changes(run, span):
        middle = (start_ns + stop_ns) // 2
        down = sum(f.start_ns <= middle and (f.stop_ns is None or middle < f.stop_ns) for f in run.faults)
        rate, error, bins = level(run, start_ns, stop_ns)
        if bins:
            spans.append((down, rate, error))
    whole = [rate for down, rate, _ in spans if not down]
    if len(spans) < wanted or not whole:
        reason = f"{len(spans)} plateaus were long enough to measure ({wanted} are needed, one with all ports)"
        return Finding(name, None, "; ".join(filter(None, [reason, stalls.describe(run, span)])))
    rows = [(down, rate / whole[-1], 1 - down / planes) for down, rate, _ in spans]
    error = quotient_error([error for _, _, error in spans])
    worst = max(abs(got - want) for _, got, want in rows)
    figures = {"plateaus": [{"ports_down": d, "share": round(g, 4), "expected": w} for d, g, w in rows]}
    shares = ", ".join(f"{got:.0%}" for _, got, _ in rows)
    reason = f"plateaus at {shares} of what all ports carry; the farthest is {worst:.1%} of it off (limit {limit:.0%})"
    holds = sample_size.holds(worst, limit, error)
    finding = Finding(name, holds, reason + sample_size.doubt(holds, error, stalls.describe(run, span)), figures)
    return evidence.blamed(finding, evidence.behind(run, span))


def quotient_error(errors: Sequence[float]) -> float:
    """The error of a quotient of two levels with 95 % confidence, from the standard errors of all, as shares.

    A level has few bins, so that its spread is uncertain itself: there is one estimate, from all levels.
    """
    return 2 * sqrt(2 * fmean(error**2 for error in errors))


def changes(run: Run, span: Span) -> list[tuple[int, int]]:
    """The times between two changes of ports in a phase."""
    at = sorted({t for t in cost.instants(run.faults) if span.contains(t)})
    return list(pairwise([*at, span.stop_ns]))


@check
def all_back(run: Run, phase: str) -> Finding:
    """At the end of a phase, goodput is what it was in the reference."""
    reference, span = run.phases.get("reference"), run.phases.get(phase)
    if reference is None or span is None or not changes(run, span):
        return Finding("drift", None, f"phases 'reference' and {phase!r} with faults are both needed")
    (before, *_), (after, *_) = level(run, reference.start_ns, reference.stop_ns), level(run, *changes(run, span)[-1])
    if not before or not after:
        return Finding("drift", None, f"no quiet part of the reference or of phase {phase!r} to compare")
    return checks.drifted(run, before / after - 1, phase)


def judge(setting: Setting) -> Sequence[Check]:
    faults = carried_out(setting, timeline(setting))
    return [
        *checks.always(),
        checks.faults_happened(at_least=len(faults)),
        plateaus(setting, "one by one", "faults", wanted=2 * (setting.plan.planes - 1)),
        all_back("faults"),
        plateaus(setting, "half at once", "half", wanted=2),
        all_back("half"),
    ]


def workloads(setting: Setting) -> Sequence[Workload]:
    options = {"size": 262144, "depth": 16, "qps": 4 * setting.queue_pairs, "bidirectional": True, "messages": 0}
    return [Workload("write_bw", options, ranks=(HOST, setting.last_host))]


def fault_seconds(planes: int) -> float:
    """The length of the timeline for so many ports, in seconds."""
    return STEP_S * 2 * (planes - 1)


SCENARIO = Scenario(
    name="nic-port",
    title="Lost NIC ports cost no more than their share",
    description=(
        "Two hosts write to each other both ways on four queue pairs. The first host loses its ports one by one, "
        "down to the last, and gets them back; later it loses half of them at once. Its peer learns of each "
        "change by a port status update on the live planes. No queue pair fails; goodput follows the number of "
        "live ports."
    ),
    plan="lab",
    workloads=workloads,
    timeline=timeline,
    checks=judge,
    phases=phases(Phase("half", 12.0), reference_s=15.0, faults_s=fault_seconds(4), heal_s=5.0),
    short=phases(Phase("half", 8.2), warmup_s=2.0, reference_s=8.0, faults_s=22.0, heal_s=2.0),
    paper=(
        PaperRow("9a", "8 NIC ports down one by one, then up", "1531 down to 383 Gb/s in steps of 191; glitches < 1 s"),
        PaperRow("9b", "4 of 8 NIC ports flap, 5.3 s to 17 s", "1533 → 761 Gb/s and back within 0.22 s"),
    ),
)
