"""The checks: each is a function from a run to one finding, made with the thresholds that a scenario chooses.

`always()` are the checks that every run must pass; a scenario adds some of the others, and its own.
"""

from collections.abc import Callable
from functools import wraps
from math import hypot
from typing import Concatenate, ParamSpec

from common.journal import Line
from common.terminal.counted import counted
from judging import evidence, sample_size
from judging.measures import cost, counters, flows, goodput, paths, planes, stalls, steps
from judging.run import FaultSpan, Run, Span
from judging.verdict import Finding

Check = Callable[[Run], Finding]
Thresholds = ParamSpec("Thresholds")


def check(rule: Callable[Concatenate[Run, Thresholds], Finding]) -> Callable[Thresholds, Check]:
    """The rule as a maker of checks: a call with the rule's thresholds gives the check of a run."""

    @wraps(rule)
    def make(*thresholds: Thresholds.args, **named: Thresholds.kwargs) -> Check:
        @wraps(rule)
        def judged(run: Run) -> Finding:
            return rule(run, *thresholds, **named)

        return judged

    return make


__all__ = [
    "Check", "always", "bytes_right", "check", "drift", "drifted", "fault_cost", "faults_felt", "faults_happened",
    "flow_kept", "flows_even", "messages_complete", "no_qp_error", "paths_healed", "planes_even", "qp_errors",
    "reference_load", "retransmission_timeouts", "schedule_complete", "switches_trimmed", "tables_unchanged",
]  # fmt: skip

# --- every run ------------------------------------------------------------------------------------------------


@check
def bytes_right(run: Run) -> Finding:
    """Some bytes were verified in memory, and none differs from what its sender wrote.

    Where payload is counted: each byte of every message arrived in its place, once.
    """
    counted = run.options.get("payload") == "counted"
    results = [line.get("result", {}) for line in run.kind("workload") if line.get("state") == "stop"]
    verified = sum(int(result.get("bytes_verified", 0)) for result in results)
    wrong = sum(int(result.get("bytes_wrong", 0)) for result in results)
    bad_lines = [line for kind in ("step", "transfer") for line in run.kind(kind) if line.get("verified") is False]
    figures = {"bytes_verified": verified, "bytes_wrong": wrong}
    if wrong or bad_lines:
        where = f"first at {bad_lines[0]['node']}" if bad_lines else "no line says where"
        what = "did not arrive in their place, once" if counted else "differ from what was written"
        return Finding("bytes right", False, f"{wrong} bytes {what} ({where})", figures)
    if not verified:
        return Finding("bytes right", None, "no byte was verified", figures)
    what = "arrived in their place, once; payload was counted" if counted else "verified in memory, none wrong"
    return Finding("bytes right", True, f"{verified / 1e6:.1f} MB {what}", figures)


@check
def messages_complete(run: Run) -> Finding:
    """Every message that was posted has completed."""
    started = {(line["node"], line.get("name")) for line in run.kind("workload") if line.get("state") == "start"}
    stops = {
        (line["node"], line.get("name")): line.get("result", {})
        for line in run.kind("workload")
        if line.get("state") == "stop"
    }
    posted = sum(int(result.get("messages_posted", 0)) for result in stops.values())
    completed = sum(int(result.get("messages_completed", 0)) for result in stops.values())
    figures = {"posted": posted, "completed": completed}
    missing = sorted(started - set(stops), key=str)
    if missing:
        return Finding("messages", False, f"the workload on {missing[0][0]} never ended", figures)
    if not posted:
        return Finding("messages", None, "no message was posted", figures)
    if completed != posted:
        return Finding("messages", False, f"{posted - completed} of {posted} messages did not complete", figures)
    return Finding("messages", True, f"all {posted} messages completed", figures)


@check
def schedule_complete(run: Run) -> Finding:
    """Every rank of every schedule has done all that its file asks for."""
    stops = [line for line in run.kind("workload") if line.get("state") == "stop"]
    left = [line for line in stops if line.get("outcome") != "finished"]
    figures = {"ranks": len(stops), "unfinished": len(left)}
    if not stops:
        return Finding("schedule", None, "no rank ended", figures)
    if left:
        first = left[0]
        reason = (
            f"{len(left)} of {len(stops)} ranks did not finish, first {first['node']} of {first.get('name')}:"
            f" {first.get('cause')}; --time FACTOR gives the run longer"
        )
        return Finding("schedule", False, reason, figures)
    return Finding("schedule", True, f"all {len(stops)} ranks finished", figures)


def qp_errors(run: Run) -> list[Line]:
    """The `qp` lines of queue pairs that went to ERROR."""
    return [line for line in run.kind("qp") if str(line.get("new", "")).lower() == "error"]


@check
def no_qp_error(run: Run) -> Finding:
    """No queue pair went to ERROR."""
    errors = qp_errors(run)
    if errors:
        first = errors[0]
        failed = counted(len(errors), "queue pair")
        reason = f"{failed} failed, first {first['node']} → {first.get('peer')}: {first.get('cause')}"
        return Finding("no QP error", False, reason, {"errors": len(errors)})
    if not run.agent_samples:
        return Finding("no QP error", None, "no host reported its queue pairs")
    return Finding("no QP error", True, "no queue pair went to ERROR")


@check
def planes_even(run: Run, limit: float = 0.05, phase: str = "reference") -> Finding:
    """Each plane's share of what all hosts sent in a phase is within `limit` of the mean."""
    span = run.phases.get(phase)
    if span is None:
        return Finding("planes even", None, f"there was no phase {phase!r}")
    sent = planes.bytes_sent(run, span)
    if len(sent) < 2:
        return Finding("planes even", True, "one plane: nothing to balance", {"planes": sent})
    if not sum(sent.values()):
        return Finding("planes even", None, "no plane carried anything")
    off = planes.spread(sent)
    error = sample_size.share_error(planes.packets_sent(run, sent), counters.queue_pairs(run))
    figures = {"spread": round(off, 4), "bytes": {str(plane): round(value) for plane, value in sent.items()}}
    reason = f"the farthest plane is {off:.1%} from the mean in phase {phase!r} (limit {limit:.0%})"
    holds = sample_size.holds(off, limit, error)
    doubted = stalls.describe(run, span) or "few packets"
    finding = Finding("planes even", holds, reason + sample_size.doubt(holds, error, doubted), figures)
    return evidence.blamed(finding, evidence.behind(run, span))


@check
def paths_healed(run: Run, except_for: Callable[[paths.PathKey], bool] = lambda path: False) -> Finding:
    """At the end no path is ASSUMED_BAD or DENIED, except paths that the scenario leaves broken."""
    if not run.agent_samples:
        return Finding("paths healed", None, "no host reported its paths")
    if run.options.get("single_plane"):
        return Finding("paths healed", True, "the baseline knows one path and nothing of its health")
    bad = [path for path in paths.not_good_at(run, run.end_ns) if not except_for(path)]
    left = paths.histories(run)
    said = f"{counted(len(bad), 'path is', 'paths are')} not good at the end"
    if bad and all(stalls.spoils(run, left[path][-1].start_ns) for path in bad):
        reason = f"{said}, all since a stall: {stalls.describe(run, run.span)}"
        return Finding("paths healed", None, reason)
    if bad:
        path = bad[0]
        where = f"{path.host} → {path.peer}, plane {path.plane} via {path.via}"
        return Finding("paths healed", False, f"{said}, first {where}")
    return Finding("paths healed", True, "every path ended in good health")


@check
def tables_unchanged(run: Run) -> Finding:
    """The static tables, read back at the end, are the plan's."""
    verifies = [line for line in run.kind("tables") if line.get("action") == "verify"]
    if not verifies:
        return Finding("tables unchanged", None, "tables were not verified at the end")
    differences = int(verifies[-1].get("differences", 0))
    if differences:
        return Finding("tables unchanged", False, f"{differences} table entries differ from the plan's")
    return Finding("tables unchanged", True, "every switch holds exactly the plan's entries")


def always(
    planes_limit: float = 0.05, healed_except: Callable[[paths.PathKey], bool] = lambda path: False
) -> list[Check]:
    """The checks that every run must pass. `healed_except` tells which paths the scenario leaves broken."""
    return [
        bytes_right(),
        messages_complete(),
        no_qp_error(),
        planes_even(planes_limit),
        paths_healed(healed_except),
        tables_unchanged(),
    ]


# --- for scenarios to choose ------------------------------------------------------------------------------------


@check
def faults_happened(run: Run, at_least: int) -> Finding:
    """At least so many faults were injected: without its faults a run shows nothing."""
    count = len(run.faults)
    holds = True if count >= at_least else None
    told = f"{counted(count, 'fault was', 'faults were')} injected (at least {at_least} are needed)"
    return Finding("faults", holds, told, {"faults": count})


@check
def faults_felt(run: Run, phase: str = "faults") -> Finding:
    """Some packets met the faults. With one path a flow most links carry nothing, and their faults show nothing."""
    span = run.phases.get(phase)
    if span is None:
        return Finding("faults felt", None, f"there was no phase {phase!r}")
    if not run.agent_samples:
        return Finding("faults felt", None, "no host reported its queue pairs")
    again = counters.qp_totals(run, Span(phase, span.start_ns, run.end_ns)).get("retransmits", 0)
    errors = len(qp_errors(run))
    figures = {"retransmits": again, "errors": errors}
    if not again and not errors:
        return Finding("faults felt", None, "no packet had to be sent again: no flow crossed what failed", figures)
    return Finding("faults felt", True, f"{counted(again, 'packet was', 'packets were')} sent again", figures)


@check
def fault_cost(
    run: Run, phase: str = "faults", repairs: int = 1, away_ns: Callable[[FaultSpan], float] | None = None
) -> Finding:
    """The law (`judging.measures.cost`): a burst of faults costs at most so many base round trips, and none costs
    `cost.WORST` times as many. The limit is that of `sample_size.repair_round_trips`, for so many `repairs` in turn:
    more than one where a copy may be lost as well.

    `away_ns` is what a fault may cost beside that, because hosts have fewer ports meanwhile.
    """
    name, span, rtt_ns = "fault cost", run.phases.get(phase), sample_size.base_rtt_ns(run)
    phase_cost = cost.of_phase(run, span, away_ns) if span is not None and rtt_ns else None
    if span is None or phase_cost is None:
        return Finding(name, None, f"phase {phase!r} has no quiet part with which its faults could be compared")
    if not phase_cost.costs:
        return Finding(name, None, f"no fault began in phase {phase!r}")
    limit = repairs * sample_size.repair_round_trips(run)
    every, most_ns = phase_cost.together, limit * rtt_ns
    judged = [(every, most_ns), *((part, cost.WORST * most_ns) for part in phase_cost.costs)]
    holds: bool | None = None
    if any(part.each(part.least_ns) > allowed_ns for part, allowed_ns in judged):
        holds = False
    elif every.bursts and all(part.each(part.lost_ns) <= allowed_ns for part, allowed_ns in judged):
        holds = True if every.each(every.noise_ns) <= most_ns else None
    mean = max(0.0, every.each(every.lost_ns) / rtt_ns)
    worst = max(0.0, *(part.each(part.lost_ns) / rtt_ns for part in phase_cost.costs))
    error = every.each(every.noise_ns + every.stalled_ns) / rtt_ns
    count = counted(len(every.faults), "fault")
    count += f" in {counted(every.bursts, 'burst')} that packets met" * (every.bursts != len(every.faults))
    beside = f", beside {every.away_ns / rtt_ns:.0f} for ports that were away" if every.away_ns else ""
    spread = f" each, the worst {worst:.1f}" if every.bursts > 1 else ""
    limits = f"{limit:g} and {cost.WORST * limit:g}" if every.bursts > 1 else f"{limit:g}"
    reason = f"{count} cost {mean:.1f} round trips{spread}{beside} (at most {limits})"
    reason += f"; together {cost_words(run, span, phase_cost)}"
    if holds is None and every.bursts:
        reason += f"; known to within {error:.1f}: {stalls.describe(run, span) or 'laps differ as much without faults'}"
    lap = phase_cost.pace.ns_per_work / rtt_ns if phase_cost.steps else float("inf")
    if holds is False and lap < cost.REPAIRS_PER_LAP * limit:
        holds, reason = None, f"{reason}; in steps of {lap:.1f} round trips hosts mostly wait for each other"
    figures = {
        "bursts": every.bursts,
        "mean_round_trips": round(mean, 2),
        "worst_round_trips": round(worst, 2),
        "error_round_trips": round(error, 2),
        "share_of_phase": round(every.lost_ns / span.length_ns, 5),
    }
    return Finding(name, holds, reason, figures)


def cost_words(run: Run, span: Span, phase_cost: cost.PhaseCost) -> str:
    """All costs of a phase as a share of it, in steps and in bytes; and a burst's at the hardware's round trip."""
    lost_ns = max(0.0, phase_cost.together.lost_ns)
    words = [f"{lost_ns / span.length_ns:.2%} of the phase"]
    if phase_cost.steps:
        words.append(f"{lost_ns / phase_cost.pace.ns_per_work:.2f} steps")
    words.append(f"{goodput.over(run, span) * lost_ns / 8e15:.1f} MB")
    lab, real = (int(run.options.get(key) or 0) for key in ("port_rate_bps", "hardware_rate_bps"))
    hardware = (
        f"; {phase_cost.together.each(lost_ns) * lab / real / 1e3:.1f} µs each on the hardware" if lab and real else ""
    )
    return ", ".join(words) + hardware


@check
def drift(run: Run, phase: str = "faults") -> Finding:
    """By how much quiet laps of a phase are slower than the reference's."""
    span = run.phases.get(phase)
    phase_cost = cost.of_phase(run, span) if span is not None and "reference" in run.phases else None
    if phase_cost is None or phase_cost.drift is None:
        return Finding("drift", None, f"no quiet part of the reference or of phase {phase!r} to compare")
    return drifted(run, phase_cost.drift, phase)


def drifted(run: Run, off: float, phase: str) -> Finding:
    """The finding that quiet parts of a phase are slower than the reference's by a share: the machine's mood, or a
    transport that a fault has made slow for good.

    In virtual time there is no machine. On real links the line is unknown above `cost.DRIFT_MAX`, and false only where
    no machine that kept up explains so much. Where a phase is faster, the reference was disturbed, which costs nothing.
    """
    reason = f"quiet parts of phase {phase!r} take {abs(off):.1%} {'more' if off > 0 else 'less'} than the reference's"
    explained = 0.0 if run.options.get("world") == "simulated" else cost.DRIFT_OF_A_MACHINE
    holds = True if off <= cost.DRIFT_MAX else False if off > explained else None
    finding = Finding("drift", holds, f"{reason} (at most {cost.DRIFT_MAX:.0%} more)", {"drift": round(off, 4)})
    return evidence.blamed(finding, evidence.behind(run, run.phases["reference"], run.phases[phase]))


@check
def retransmission_timeouts(run: Run, at_most: int = 0) -> Finding:
    """At most so many retransmission timeouts fired in the whole run."""
    if not run.agent_samples:
        return Finding("timeouts", None, "no host reported its queue pairs")
    fired = counters.qp_totals(run).get("rto", 0)
    reason = f"{fired} retransmission timeouts fired (at most {at_most})"
    finding = Finding("timeouts", fired <= at_most, reason, {"rto": fired})
    return evidence.blamed(finding, stalls.describe(run, run.span) or evidence.behind(run, run.span))


@check
def switches_trimmed(run: Run, at_least: int = 1) -> Finding:
    """Switches trimmed at least so many packets; a run without trimmed packets shows nothing of trimming."""
    trims = counters.qp_totals(run).get("trims")
    if trims is None:
        return Finding("trimming", None, "no host reported its queue pairs")
    holds = True if trims >= at_least else None
    told = f"{counted(trims, 'packet was', 'packets were')} trimmed (at least {at_least} are needed)"
    return Finding("trimming", holds, told, {"trims": trims})


@check
def reference_load(run: Run, at_least: float = 0.60) -> Finding:
    """Links carried at least this share of their rate while hosts communicated, in the phase in which it was most."""
    rate, all_steps = run.options.get("host_rate_bps"), steps.steps(run)
    loads = []
    for inside in (steps.within(all_steps, phase) for name, phase in run.phases.items() if name != "warmup"):
        comm, total = sum(step.comm_ns for step in inside), sum(step.total_ns for step in inside)
        if rate and comm and run.agent_samples:
            sent = sum(planes.bytes_sent(run, Span("steps", inside[0].start_ns, inside[-1].end_ns)).values())
            loads.append((sent * 8e9 / comm / (int(rate) * len(run.agent_samples)), comm / total))
    share, comm_share = max(loads, default=(0.0, 0.0))
    if not share:
        return Finding("load", None, "no host sent anything in the steps of any phase")
    figures = {"load": round(share, 3), "comm_share": round(comm_share, 3)}
    reason = f"links carried {share:.0%} of their rate while communicating, {comm_share:.0%} of each step"
    return Finding("load", True if share >= at_least and comm_share >= 0.5 else None, reason, figures)


@check
def flows_even(run: Run, workload: str, limit: float = 0.10, phase: str = "faults", skip_s: float = 2.0) -> Finding:
    """The flows of a workload have rates within `limit` of their mean, `skip_s` into the phase."""
    name = f"{workload} flows even"
    span = run.phases.get(phase)
    if span is None:
        return Finding(name, None, f"there was no phase {phase!r}")
    later = Span(phase, span.start_ns + run.ns(skip_s), span.stop_ns)
    rates = flows.rates(run, later, workload)
    mean = sum(rates.values()) / len(rates) if rates else 0.0
    if len(rates) < 2 or mean <= 0:
        return Finding(name, None, f"{len(rates)} flows were measured")
    off = max(abs(rate - mean) for rate in rates.values()) / mean
    error = flows.error(run, later, workload)
    holds = sample_size.holds(off, limit, error)
    doubt = sample_size.doubt(holds, error, stalls.describe(run, later))
    figures = {"mbps": {flow: round(rate / 1e6, 2) for flow, rate in rates.items()}, "spread": round(off, 4)}
    unit, unit_bps = run.rate_unit
    reason = f"{len(rates)} flows of {mean / unit_bps:.1f} {unit}, the farthest {off:.1%} off (limit {limit:.0%})"
    finding = Finding(name, holds, reason + doubt, figures)
    return evidence.blamed(finding, evidence.behind(run, later))


@check
def flow_kept(run: Run, workload: str, at_least: float = 0.95, phase: str = "faults", skip_s: float = 2.0) -> Finding:
    """A workload's flows together keep at least this share of their rate in the calm phases before and after.

    The machine's drift is what these two differ by; half of it is part of the error.
    """
    name = f"{workload} kept"
    calm, span = [run.phases[label] for label in cost.CALM if label in run.phases], run.phases.get(phase)
    alone = [rate for part in calm if (rate := sum(flows.rates(run, part, workload).values()))]
    if not calm or span is None or not alone:
        return Finding(name, None, f"{workload} carried nothing in a calm phase, or there was no phase {phase!r}")
    later = Span(phase, span.start_ns + run.ns(skip_s), span.stop_ns)
    before, during = sum(alone) / len(alone), sum(flows.rates(run, later, workload).values())
    share, apart = during / before, (max(alone) - min(alone)) / before
    error = hypot(*(flows.error(run, part, workload) for part in calm)) / len(calm) + flows.error(run, later, workload)
    holds = sample_size.holds(1 - share, 1 - at_least, error + apart / 2)
    figures = {"calm_mbps": round(before / 1e6, 2), "faults_mbps": round(during / 1e6, 2), "drift": round(apart, 4)}
    unit, unit_bps = run.rate_unit
    reason = f"{during / unit_bps:.1f} of {before / unit_bps:.1f} {unit}, {share:.1%} (at least {at_least:.0%})"
    finding = Finding(
        name, holds, reason + sample_size.doubt(holds, error + apart / 2, stalls.describe(run, later)), figures
    )
    return evidence.blamed(finding, evidence.behind(run, *calm, later))
