"""Recovery: how long after a fault goodput is back, in milliseconds and in round trips."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from scenarios.judging import goodput, steps
from scenarios.judging.run import FaultSpan, Run, Span

BIN_NS = 250_000_000
SLIDES = 10  # positions of a sliding bin in its own length
BACK_AT = 0.90  # of the reference phase's goodput: below the noise of one bin, above a lost plane


@dataclass(frozen=True, slots=True)
class Recovery:
    """`after_ns` is None when goodput was not back before the next fault or the end."""

    fault: FaultSpan
    dip: float  # lowest goodput of a bin after the fault, as a share of the reference
    after_ns: int | None
    left_ns: int | None = None  # until the last path that lost packets was given up; None: none was

    def round_trips(self, base_rtt_ns: int) -> float | None:
        return None if self.after_ns is None else self.after_ns / base_rtt_ns


def bin_ns(run: Run) -> int:
    """As long as a median training step, so that the pauses between two steps do not look like faults; else 250 ms."""
    times = steps.times(steps.steps(run))
    return max(BIN_NS, times.median_ns) if times else BIN_NS


def recoveries(run: Run, bin_ns: int) -> list[Recovery]:
    """One for each fault, from goodput in sliding bins of `bin_ns`."""
    reference = run.phases.get("reference")
    if reference is None:
        return []
    normal = goodput.over(run, reference)
    if normal <= 0:
        return []
    result = []
    faults = run.faults
    stop_ns = max(span.stop_ns for span in run.phases.values())  # after that, workloads only drain
    for index, fault in enumerate(faults):
        later = [other.start_ns for other in faults[index + 1 :] if other.start_ns > fault.start_ns]
        end_ns = min([*later, stop_ns])
        span = Span("after", fault.start_ns, end_ns)
        result.append(replace(after(run, fault, span, normal, bin_ns), left_ns=last_path_left(run, span)))
    return result


def last_path_left(run: Run, span: Span) -> int | None:
    """From the beginning of a span to the last time that a path was given up in it."""
    times = [line["t_ns"] for line in run.within(span, "ev") if str(line.get("new", "")).upper() == "ASSUMED_BAD"]
    return max(times) - span.start_ns if times else None


def after(run: Run, fault: FaultSpan, span: Span, normal: float, bin_ns: int) -> Recovery:
    """Goodput is back at the end of the first sliding bin that is not low and is followed by none that is for a bin."""
    step_ns = max(bin_ns // SLIDES, 1)
    ends = np.arange(span.start_ns + step_ns, span.stop_ns + 1, step_ns, dtype=float)
    if not len(ends):
        return Recovery(fault, 1.0, None)
    sums = goodput.acknowledged(run, ends) - goodput.acknowledged(run, ends - bin_ns)
    shares = sums * 8e9 / bin_ns / normal
    low = np.flatnonzero(shares < BACK_AT)
    dip = float(shares.min())
    if not len(low):
        return Recovery(fault, dip, 0)
    for index in range(int(low[0]) + 1, len(shares)):
        if (shares[index : index + SLIDES] >= BACK_AT).all():
            return Recovery(fault, dip, int(ends[index] - span.start_ns))
    return Recovery(fault, dip, None)
