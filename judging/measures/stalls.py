"""Stalls: times at which the machine, or a part of the lab, did not run; and how much of a span they may have taken.

Agents, switches and the hiccup meter journal by how much they were late. In base round trips, a lateness

- below `NOTHING` is ignored: every queue of the fabric delays by more;
- from `SPOILS` on spoils what is measured meanwhile: a packet and its acknowledgement both meet the stall and are late
  by a round trip, which the transport takes for a loss (`endpoint/mrc/loss/reorder.py`). Such a stall may take its own
  length and `REPAIR_ROUND_TRIPS` after it, in which real and supposed losses are repaired;
- between the two may take its own length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from judging.run import Run, Span
from judging.sample_size import REPAIR_ROUND_TRIPS, base_rtt_ns
from judging.units import brief

NOTHING = 0.25
SPOILS = 0.5


@dataclass(frozen=True, slots=True)
class Stall:
    """From the instant at which something was due to that at which it was done; `who` names all that were late."""

    start_ns: int
    stop_ns: int
    who: tuple[str, ...]

    @property
    def length_ns(self) -> int:
        return self.stop_ns - self.start_ns


def stalls(run: Run) -> list[Stall]:
    """All stalls above `NOTHING`, in order; overlapping stalls are one."""
    nothing_ns = NOTHING * base_rtt_ns(run)
    spans = sorted(
        (int(line["t_ns"]) - int(line["late_ns"]), int(line["t_ns"]), str(line["node"]))
        for line in run.kind("stall")
        if int(line["late_ns"]) >= max(1, nothing_ns)
    )
    found: list[Stall] = []
    for start_ns, stop_ns, node in spans:
        if found and start_ns <= found[-1].stop_ns:
            last = found[-1]
            who = last.who if node in last.who else (*last.who, node)
            found[-1] = Stall(last.start_ns, max(last.stop_ns, stop_ns), who)
        else:
            found.append(Stall(start_ns, stop_ns, (node,)))
    return found


def spans(run: Run) -> list[Span]:
    """All stalls that are more than nothing, as spans."""
    return [Span("stall", stall.start_ns, stall.stop_ns) for stall in stalls(run)]


def spoilt(run: Run) -> list[Span]:
    """The spans to leave out, in order and apart: stalls from `SPOILS` on, each with its aftermath."""
    if run.spoilt is None:
        trail_ns = REPAIR_ROUND_TRIPS * base_rtt_ns(run)
        least_ns = SPOILS * base_rtt_ns(run)
        run.spoilt = joined(
            Span("stall", stall.start_ns, stall.stop_ns + trail_ns)
            for stall in stalls(run)
            if stall.length_ns >= least_ns
        )
    return run.spoilt


def allowance_ns(run: Run, span: Span) -> int:
    """How much of a span the stalls in it may have taken: their lengths, and the repair after those that spoil."""
    inside = [stall for stall in stalls(run) if stall.start_ns < span.stop_ns and stall.stop_ns > span.start_ns]
    least_ns, repair_ns = SPOILS * base_rtt_ns(run), REPAIR_ROUND_TRIPS * base_rtt_ns(run)
    return sum(stall.length_ns + (repair_ns if stall.length_ns >= least_ns else 0) for stall in inside)


def joined(spans: Iterable[Span]) -> list[Span]:
    """Spans in order; spans that touch are joined."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start_ns):
        if found and span.start_ns <= found[-1].stop_ns:
            found[-1] = Span(found[-1].name, found[-1].start_ns, max(found[-1].stop_ns, span.stop_ns))
        else:
            found.append(span)
    return found


def spoils(run: Run, t_ns: int) -> bool:
    """Whether an instant is to be left out."""
    return any(span.contains(t_ns) for span in spoilt(run))


def touches(run: Run, span: Span) -> bool:
    """Whether any of a span is to be left out."""
    return any(out.start_ns < span.stop_ns and out.stop_ns > span.start_ns for out in spoilt(run))


def told(run: Run, span: Span) -> str:
    """The stalls of a span in words: times, lengths and late nodes; "" without any."""
    inside = [stall for stall in stalls(run) if stall.start_ns < span.stop_ns and stall.stop_ns > span.start_ns]
    inside = [stall for stall in inside if stall.length_ns >= SPOILS * base_rtt_ns(run)]
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
