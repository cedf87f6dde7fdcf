"""Is the evidence sound? Losses outside the modelled fabric and a starved CPU make any other finding worthless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from common.journal import Line
from judging.journal import READER
from judging.measures import counters, stalls
from judging.run import SECOND_NS, Run, Span
from judging.verdict import Finding

BUSY_MAX = 0.97  # in an interval busier than this the processor was starved
BUSY_INTERVALS_MAX = 0.10  # of the run's intervals; one busy moment proves nothing
BUSY_MEAN_MAX = 0.85  # of a span, for a figure without a reference: 86 % have cost a third of the line rate
SPOILT_MAX = 0.5  # of a span: if stalls take more, the rest is no fair sample of the span
WAIT_MAX = 0.25  # of a phase, in which the mean host was ready to run and had no processor
WAIT_DRIFT_MAX = 0.08  # more than in the reference; 0.1 more has cost up to 5 % of goodput without any fault
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
    """The runner samples how busy the machine was, agents how long they waited for it; too much spoils the evidence."""
    if run.options.get("world") == "simulated":
        return Finding("processor", True, "virtual time: nothing can be late")
    busy = [float(line["host_busy"]) for line in run.kind("cpu") if line.get("host_busy") is not None]
    if not busy:
        return Finding("processor", None, "the runner journalled no CPU samples", spoils=True)
    starved = sum(1 for share in busy if share > BUSY_MAX) / len(busy)
    mean = sum(busy) / len(busy)
    judged = [span for name, span in run.phases.items() if name != "warmup"]
    waits = {span.name: wait for span in judged if (wait := waiting(run, span)) is not None}
    figures = {
        "busy_mean": round(mean, 3),
        "starved_share": round(starved, 3),
        "intervals": len(busy),
        "waiting": waits,
    }
    if starved > BUSY_INTERVALS_MAX:
        reason = f"the CPU was starved in {starved:.0%} of {len(busy)} intervals (busier than {BUSY_MAX:.0%})"
        return Finding("processor", None, reason, figures, spoils=True)
    usual = waits.get("reference", WAIT_MAX)
    for name, share in waits.items():
        if share > min(WAIT_MAX, usual + WAIT_DRIFT_MAX):
            reason = f"something else had the CPU: hosts were ready and waited for it {share:.0%} of phase {name!r}"
            told = f", {usual:.0%} of the reference" if "reference" in waits else ""
            return Finding("processor", None, reason + told, figures, spoils=True)
    waited = f"; hosts waited for it at most {max(waits.values()):.0%} of a phase" if waits else ""
    return Finding("processor", True, f"the machine was {mean:.0%} busy on average{waited}", figures)


def waiting(run: Run, span: Span) -> float | None:
    """The share of a span that the mean agent was ready to run and had no processor; None where agents cannot tell.

    How busy the machine is does not show it: a process of low priority counts as none, and may still run for
    milliseconds before it gives way.
    """
    first: dict[str, Line] = {}
    last: dict[str, Line] = {}
    for line in run.within(span, "cpu"):
        if "wait_ns" in line:
            first.setdefault(line["node"], line)
            last[line["node"]] = line
    shares = [
        (last[node]["wait_ns"] - begin["wait_ns"]) / (last[node]["wall_ns"] - begin["wall_ns"])
        for node, begin in first.items()
        if last[node]["wall_ns"] > begin["wall_ns"]
    ]
    return round(sum(shares) / len(shares), 3) if shares else None


def punctual(run: Run) -> Finding:
    """The stalls of the run, and how much of it they take away from judging. Never false: a stall is no fault of the
    transport, and each check says for itself when too little is left to judge."""
    if run.options.get("world") == "simulated":
        return Finding("on time", True, "virtual time: no process can be late")
    found = stalls.stalls(run)
    left_out_ns = stalls.total_ns(stalls.spoilt(run))
    figures = {"stalls": len(found), "left_out_s": round(left_out_ns / SECOND_NS, 2)}
    if not found:
        return Finding("on time", True, "no process was late by a quarter of a base round trip", figures)
    longest = max(found, key=lambda stall: stall.length_ns)
    reason = stalls.counted(len(found), stalls.described(run, longest))
    if left_out_ns:
        reason += f"; {left_out_ns / SECOND_NS:.1f} s are left out of what is judged"
    return Finding("on time", True, reason, figures)


def behind(run: Run, *spans: Span, absolute: bool = False) -> str:
    """Why what was missed in these spans may not be the transport's fault: the lab did not keep up; "" if it did.

    An `absolute` figure has no reference phase that was as slow: it takes less to explain a miss.
    """
    if run.options.get("world") == "simulated":
        return ""
    for span in spans:
        spoilt = 1 - stalls.total_ns(stalls.pieces(run, span)) / span.length_ns if span.length_ns else 0.0
        if spoilt > SPOILT_MAX:
            return f"stalls have spoilt {spoilt:.0%} of {span.name!r}: {stalls.told(run, span)}"
        wait = waiting(run, span) or 0.0
        if absolute and wait > WAIT_DRIFT_MAX:
            return f"hosts waited for a processor {wait:.0%} of {span.name!r}"
        busy = [float(line["host_busy"]) for line in run.within(span, "cpu") if line.get("host_busy") is not None]
        if absolute and busy and sum(busy) / len(busy) > BUSY_MEAN_MAX:
            return f"the machine was {sum(busy) / len(busy):.0%} busy in {span.name!r}"
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
