"""Is the evidence sound? Losses outside the modelled fabric make any other finding worthless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from common.journal import Line
from judging.journal import READER
from judging.measures import counters, stalls, waits
from judging.run import SECOND_NS, Run, Span
from judging.verdict import Finding

__all__ = ["behind", "blamed", "error_text"]

BUSY_MAX = 0.85  # of a span: 86 % have cost a third of the line rate
WAIT_MAX = 0.08  # of a span, in which the mean host was ready to run and had no processor
STALLED_MAX = 0.10  # of a span that stalls may have taken
CTRL_C = "KeyboardInterrupt"
BY_USER = (CTRL_C, "AlgorithmError")  # exceptions that end a run and say nothing about the lab
SILENT_S = 2.0  # of lab time; a host samples ten times a second of it
SILENT_SHARE = 0.1  # of the run: scenarios may sample less often


def sockets(run: Run) -> Finding:
    """No packet may be lost between the kernel and us: it would look like a loss of the network."""
    hosts = {host: drops for host, drops in counters.host_socket_drops(run).items() if drops}
    switches = counters.switch_drops(run).get("drop_socket", 0)
    if run.options.get("world") == "simulated":
        return Finding("sockets", True, "virtual time: there are no sockets to lose packets in")
    if not run.agent_samples:
        return Finding("sockets", None, "no host wrote samples, so socket drops are not known", spoils=True)
    if hosts or switches:
        reason = f"packets were lost outside the modelled fabric: hosts {hosts or 'none'}, switches {switches}"
        return Finding("sockets", None, reason, {"hosts": hosts, "switches": switches}, spoils=True)
    kinds = str(run.options.get("switch_kind", "embedded"))
    if "embedded" not in kinds:
        reason = f"no packet was lost in a host's socket; {kinds} switches do not count theirs"
        return Finding("sockets", True, reason)
    if not run.switch_samples:
        return Finding("sockets", None, "no switch wrote samples, so socket drops are not known", spoils=True)
    if kinds != "embedded":
        reason = f"no packet was lost in a socket of a host or an embedded switch; of {kinds}, only those count theirs"
        return Finding("sockets", True, reason)
    return Finding("sockets", True, "no packet was lost in a socket of a host or a switch")


def processor(run: Run) -> Finding:
    """How busy the machine was, and how long hosts waited for it. A busy machine spoils nothing by itself: quiet laps
    show it in their spread (`judging.measures.cost`)."""
    if run.options.get("world") == "simulated":
        return Finding("processor", True, "virtual time: nothing can be late")
    busy = mean_busy(run, run.span)
    if busy is None:
        return Finding("processor", None, "the runner journalled no CPU samples", spoils=True)
    judged = [span for name, span in run.phases.items() if name != "warmup"]
    shares = {span.name: share for span in judged if (share := waiting(run, span)) is not None}
    figures = {"busy_mean": round(busy, 3), "waiting": shares}
    waited = f"; hosts waited for it at most {max(shares.values()):.0%} of a phase" if shares else ""
    return Finding("processor", True, f"the machine was {busy:.0%} busy on average{waited}", figures)


def mean_busy(run: Run, span: Span) -> float | None:
    """How busy the machine was in a span, as a share; None without samples."""
    busy = [float(line["host_busy"]) for line in run.within(span, "cpu") if line.get("host_busy") is not None]
    return sum(busy) / len(busy) if busy else None


def waiting(run: Run, span: Span) -> float | None:
    """The share of a span that the mean agent was ready to run and had no processor; None where agents cannot tell."""
    waited = waits.waited_ns(run, span)
    return round(sum(waited) / len(waited) / span.length_ns, 3) if waited and span.length_ns > 0 else None


def punctual(run: Run) -> Finding:
    """The stalls of the run, and how much of it they may have taken. Never false: a stall is no fault of the transport,
    and each check says for itself what it does not know for stalls."""
    if run.options.get("world") == "simulated":
        return Finding("on time", True, "virtual time: no process can be late")
    found = stalls.stalls(run)
    taken_s = stalls.allowance_ns(run, run.span) / SECOND_NS
    figures = {"stalls": len(found), "taken_s": round(taken_s, 2)}
    if not found:
        return Finding("on time", True, "no process was late by a quarter of a base round trip", figures)
    longest = max(found, key=lambda stall: stall.length_ns)
    reason = stalls.counted(len(found), stalls.described(run, longest))
    return Finding("on time", True, f"{reason}; they may have taken {taken_s:.1f} s", figures)


def behind(run: Run, *spans: Span) -> str:
    """Why what was missed in these spans may not be the transport's fault: the lab did not keep up; "" if it did."""
    if run.options.get("world") == "simulated":
        return ""
    for span in spans:
        if stalls.allowance_ns(run, span) > STALLED_MAX * span.length_ns:
            return f"stalls in {span.name!r}: {stalls.told(run, span)}"
        if (wait := waiting(run, span) or 0.0) > WAIT_MAX:
            return f"hosts waited for a processor {wait:.0%} of {span.name!r}"
        if (busy := mean_busy(run, span) or 0.0) > BUSY_MAX:
            return f"the machine was {busy:.0%} busy in {span.name!r}"
    return ""


def blamed(found: Finding, why_not: str) -> Finding:
    """The finding itself, or an unknown one when it is false and the lab is to blame."""
    if found.holds is not False or not why_not:
        return found
    return replace(found, holds=None, reason=f"{found.reason}; the lab did not keep up: {why_not}")


def complete(run: Run) -> Finding:
    """Every phase that began has ended, and no process died. An answer that was missed while the lab stood
    still says nothing."""
    fatal = [line for line in run.kind("error") if line.get("fatal")]
    if not run.phases:
        reason = f"the run has no phases: it ended before it began{_ended_by(fatal)}"
        return Finding("complete", None, reason, spoils=True)
    stopped = {line["name"] for line in run.kind("phase") if line.get("state") == "stop"}
    missing = [name for name in run.phases if name not in stopped]
    if missing or any(error_text(line).startswith(BY_USER) for line in fatal):
        when = f"in phase {missing[0]!r}" if missing else "after its last phase"
        reason = f"the run was interrupted {when}{_ended_by(fatal)}"
        return Finding("complete", None, reason, spoils=True)
    if fatal:
        finding = Finding("complete", False, f"{fatal[0]['node']} failed: {fatal[0].get('message')}", spoils=True)
        t_ns, waited_ns = int(fatal[0]["t_ns"]), round(fatal[0].get("waited_s", 0) * SECOND_NS)
        return blamed(finding, stalls.told(run, Span("waiting", t_ns - waited_ns, t_ns)) if waited_ns else "")
    last_ns = max(span.stop_ns for span in run.phases.values())
    for host, samples in run.agent_samples.items():
        if last_ns - int(samples[-1]["t_ns"]) > max(run.ns(SILENT_S), SILENT_SHARE * run.span.length_ns):
            reason = (
                f"the journal of {host} ends {run.clock(int(samples[-1]['t_ns']))} into the run: the rest is missing"
            )
            return Finding("complete", None, reason, spoils=True)
    lost = {str(line["node"]): int(line.get("lines", 0)) for line in run.kind("lost")}  # totals: the last one counts
    if lost:
        node, lines = max(lost.items(), key=lambda item: item[1])
        reason = f"{lines} lines of the journal of {node} could not be written: the disk was full"
        return Finding("complete", None, reason, spoils=True)
    unreadable = [str(line.get("message")) for line in run.kind("error") if line["node"] == READER]
    if unreadable:
        reason = f"{len(unreadable)} lines of the journal cannot be read, the first: {unreadable[0]}"
        return Finding("complete", None, reason, spoils=True)
    return Finding("complete", True, f"all phases ended: {', '.join(run.phases)}")


def _ended_by(fatal: Sequence[Line]) -> str:
    """The error that ended the run, on one line after a colon; "" after Ctrl-C, and for a process that was killed."""
    return next((f": {error_text(line)}" for line in fatal if not error_text(line).startswith(CTRL_C)), "")


def error_text(line: Line) -> str:
    """The text of an error, on one line."""
    return " ".join(str(line.get("message")).split())


def sound(run: Run) -> list[Finding]:
    """All findings about the evidence; one that does not hold spoils the run."""
    return [complete(run), sockets(run), processor(run), punctual(run)]
