"""Recovery: how long after a fault goodput is back, in milliseconds and in round trips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scenarios.judging import goodput, stalls, steps
from scenarios.judging.arrays import np
from scenarios.judging.run import FaultSpan, Run, Span

BIN_S = 0.25  # of lab time
SLIDES = 10  # positions of a sliding bin in its own length
BACK_AT = 0.90  # of the reference phase's goodput: below the noise of one bin, above a lost plane


@dataclass(frozen=True, slots=True)
class Recovery:
    """From one fault, or from the first of a burst of them. `after_ns` is None when goodput was not back before the
    next one or the end."""

    faults: tuple[FaultSpan, ...]
    dip: float  # lowest goodput of a bin after the fault, as a share of the reference
    after_ns: int | None
    next_fault: bool = False  # whether another fault ended the time that was looked at, or the run
    watched_ns: int = 0  # until the next fault or the end
    spoilt: bool = False  # a stall came before goodput was back: what it cost is not the fault's
    left_ns: int | None = None  # until every path that was given up had been given up once; None: none was

    @property
    def start_ns(self) -> int:
        return self.faults[0].start_ns

    @property
    def title(self) -> str:
        more = len(self.faults) - 1
        return self.faults[0].title + (f" and {more} more" if more else "")

    def round_trips(self, base_rtt_ns: int) -> float | None:
        return None if self.after_ns is None else self.after_ns / base_rtt_ns


def bin_ns(run: Run) -> int:
    """As long as a median training step, so that the pauses between two steps do not look like faults; else 250 ms."""
    times = steps.times(steps.steps(run))
    least_ns = run.ns(BIN_S)
    return max(least_ns, times.median_ns) if times else least_ns


def recoveries(run: Run, bin_ns: int) -> list[Recovery]:
    """One for each fault or burst of faults, from goodput in sliding bins of `bin_ns`."""
    reference = run.phases.get("reference")
    if reference is None:
        return []
    normal = goodput.of_phase(run, reference)
    if normal <= 0:
        return []
    stop_ns = max(span.stop_ns for span in run.phases.values())  # after that, workloads only drain
    together = bursts(run.faults, run.ns(BIN_S))
    ends = [faults[0].start_ns for faults in together[1:]] + [stop_ns] * bool(together)
    result = []
    for index, (faults, next_ns) in enumerate(zip(together, ends, strict=True), 1):
        span = Span("after", faults[0].start_ns, min(next_ns, stop_ns))
        found = after(run, faults, span, normal, bin_ns)
        until_ns = span.stop_ns if found.after_ns is None else span.start_ns + found.after_ns + bin_ns
        result.append(
            replace(
                found,
                next_fault=index < len(together),
                watched_ns=span.length_ns,
                spoilt=stalls.touches(run, Span("recovery", span.start_ns, until_ns)),
                left_ns=last_path_left(run, span),
            )
        )
    return result


def bursts(faults: Sequence[FaultSpan], apart_ns: int) -> list[tuple[FaultSpan, ...]]:
    """Faults in order, those together that begin within `apart_ns` of the one before."""
    result: list[list[FaultSpan]] = []
    for fault in faults:
        if result and fault.start_ns - result[-1][-1].start_ns < apart_ns:
            result[-1].append(fault)
        else:
            result.append([fault])
    return [tuple(burst) for burst in result]


def last_path_left(run: Run, span: Span) -> int | None:
    """From the beginning of a span until every path that is given up in it has been so once.

    A path that drops only some packets is revived by a probe and given up again; that says nothing of the first time.
    Paths that are given up for a stall are not left for the fault.
    """
    first: dict[tuple[object, ...], int] = {}
    for line in run.within(span, "ev"):
        if str(line.get("new", "")).upper() == "ASSUMED_BAD" and not stalls.spoils(run, int(line["t_ns"])):
            first.setdefault((line["node"], line.get("qp"), line["ev"]), int(line["t_ns"]))
    return max(first.values()) - span.start_ns if first else None


def after(run: Run, faults: tuple[FaultSpan, ...], span: Span, normal: float, bin_ns: int) -> Recovery:
    """Goodput is back at the end of the first sliding bin that is not low and is followed by none that is for a bin.

    Bins that a stall touches are no evidence either way.
    """
    step_ns = max(bin_ns // SLIDES, 1)
    ends = np.arange(span.start_ns + step_ns, span.stop_ns + 1, step_ns, dtype=float)
    if not len(ends):
        return Recovery(faults, 1.0, None)
    sums = goodput.acknowledged(run, ends) - goodput.acknowledged(run, ends - bin_ns)
    shares = sums * 8e9 / bin_ns / normal
    seen = np.ones(len(ends), dtype=bool)
    for out in stalls.spoilt(run):
        seen &= (ends <= out.start_ns) | (ends - bin_ns >= out.stop_ns)
    low = np.flatnonzero((shares < BACK_AT) & seen)
    dip = float(np.min(shares[seen], initial=1.0))
    if not len(low):
        return Recovery(faults, dip, 0)
    shares = np.where(seen, shares, 1.0)
    for index in range(int(low[0]) + 1, len(shares)):
        if seen[index] and (shares[index : index + SLIDES] >= BACK_AT).all():
            return Recovery(faults, dip, int(ends[index] - span.start_ns))
    return Recovery(faults, dip, None)
