"""A job starts on a fabric with many dead links and no denylist: hosts find out by losing packets."""

from collections.abc import Sequence
from itertools import product

from judging import SECOND_NS, Finding, PaperRow, Run, Span, checks, evidence
from judging.checks import Check, check
from judging.measures import counters
from judging.measures.paths import PathKey
from scenarios import places
from scenarios.scenario import (
    COMM_S,
    COMPUTE_S,
    Phase,
    Scenario,
    Setting,
    TimedFault,
    Workload,
    carried_out,
    step_s,
    training_loop,
)

REPAIRS = 2
"""In turn: 7 of 16 paths between two leaves cross a dead link, and in the first round trips nobody knows which, so that
nearly every second copy is lost as its packet was."""
PAUSE_STEPS = 1.5  # a step takes a little longer than it would at line rate


def timeline(setting: Setting) -> list[TimedFault]:
    """One uplink in every leaf of every plane is dead from the first instant of the job on: a quarter of all links.

    Two leaves that are wired to each other may have drawn the same link, which then is dead once.
    """
    plan, rng = setting.plan, setting.new_rng()
    dead: dict[frozenset[str], str] = {}
    for plane, leaf in product(range(plan.planes), range(plan.leaves)):
        link = rng.choice(places.uplinks(plan, plane, leaf))
        dead.setdefault(frozenset(link.split("-")), link)
    return [TimedFault(0.0, "link-down", link) for link in dead.values()]


def workloads(setting: Setting) -> Sequence[Workload]:
    """A first job on the whole fabric is the reference; the second job, which is judged, starts among dead links.

    The first job ends its last step before or during the pause, so that the two never share a link.
    """
    whole = training_loop(setting)
    calm_s = sum(setting.phases[name] for name in ("warmup", "reference", "pause"))
    before_s = max(0.1, calm_s - PAUSE_STEPS * step_s(setting))
    first = {**whole.options, "duration_ns": round(before_s * setting.pace * SECOND_NS)}
    return [Workload("training", first, name="whole"), Workload("training", whole.options, name="cold", phase="faults")]


@check
def losses_fade(run: Run, share: float = 0.1) -> Finding:
    """Retransmissions a second in the last quarter of the phase are at most `share` of those in the first."""
    span = run.phases.get("faults")
    if span is None:
        return Finding("losses fade", None, "there was no phase 'faults'")
    quarter = span.length_ns // 4
    first = counters.qp_totals(run, Span("first", span.start_ns, span.start_ns + quarter)).get("retransmits", 0)
    last = counters.qp_totals(run, Span("last", span.stop_ns - quarter, span.stop_ns)).get("retransmits", 0)
    figures = {"first_quarter": first, "last_quarter": last}
    if not first:
        return Finding("losses fade", None, "nothing was lost at the start, so nothing was shown", figures)
    reason = f"{first} retransmissions in the first quarter, {last} in the last"
    return evidence.blamed(Finding("losses fade", last <= share * first, reason, figures), evidence.behind(run, span))


def judge(setting: Setting) -> Sequence[Check]:
    dead = {frozenset(fault.target.split("-")) for fault in timeline(setting)}

    def crosses_a_dead_link(path: PathKey) -> bool:
        return not dead.isdisjoint(places.crossed_links(setting, path))

    return [
        *checks.always(healed_except=crosses_a_dead_link),
        checks.faults_happened(at_least=len(carried_out(setting, timeline(setting)))),
        losses_fade(),
        checks.fault_cost(repairs=REPAIRS),
        checks.drift(),
    ]


SCENARIO = Scenario(
    name="cold-start",
    title="A job that starts among dead links finds the live ones",
    description=(
        "A quarter of all links between leaves and spines is dead, and there is no denylist. Queue pairs that "
        "start now spray over all paths, lose packets on the dead ones, and leave those paths one by one within "
        "seconds."
    ),
    plan="lab",
    workloads=workloads,
    timeline=timeline,
    checks=judge,
    phases=(
        Phase("warmup", 4.0),
        Phase("reference", 14.0),
        Phase("pause", PAUSE_STEPS * (COMM_S + COMPUTE_S)),
        Phase("faults", 36.0),
        Phase("heal", 4.0),
    ),
    paper=(PaperRow("4", "75K-GPU job, no denylist", "9.2e5 losses/s, 1.5e4 a minute later, then 1.2–2 thousand"),),
)
