"""Commands of the user in hosts, seen by the runner's `command` lines: their times, exit statuses and output."""

from dataclasses import dataclass

from common.terminal.counted import counted
from judging.checks import check, qp_errors
from judging.run import Run
from judging.verdict import Finding

__all__ = ["ended_well", "under_faults"]


@dataclass(frozen=True, slots=True)
class HostCommand:
    """The command in one host. `status` is None while it runs, or when the run ended it; then `cause` says why.

    A signal counts as minus its number. `output` is the end of what it printed, `words` the command as it was started.
    """

    host: str
    rank: int
    words: str
    start_ns: int
    stop_ns: int | None = None
    status: int | None = None
    cause: str = ""
    output: str = ""


def processes(run: Run) -> list[HostCommand]:
    """The processes of the run's command, by rank; none in a run without one."""
    started = {int(line.get("rank", 0)): line for line in run.kind("command") if line.get("state") == "start"}
    stopped = {int(line.get("rank", 0)): line for line in run.kind("command") if line.get("state") == "stop"}
    commands = []
    for rank, line in sorted(started.items()):
        end = stopped.get(rank, {})
        status = end.get("status")
        commands.append(
            HostCommand(
                host=str(line.get("host")),
                rank=rank,
                words=str(line.get("words")),
                start_ns=int(line["t_ns"]),
                stop_ns=int(end["t_ns"]) if end else None,
                status=status if isinstance(status, int) else None,
                cause=str(end.get("cause", "")),
                output=str(end.get("output", "")),
            )
        )
    return commands


def ending(process: HostCommand) -> str:
    """How a process ended, in words."""
    if process.cause:
        return process.cause
    if process.status is None:
        return "never ended"
    return f"killed by signal {-process.status}" if process.status < 0 else f"status {process.status}"


@check
def ended_well(run: Run) -> Finding:
    """The command ended with status 0 in every host."""
    commands = processes(run)
    if not commands:
        return Finding("program", None, "the program was never started")
    # One that the run ended because another had failed is no reason by itself.
    bad = sorted((c for c in commands if c.status != 0), key=lambda command: (bool(command.cause), command.rank))
    figures = {"processes": len(commands), "failed": len(bad)}
    if bad:
        return Finding(
            "program", False, f"{bad[0].host}: {ending(bad[0])}; {len(bad)} of {len(commands)} failed", figures
        )
    return Finding("program", True, f"status 0 in all {len(commands)} hosts", figures)


def first_cause(run: Run) -> tuple[int, str, str] | None:
    """The first thing that went wrong in a run whose command failed: when, what, and the faults at that time.

    A queue pair that the program itself has moved to ERROR is no cause, nor is a process that the run has ended.
    """
    bad = [one for one in processes(run) if one.status != 0 and one.stop_ns is not None]
    causes = [(one.stop_ns or 0, f"{one.host}: {ending(one)}") for one in bad if not one.cause]
    causes += [
        (int(line["t_ns"]), f"queue pair {line.get('qp')} of {line['node']} to {line.get('peer')}: {line.get('cause')}")
        for line in qp_errors(run)
        if line.get("cause") != "modified to ERROR"
    ]
    if not bad or not causes:
        return None
    at_ns, what = min(causes)
    begun = [fault for fault in run.faults if fault.start_ns <= at_ns]
    standing = [fault for fault in begun if fault.stop_ns is None or fault.stop_ns >= at_ns]
    if standing:
        beside = "under " + ", ".join(f"{fault.title} (since {run.clock(fault.start_ns)})" for fault in standing)
    elif begun:
        last = max(begun, key=lambda fault: fault.stop_ns or 0)
        beside = f"{run.lasting(at_ns - (last.stop_ns or 0), 2)} after {last.title} was over"
    else:
        beside = "before any fault" if run.faults else "no fault was injected"
    return at_ns, what, beside


@check
def under_faults(run: Run) -> Finding:
    """A fault came while the command ran; otherwise the run shows nothing of faults."""
    commands, faults = processes(run), len(run.faults)
    spans = [(c.start_ns, run.end_ns + 1 if c.stop_ns is None else c.stop_ns) for c in commands]
    met = sum(any(start <= fault.start_ns < stop for start, stop in spans) for fault in run.faults)
    figures = {"faults": faults, "while_running": met}
    if not met:
        ends = [c.stop_ns for c in commands if c.stop_ns is not None]
        over = f"the program was over after {run.lasting(max(ends) - run.start_ns)}, " if ends else ""
        return Finding("under faults", None, f"{over}before any fault; give it more to do", figures)
    rest = f"; it was over before the other {faults - met}" if faults > met else ""
    return Finding("under faults", True, f"{counted(met, 'fault')} came while the program ran{rest}", figures)
