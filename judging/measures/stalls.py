"""How much of a time the machine may have taken: stalls of the lab or a part of it, and waits for a processor.

Agents and switches journal by how much they were late. A stall of `STALL` base round trips spoils what is measured
meanwhile: a packet and its acknowledgement both meet the stall and are late by a round trip, which the transport takes
for a loss (`endpoint/mrc/loss/reorder.py`). So a stall may take its own length and `REPAIR_ROUND_TRIPS` after it, in
which real and supposed losses are repaired. A shorter one is ignored.

How busy the machine is shows little: a process of low priority counts as none, and may still run for milliseconds
before it gives way. So agents journal how long they were ready to run and had no processor.
"""

from collections import defaultdict
from typing import NamedTuple

from judging.arrays import Floats, np
from judging.run import Run, Span
from judging.sample_size import REPAIR_ROUND_TRIPS, base_rtt_ns
from judging.units import brief

__all__ = ["describe", "spoils"]

STALL = 0.5


class Stall(NamedTuple):
    """From the instant at which something was due to that at which it was done; `who` names all that were late. It may
    have taken the time until `clear_ns`, when what it spoilt has been repaired."""

    start_ns: int
    stop_ns: int
    who: tuple[str, ...]
    clear_ns: int

    @property
    def length_ns(self) -> int:
        return self.stop_ns - self.start_ns


def stalls(run: Run) -> list[Stall]:
    """All stalls in order; overlapping stalls are one. Kept with the run."""
    if run.stalls is not None:
        return run.stalls
    rtt_ns = base_rtt_ns(run)
    run.stalls = []
    for start_ns, stop_ns, node in sorted(
        (int(line["t_ns"]) - int(line["late_ns"]), int(line["t_ns"]), str(line["node"]))
        for line in run.kind("stall")
        if int(line["late_ns"]) >= max(1, STALL * rtt_ns)
    ):
        who: tuple[str, ...] = (node,)
        if run.stalls and start_ns <= run.stalls[-1].stop_ns:
            before = run.stalls.pop()
            start_ns, stop_ns = before.start_ns, max(before.stop_ns, stop_ns)
            who = tuple(dict.fromkeys([*before.who, node]))
        run.stalls.append(Stall(start_ns, stop_ns, who, stop_ns + REPAIR_ROUND_TRIPS * rtt_ns))
    return run.stalls


def within(run: Run, span: Span) -> list[Stall]:
    """The stalls that may have taken some of a span."""
    return [stall for stall in stalls(run) if stall.start_ns < span.stop_ns and stall.clear_ns > span.start_ns]


def allowance_ns(run: Run, span: Span) -> int:
    """How much of a span the stalls in it may have taken."""
    return sum(stall.clear_ns - stall.start_ns for stall in within(run, span))


def waited_ns(run: Run, span: Span) -> float:
    """The longest that an agent was ready to run in a span and had no processor; 0 where agents cannot tell."""
    if run.waits is None:
        by_host: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        for line in run.kind("cpu"):
            if "wait_ns" in line:
                times, waited = by_host[line["node"]]
                times.append(float(line["t_ns"]))
                waited.append(float(line["wait_ns"]))
        run.waits = [(np.array(times), np.array(waited)) for times, waited in by_host.values()]
    edges: Floats = np.array([span.start_ns, span.stop_ns], dtype=float)
    return max((float(np.diff(np.interp(edges, *host))[0]) for host in run.waits), default=0.0)


def held_up_ns(run: Run, span: Span) -> float:
    """How much of a span the machine may have taken."""
    return allowance_ns(run, span) + waited_ns(run, span)


def spoils(run: Run, t_ns: int) -> bool:
    """Whether a stall has spoilt what happens at an instant."""
    return bool(within(run, Span("instant", t_ns, t_ns + 1)))


def describe(run: Run, span: Span) -> str:
    """The stalls of a span in words: when the longest was, its length and late nodes; "" without any."""
    if not (inside := within(run, span)):
        return ""
    longest = max(inside, key=lambda stall: stall.length_ns)
    shown, who = 3, longest.who
    more = f" and {len(who) - shown} more" if len(who) > shown else ""
    where = f"{brief(longest.length_ns)} at {run.clock(longest.start_ns)} ({', '.join(who[:shown])}{more})"
    return f"one stall, {where}" if len(inside) == 1 else f"{len(inside)} stalls, the longest {where}"
