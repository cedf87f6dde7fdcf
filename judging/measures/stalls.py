"""Stalls: times at which the machine, or a part of the lab, did not run; and how much of a span they may have taken.

Agents, switches and the hiccup meter journal by how much they were late. In base round trips, a lateness

- below `NOTHING` is ignored: every queue of the fabric delays by more;
- from `SPOILS` on spoils what is measured meanwhile: a packet and its acknowledgement both meet the stall and are late
  by a round trip, which the transport takes for a loss (`endpoint/mrc/loss/reorder.py`). Such a stall may take its own
  length and `REPAIR_ROUND_TRIPS` after it, in which real and supposed losses are repaired;
- between the two may take its own length.
"""

from __future__ import annotations

from dataclasses import dataclass

from judging.run import Run, Span
from judging.sample_size import REPAIR_ROUND_TRIPS, base_rtt_ns
from judging.units import brief

__all__ = ["spoils", "told"]

NOTHING = 0.25
SPOILS = 0.5


@dataclass(frozen=True, slots=True)
class Stall:
    """From the instant at which something was due to that at which it was done; `who` names all that were late.

    A stall that `spoils` may have taken the time until `clear_ns`, when what it spoilt has been repaired.
    """

    start_ns: int
    stop_ns: int
    who: tuple[str, ...]
    spoils: bool
    clear_ns: int

    @property
    def length_ns(self) -> int:
        return self.stop_ns - self.start_ns


def stalls(run: Run) -> list[Stall]:
    """All stalls above `NOTHING`, in order; overlapping stalls are one. Kept with the run."""
    if run.stalls is not None:
        return run.stalls
    rtt_ns = base_rtt_ns(run)
    late: list[tuple[int, int, tuple[str, ...]]] = []
    for start_ns, stop_ns, node in sorted(
        (int(line["t_ns"]) - int(line["late_ns"]), int(line["t_ns"]), str(line["node"]))
        for line in run.kind("stall")
        if int(line["late_ns"]) >= max(1, NOTHING * rtt_ns)
    ):
        if late and start_ns <= late[-1][1]:
            first_ns, last_ns, nodes = late.pop()
            late.append((first_ns, max(last_ns, stop_ns), tuple(dict.fromkeys([*nodes, node]))))
        else:
            late.append((start_ns, stop_ns, (node,)))
    run.stalls = []
    for start_ns, stop_ns, nodes in late:
        spoils = stop_ns - start_ns >= SPOILS * rtt_ns
        run.stalls.append(Stall(start_ns, stop_ns, nodes, spoils, stop_ns + spoils * REPAIR_ROUND_TRIPS * rtt_ns))
    return run.stalls


def within(run: Run, start_ns: float, stop_ns: float) -> list[Stall]:
    """The stalls that may have taken some of a time."""
    return [stall for stall in stalls(run) if stall.start_ns < stop_ns and stall.clear_ns > start_ns]


def allowance_ns(run: Run, span: Span) -> int:
    """How much of a span the stalls in it may have taken."""
    return sum(stall.clear_ns - stall.start_ns for stall in within(run, span.start_ns, span.stop_ns))


def spans(run: Run) -> list[Span]:
    """The times that stalls may have taken."""
    return [Span("stall", stall.start_ns, stall.clear_ns) for stall in stalls(run)]


def spoils(run: Run, t_ns: int) -> bool:
    """Whether a stall has spoilt what happens at an instant."""
    return touches(run, Span("instant", t_ns, t_ns + 1))


def touches(run: Run, span: Span) -> bool:
    """Whether a stall has spoilt any of a span."""
    return any(stall.spoils for stall in within(run, span.start_ns, span.stop_ns))


def told(run: Run, span: Span) -> str:
    """The stalls of a span in words: times, lengths and late nodes; "" without any."""
    inside = [stall for stall in within(run, span.start_ns, span.stop_ns) if stall.spoils]
    if not inside:
        return ""
    longest = max(inside, key=lambda stall: stall.length_ns)
    return counted(len(inside), described(run, longest))


def counted(number: int, longest: str) -> str:
    """So many stalls, and the longest of them in words."""
    return f"one stall, {longest}" if number == 1 else f"{number} stalls, the longest {longest}"


def described(run: Run, stall: Stall) -> str:
    """One stall: when, how long, who."""
    shown = 3
    more = f" and {len(stall.who) - shown} more" if len(stall.who) > shown else ""
    return f"{brief(stall.length_ns)} at {run.clock(stall.start_ns)} ({', '.join(stall.who[:shown])}{more})"
