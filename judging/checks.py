"""The checks: each is a function from a run to one finding, made with the thresholds that a scenario chooses.

`always()` are the checks that every run must pass; a scenario adds some of the others, and its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from common.journal import Line
from judging import evidence, sample_size
from judging.check import Check as Check
from judging.check import check
from judging.measures import counters, flows, goodput, paths, planes, recovery, stalls, steps
from judging.run import Run, Span
from judging.units import brief
from judging.verdict import Finding

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
        reason = f"{len(errors)} queue pairs failed, first {first['node']} → {first.get('peer')}: {first.get('cause')}"
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
    if planes.spread(sent) > limit:  # a stall leaves planes as even as they were, or it is no evidence
        sent = planes.bytes_sent_in(run, stalls.pieces(run, span) or [span])
    if len(sent) < 2:
        return Finding("planes even", True, "one plane: nothing to balance", {"planes": sent})
    if not sum(sent.values()):
        return Finding("planes even", None, "no plane carried anything")
    off = planes.spread(sent)
    error = sample_size.share_error(planes.packets_sent(run, sent), counters.queue_pairs(run))
    figures = {"spread": round(off, 4), "bytes": {str(plane): round(value) for plane, value in sent.items()}}
    reason = f"the farthest plane is {off:.1%} from the mean in phase {phase!r} (limit {limit:.0%})"
    found = sample_size.holds(off, limit, error)
    doubted = stalls.told(run, span) or "few packets"
    finding = Finding("planes even", found, reason + sample_size.doubt(found, error, doubted), figures)
    return evidence.blamed(finding, evidence.behind(run, span))


@check
def paths_healed(run: Run, except_for: Callable[[paths.PathKey], bool] = lambda path: False) -> Finding:
    """At the end no path is ASSUMED_BAD or DENIED, except paths that the scenario leaves broken."""
    if not run.agent_samples:
        return Finding("paths healed", None, "no host reported its paths")
    if run.options.get("single_plane"):
        return Finding("paths healed", True, "the baseline knows one path and nothing of its health")
    bad = [path for path in paths.not_good_at(run, run.end_ns) if not except_for(path)]
    if bad and all(paths.left_for_a_stall(run, path) for path in bad):
        reason = f"{len(bad)} paths are not good at the end, all since a stall: {stalls.told(run, run.span)}"
        return Finding("paths healed", None, reason)
    if bad:
        path = bad[0]
        where = f"{path.host} → {path.peer}, plane {path.plane} via {path.via}"
        return Finding("paths healed", False, f"{len(bad)} paths are not good at the end, first {where}")
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
    return Finding("faults", holds, f"{count} faults were injected (at least {at_least} are needed)", {"faults": count})


@check
def faults_felt(run: Run, phase: str = "faults") -> Finding:
    """Some packets met the faults. With one path a flow most links carry nothing, and their faults show nothing."""
    span = run.phases.get(phase)
    if span is None:
        return Finding("faults felt", None, f"there was no phase {phase!r}")
    again = counters.qp_totals(run, Span(phase, span.start_ns, run.end_ns))["retransmits"]
    errors = len(qp_errors(run))
    figures = {"retransmits": again, "errors": errors}
    if not again and not errors:
        return Finding("faults felt", None, "no packet had to be sent again: no flow crossed what failed", figures)
    return Finding("faults felt", True, f"{again} packets were sent again", figures)


@check
def goodput_kept(run: Run, limit: float = 0.03, phase: str = "faults", hosts: Sequence[str] | None = None) -> Finding:
    """Goodput in a phase is within `limit` of the reference phase's, from below."""
    reference, span = run.phases.get("reference"), run.phases.get(phase)
    if reference is None or span is None:
        return Finding("goodput kept", None, f"phases 'reference' and {phase!r} are both needed")
    before, during = goodput.of_phase(run, reference, hosts), goodput.of_phase(run, span, hosts)
    if before <= 0:
        return Finding("goodput kept", None, "the reference phase carried nothing")
    share = during / before
    kept = steps.pieces(run, span)
    if not kept or not steps.pieces(run, reference):
        emptied = span if not kept else reference
        return Finding("goodput kept", None, stalls.left_out_words(run, emptied, []))
    inside = [fault for fault in run.faults if any(piece.contains(fault.start_ns) for piece in kept)]
    bursts = len(recovery.bursts(inside, sample_size.REPAIR_ROUND_TRIPS * sample_size.base_rtt_ns(run)))
    each = sample_size.repair_round_trips(run)
    repair = sample_size.repair_share(run, stalls.total_ns(kept), bursts, each)
    allowed = max(limit, repair)
    error = steps.rate_error(run, reference) + steps.rate_error(run, span)
    found = sample_size.holds(1 - share, limit, error, repair)
    if share > 1 + limit + error:
        found = None  # no phase can carry that much more: the reference was disturbed
    figures = {"reference_bps": round(before), "faults_bps": round(during), "share": round(share, 4)}
    least = f"at least {1 - allowed:.0%}"
    if repair > limit:
        least = f"at least {1 - allowed:.1%}: {bursts} faults may cost {each} round trips each"
    reason = f"goodput in phase {phase!r} is {share:.1%} of the reference phase's ({least})"
    doubt = sample_size.doubt(found, error, stalls.told(run, reference) or stalls.told(run, span))
    finding = Finding("goodput kept", found, reason + doubt, figures)
    return evidence.blamed(finding, evidence.behind(run, reference, span))


@check
def step_p99_within(run: Run, factor: float, phase: str = "faults") -> Finding:
    """The 99th percentile of step times in a phase is at most `factor` times the reference phase's.

    A step that never ended lasted at least until the phase did.
    """

    all_steps = steps.steps(run)
    reference, span = run.phases.get("reference"), run.phases.get(phase)
    if reference is None or span is None:
        return Finding("step times", None, f"phases 'reference' and {phase!r} are both needed")
    before = steps.times(steps.unspoilt(run, steps.of_phase(all_steps, reference)))
    during = steps.times(steps.unspoilt(run, steps.of_phase(all_steps, span)))
    if before is None or during is None or before.count < sample_size.STEPS_MIN:
        return Finding("step times", None, f"too few training steps to compare ({sample_size.STEPS_MIN} are needed)")
    halted = steps.halt(all_steps, span)
    p99_ns = max(during.p99_ns, stalls.total_ns(stalls.pieces(run, halted)))
    share = p99_ns / before.p99_ns
    times = f"p99 step {brief(p99_ns)} against {brief(before.p99_ns)}"
    reason = f"{times}: {share:.2f} times (at most {factor:g})"
    error = (before.slowest_ns - before.fastest_ns + sample_size.base_rtt_ns(run)) / before.median_ns
    found = sample_size.holds(share - 1, factor - 1, error)
    why = "steps of the reference differ as much"
    finding = Finding("step times", found, reason + sample_size.doubt(found, error, why), {"ratio": round(share, 3)})
    return evidence.blamed(finding, evidence.behind(run, reference, span))


@check
def retransmission_timeouts(run: Run, at_most: int = 0) -> Finding:
    """At most so many retransmission timeouts fired in the whole run."""
    if not run.agent_samples:
        return Finding("timeouts", None, "no host reported its queue pairs")
    fired = counters.qp_totals_in(run, stalls.pieces(run, run.span))["rto"]
    return Finding(
        "timeouts", fired <= at_most, f"{fired} retransmission timeouts fired (at most {at_most})", {"rto": fired}
    )


@check
def switches_trimmed(run: Run, at_least: int = 1) -> Finding:
    """Switches trimmed at least so many packets; a run without trimmed packets shows nothing of trimming."""
    trims = counters.qp_totals(run)["trims"]
    holds = True if trims >= at_least else None
    return Finding(
        "trimming", holds, f"{trims} packets were trimmed (at least {at_least} are needed)", {"trims": trims}
    )


@check
def reference_load(run: Run, at_least: float = 0.60) -> Finding:
    """Links carried at least this share of their rate in the reference phase, while hosts communicated."""
    reference = run.phases.get("reference")
    rate = run.options.get("host_rate_bps")
    inside = steps.within(steps.steps(run), reference) if reference else []
    if reference is None or not rate or not inside:
        return Finding("load", None, "no training steps in a reference phase")
    comm = sum(step.comm_ns for step in inside)
    total = sum(step.total_ns for step in inside)
    span = Span("reference", inside[0].start_ns, inside[-1].end_ns)
    sent = sum(planes.bytes_sent(run, span).values())
    if not sent or not comm:
        return Finding("load", None, "no host sent anything in the steps of the reference phase")
    share = sent * 8e9 / comm / (int(rate) * len(run.agent_samples))
    figures = {"load": round(share, 3), "comm_share": round(comm / total, 3)}
    reason = f"links carried {share:.0%} of their rate while communicating, {comm / total:.0%} of each step"
    holds = True if share >= at_least and comm / total >= 0.5 else None
    return Finding("load", holds, reason, figures)


@check
def recovered(run: Run, within_s: float) -> Finding:
    """After every fault goodput is back at the reference level within so many seconds of the fault's beginning."""
    items = recovery.recoveries(run)
    if not items:
        return Finding("recovery", None, "no fault, or no reference phase")
    clean = [item for item in items if not item.spoilt]
    if not clean:
        return Finding("recovery", None, f"stalls came with every fault: {stalls.told(run, run.span)}")
    late = [item for item in clean if item.after_ns is None or item.after_ns > run.ns(within_s)]
    known = [item for item in late if item.after_ns is not None or item.watched_ns >= run.ns(within_s)]
    if late and not known:
        reason = f"goodput was not back {run.lasting(late[0].watched_ns)} after {late[0].title}: too short a look"
        return Finding("recovery", None, reason)
    if known:
        limit = f"{within_s:g} s" if run.pace == 1 else run.lasting(run.ns(within_s), 1)
        finding = Finding("recovery", False, f"goodput was not back {limit} after {known[0].title}")
        return evidence.blamed(finding, evidence.behind(run, run.span))
    slowest_ns = max(item.after_ns or 0 for item in clean)
    figures = {"slowest_ms": round(slowest_ns / 1e6, 3 if slowest_ns < 1_000_000 else None)}
    return Finding("recovery", True, f"slowest recovery {brief(slowest_ns)}", figures)


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
    found = sample_size.holds(off, limit, error)
    doubt = sample_size.doubt(found, error, stalls.told(run, later))
    figures = {"mbps": {flow: round(rate / 1e6, 2) for flow, rate in rates.items()}, "spread": round(off, 4)}
    unit, unit_bps = run.rate_unit
    reason = f"{len(rates)} flows of {mean / unit_bps:.1f} {unit}, the farthest {off:.1%} off (limit {limit:.0%})"
    finding = Finding(name, found, reason + doubt, figures)
    return evidence.blamed(finding, evidence.behind(run, later, absolute=phase == "reference"))


@check
def flow_kept(run: Run, workload: str, at_least: float = 0.95, phase: str = "faults", skip_s: float = 2.0) -> Finding:
    """A workload's flows together keep at least this share of their rate in the reference phase."""
    name = f"{workload} kept"
    reference, span = run.phases.get("reference"), run.phases.get(phase)
    if reference is None or span is None:
        return Finding(name, None, f"phases 'reference' and {phase!r} are both needed")
    later = Span(phase, span.start_ns + run.ns(skip_s), span.stop_ns)
    before = sum(flows.rates(run, reference, workload).values())
    during = sum(flows.rates(run, later, workload).values())
    if before <= 0:
        return Finding(name, None, f"{workload} carried nothing in the reference phase")
    share = during / before
    error = flows.error(run, reference, workload) + flows.error(run, later, workload)
    found = sample_size.holds(1 - share, 1 - at_least, error)
    figures = {"reference_mbps": round(before / 1e6, 2), "faults_mbps": round(during / 1e6, 2)}
    unit, unit_bps = run.rate_unit
    reason = f"{during / unit_bps:.1f} of {before / unit_bps:.1f} {unit}, {share:.1%} (at least {at_least:.0%})"
    doubt = sample_size.doubt(found, error, stalls.told(run, reference) or stalls.told(run, later))
    finding = Finding(name, found, reason + doubt, figures)
    return evidence.blamed(finding, evidence.behind(run, reference, later))
