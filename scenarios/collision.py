"""Permutation traffic: every host writes to one under another leaf, and no two to the same."""

from collections.abc import Sequence

from judging import Finding, PaperRow, Run, checks, evidence, sample_size
from judging.checks import Check, check
from judging.measures import planes, stalls
from scenarios import places
from scenarios.scenario import Scenario, Setting, Workload, phases


def workloads(setting: Setting) -> Sequence[Workload]:
    """ValueError on a fabric that has no room for the permutation: there flows are slow without meeting by chance."""
    shift = places.shift_to_other_leaf(setting.plan)
    places.check_room(setting.plan, places.shifted(setting.plan, shift), "collision")
    options = {"size": 262144, "depth": 8, "qps": setting.queue_pairs, "messages": 0, "shift": shift}
    return [Workload("permutation", options)]


@check
def at_line_rate(run: Run, setting: Setting, at_least: float = 0.90) -> Finding:
    """Hosts together send at least this share of their line rate: nothing collides."""
    rate_bps = setting.host_rate_bps * setting.plan.host_count
    span = run.phases.get("reference")
    if span is None:
        return Finding("line rate", None, "there was no reference phase")
    share = sum(planes.bytes_sent(run, span).values()) * 8e9 / span.length_ns / rate_bps
    reason = f"hosts sent {share:.1%} of their line rate (at least {at_least:.0%})"
    error = sample_size.rate_error(run, span.length_ns)
    holds = sample_size.holds(1 - share, 1 - at_least, error)
    doubt = sample_size.doubt(holds, error, stalls.describe(run, span))
    finding = Finding("line rate", holds, reason + doubt, {"share": round(share, 4)})
    return evidence.blamed(finding, evidence.behind(run, span))


def judge(setting: Setting) -> Sequence[Check]:
    return [*checks.always(), checks.flows_even("main", 0.10, phase="reference", skip_s=0.0), at_line_rate(setting)]


SCENARIO = Scenario(
    name="collision",
    title="A permutation does not collide",
    description=(
        "Every host writes to the host in its place under the next leaf. A full-bisection fabric has room for all "
        "of them at line rate, if no two flows meet on a link. With one path a flow (--transport roce) the hash "
        "decides, and some flows share; spraying has nothing to collide."
    ),
    plan="rack",
    workloads=workloads,
    checks=judge,
    phases=phases(warmup_s=4.0, reference_s=20.0, faults_s=0.0, heal_s=0.0),
    short=phases(warmup_s=3.0, reference_s=8.0, faults_s=0.0, heal_s=0.0),
    paper=(
        PaperRow("20", "8 flows, MRC", "390 Gb/s each"),
        PaperRow("20", "8 flows, RoCE, 1 QP", "391 ×3, 196 ×2, 131 ×3 Gb/s"),
        PaperRow("20", "8 flows, RoCE with DCQCN, 8 QPs", "392 Gb/s each"),
    ),
)
