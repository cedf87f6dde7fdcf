"""Is the evidence sound? Losses outside the modelled fabric and a starved CPU make any other finding worthless."""

from __future__ import annotations

from scenarios.judging import counters
from scenarios.judging.run import Run
from scenarios.judging.verdict import Finding

BUSY_MAX = 0.97  # a machine busier than this in a whole interval had no time to be on time
BUSY_INTERVALS_MAX = 0.10  # of the run's intervals; one busy moment proves nothing


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
    if run.options.get("switch_kind", "embedded") != "embedded":
        reason = f"no packet was lost in a host's socket; {run.options['switch_kind']} switches do not count theirs"
        return Finding("sockets", True, reason)
    if not run.switch_samples:
        return Finding("sockets", None, "no switch wrote samples, so socket drops are not known", spoils=True)
    return Finding("sockets", True, "no packet was lost in a socket of a host or a switch")


def processor(run: Run) -> Finding:
    """The runner samples how busy the machine was; too busy for too long spoils the evidence."""
    if run.options.get("world") == "simulated":
        return Finding("processor", True, "virtual time: nothing can be late")
    busy = [float(line["host_busy"]) for line in run.kind("cpu") if line.get("host_busy") is not None]
    if not busy:
        return Finding("processor", None, "the runner journalled no CPU samples", spoils=True)
    starved = sum(1 for share in busy if share > BUSY_MAX) / len(busy)
    mean = sum(busy) / len(busy)
    figures = {"busy_mean": round(mean, 3), "starved_share": round(starved, 3), "intervals": len(busy)}
    if starved > BUSY_INTERVALS_MAX:
        reason = f"the CPU was starved in {starved:.0%} of {len(busy)} intervals (busier than {BUSY_MAX:.0%})"
        return Finding("processor", None, reason, figures, spoils=True)
    return Finding("processor", True, f"the machine was {mean:.0%} busy on average", figures)


def complete(run: Run) -> Finding:
    """Every phase that began has ended, and no process died."""
    if not run.phases:
        return Finding("complete", None, "the run has no phases: it ended before it began", spoils=True)
    stopped = {line["name"] for line in run.kind("phase") if line.get("state") == "stop"}
    missing = [name for name in run.phases if name not in stopped]
    if missing:
        return Finding("complete", None, f"the run was interrupted in phase {missing[0]!r}", spoils=True)
    fatal = [line for line in run.kind("error") if line.get("fatal")]
    if fatal:
        return Finding("complete", False, f"{fatal[0]['node']} failed: {fatal[0].get('message')}")
    return Finding("complete", True, f"all phases ended: {', '.join(run.phases)}")


def sound(run: Run) -> list[Finding]:
    """All three; a finding of these that does not hold spoils the run."""
    return [complete(run), sockets(run), processor(run)]
