"""Recovery: three times for each fault, exact, because agents journal them.

| time | from the fault's beginning until |
|---|---|
| packet missed | (from its sending) the first packet that a host lost is taken for lost |
| path abandoned | the last path that the fault costs has been abandoned once |
| repaired | every packet that was lost for the fault has arrived |

The cost of the fault is in `cost.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from judging.measures import stalls, steps
from judging.run import FaultSpan, Run, Span
from judging.sample_size import base_rtt_ns

__all__ = ["recoveries"]

BIN_ROUND_TRIPS = 10
BIN_S = 0.25  # of lab time, in runs that do not say how long a round trip is


@dataclass(frozen=True, slots=True)
class Recovery:
    """From one fault, or from the first of a burst of them. None: nothing was abandoned or lost."""

    faults: tuple[FaultSpan, ...]
    abandoned_ns: int | None  # until the last abandoned path was first abandoned
    missed_ns: int | None  # slowest of all hosts: from the sending of its first lost packet until it was missed
    repaired_ns: int | None  # until every packet that was lost had arrived

    @property
    def start_ns(self) -> int:
        return self.faults[0].start_ns

    @property
    def title(self) -> str:
        more = len(self.faults) - 1
        return self.faults[0].title + (f" and {more} more" if more else "")


def bin_ns(run: Run) -> int:
    """A bin of a chart, and of what faults cost: round trips of an idle path, where the run says how long one is."""
    return BIN_ROUND_TRIPS * base_rtt_ns(run) or run.ns(BIN_S)


def window_ns(run: Run) -> int:
    """A median training step, over which charts average so that pauses between steps do not look like faults; else a
    bin."""
    times = steps.times(steps.steps(run))
    return max(bin_ns(run), times.median_ns) if times else bin_ns(run)


def recoveries(run: Run) -> list[Recovery]:
    """One for each fault or burst of faults. None for faults after the last phase."""
    stop_ns = run.judged.stop_ns
    together = bursts([fault for fault in run.faults if fault.start_ns < stop_ns], run.ns(BIN_S))
    ends = [*(faults[0].start_ns for faults in together[1:]), stop_ns]
    return [recovery(run, faults, end_ns) for faults, end_ns in zip(together, ends, strict=False)]


def recovery(run: Run, faults: tuple[FaultSpan, ...], end_ns: int) -> Recovery:
    """From these faults, by what agents journalled up to `end_ns`."""
    span = Span("after", faults[0].start_ns, end_ns)
    repairs = [line for line in run.kind("repair") if _caused(run, span, int(line["noticed_ns"]))]
    missed = (int(line["noticed_ns"]) - int(line["sent_ns"]) for line in repairs)
    repaired = (int(line["t_ns"]) - span.start_ns for line in repairs)
    abandoned = last_path_abandoned(run, span)
    return Recovery(faults, abandoned, max(missed, default=None), max(repaired, default=None))


def bursts(faults: Sequence[FaultSpan], apart_ns: int) -> list[tuple[FaultSpan, ...]]:
    """Faults in order; a fault that begins within `apart_ns` of the one before belongs to the same burst."""
    result: list[list[FaultSpan]] = []
    for fault in faults:
        if result and fault.start_ns - result[-1][-1].start_ns < apart_ns:
            result[-1].append(fault)
        else:
            result.append([fault])
    return [tuple(burst) for burst in result]


def last_path_abandoned(run: Run, span: Span) -> int | None:
    """The time from the beginning of a span until each path abandoned in it has been abandoned for the first time.

    Later times do not count: a path that drops only some packets is revived by a probe and abandoned again.
    """
    first: dict[tuple[object, ...], int] = {}
    for line in run.kind("ev"):
        if str(line.get("new", "")).upper() == "ASSUMED_BAD" and _caused(run, span, int(line["t_ns"])):
            first.setdefault((line["node"], line.get("qp"), line["ev"]), int(line["t_ns"]))
    return max(first.values()) - span.start_ns if first else None


def _caused(run: Run, span: Span, t_ns: int) -> bool:
    """Whether the faults of a span caused what was seen at an instant: packets also look lost after a stall."""
    return span.contains(t_ns) and not stalls.spoils(run, t_ns)
