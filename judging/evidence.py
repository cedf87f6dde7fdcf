"""Is the evidence sound? Losses outside the modelled fabric make any other finding worthless."""

from collections.abc import Sequence
from dataclasses import replace

from common.journal import Line
from judging.journal import READER
from judging.measures import counters, stalls
from judging.run import SECOND_NS, Run, Span
from judging.verdict import Finding

__all__ = ["behind", "blamed", "error_text"]

HELD_UP_MAX = 0.10  # of a span, which stalls or waits for a processor may have taken
CTRL_C = "KeyboardInterrupt"
BY_USER = (CTRL_C, "AlgorithmError")  # exceptions that end a run and say nothing about the lab
SILENT_S = 2.0  # of lab time; a host samples ten times a second of it
SILENT_SHARE = 0.1  # of the run: scenarios may sample less often


def sockets(run: Run) -> Finding:
    """No packet may be lost between the kernel and us: it would look like a loss of the network."""
    hosts = {host: drops for host, drops in counters.host_socket_drops(run).items() if drops}
    switches = counters.switch_drops(run).get("drop_socket", 0)
    if not run.agent_samples:
        return Finding("sockets", None, "no host wrote samples, so socket drops are not known", spoils=True)
    if hosts or switches:
        reason = f"packets were lost outside the modelled fabric: hosts {hosts or 'none'}, switches {switches}"
        return Finding("sockets", None, reason, {"hosts": hosts, "switches": switches}, spoils=True)
    kinds = str(run.options.get("switch_kind", "embedded"))
    if "embedded" in kinds and not run.switch_samples:
        return Finding("sockets", None, "no switch wrote samples, so socket drops are not known", spoils=True)
    which = "" if kinds == "embedded" else f"; of {kinds} switches, only embedded ones count theirs"
    return Finding("sockets", True, f"no packet was lost in a socket of a host or a switch{which}")


def machine(run: Run) -> Finding:
    """How much the machine held the lab up. Never false: that is no fault of the transport, and each check says for
    itself what it does not know for stalls. A busy machine spoils nothing by itself: quiet laps show it in their spread
    (`judging.measures.cost`)."""
    judged = [span for name, span in run.phases.items() if name != "warmup"]
    waited = max((stalls.waited_ns(run, span) / max(1, span.length_ns) for span in judged), default=0.0)
    taken_s = stalls.allowance_ns(run, run.span) / SECOND_NS
    reason = f"hosts waited for a processor at most {waited:.0%} of a phase; "
    told = stalls.describe(run, run.span)
    reason += f"{told}; they may have taken {taken_s:.1f} s" if told else "no process was late by half a round trip"
    return Finding("machine", True, reason, {"waiting": round(waited, 3), "stalls_taken_s": round(taken_s, 2)})


def behind(run: Run, *spans: Span) -> str:
    """Why what was missed in these spans may not be the transport's fault: the lab did not keep up; "" if it did."""
    for span in spans if run.options.get("world") != "simulated" else ():
        if (held_up_ns := stalls.held_up_ns(run, span)) > HELD_UP_MAX * span.length_ns:
            share = held_up_ns / max(1, span.length_ns)
            why = stalls.describe(run, span) or "hosts waited for a processor"
            return f"the machine may have taken {min(share, 1):.0%} of {span.name!r}: {why}"
    return ""


def blamed(finding: Finding, why_not: str) -> Finding:
    """The finding itself, or an unknown one when it is false and the lab is to blame."""
    if finding.holds is not False or not why_not:
        return finding
    return replace(finding, holds=None, reason=f"{finding.reason}; the lab did not keep up: {why_not}")


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
        return blamed(finding, stalls.describe(run, Span("waiting", t_ns - waited_ns, t_ns)) if waited_ns else "")
    last_ns, hosts = run.judged.stop_ns, int(run.options.get("hosts") or 0)
    if 0 < (count := sum(line.get("role") == "agent" for line in run.kind("process"))) < hosts:
        return Finding("complete", None, f"{hosts - count} of {hosts} hosts have no journal", spoils=True)
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
    """All findings about the evidence; one that does not hold spoils the run. Virtual time has no sockets and loses
    none."""
    return [complete(run), *([] if run.options.get("world") == "simulated" else [sockets(run), machine(run)])]
