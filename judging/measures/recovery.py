"""Recovery, in milliseconds and in round trips: four figures for each fault, at the finest grain that there is.

| figure | from the fault's beginning until | grain |
|---|---|---|
| packet missed | (from its sending) the first packet that a host lost is taken for lost | exact: agents journal it |
| path abandoned | the last path that the fault costs has been abandoned once | exact: agents journal it |
| repaired | every packet that was lost for the fault has arrived | exact: agents journal it |
| rate back | acknowledged bytes come at 90 % of the usual rate again, and stay there | two round trips or a sample |

The rate is looked at while hosts communicate: the pauses of a training step are no fault's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.journal import Line
from judging import sample_size
from judging.arrays import Bools, Floats, np
from judging.measures import goodput, stalls, steps
from judging.run import FaultSpan, Run, Span

__all__ = ["recoveries"]

BIN_S = 0.25  # of lab time
SLIDES = 10  # a sliding bin moves by this part of its length
BACK_AT = 0.90  # of the reference phase's goodput: below the noise of one bin, above a lost plane


@dataclass(frozen=True, slots=True)
class Recovery:
    """From one fault, or from the first of a burst of them. `after_ns` is None when goodput was not back before the
    next one or the end."""

    faults: tuple[FaultSpan, ...]
    dip: float  # lowest goodput of a bin after the fault, as a share of the reference
    after_ns: int | None
    next_fault: bool = False  # whether the next fault ended the time that was watched; False: the end of the run did
    watched_ns: int = 0  # until the next fault or the end
    spoilt: bool = False  # a stall came before goodput was back: the time is not the fault's alone
    abandoned_ns: int | None = None  # until the last abandoned path was first abandoned; None: none was
    missed_ns: int | None = None  # slowest of all hosts: from the sending of its first lost packet until it was missed
    repaired_ns: int | None = None  # until every packet that was lost had arrived; None: none was

    @property
    def start_ns(self) -> int:
        return self.faults[0].start_ns

    @property
    def title(self) -> str:
        more = len(self.faults) - 1
        return self.faults[0].title + (f" and {more} more" if more else "")


def bin_ns(run: Run) -> int:
    """A bin's length: a median training step, so that pauses between steps do not look like faults; else 250 ms."""
    times = steps.times(steps.steps(run))
    least_ns = run.ns(BIN_S)
    return max(least_ns, times.median_ns) if times else least_ns


def finest_ns(run: Run) -> int:
    """The shortest bin in which acknowledged bytes mean something: two round trips, and what agents sample."""
    samples = next(iter(run.agent_samples.values()), [])
    intervals = np.diff([int(line["t_ns"]) for line in samples]) if len(samples) > 1 else np.array([run.ns(BIN_S)])
    return max(2 * sample_size.base_rtt_ns(run), int(np.median(intervals)))


def communication(run: Run) -> list[Span] | None:
    """When all ranks of a training job communicated, step by step; None where there is no such job."""
    by_step: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for line in run.kind("step"):
        end_ns = int(line["t_ns"])
        by_step[str(line.get("workload")), int(line["step"])].append((end_ns - int(line["comm_ns"]), end_ns))
    spans = [Span("communication", max(s for s, _ in own), min(e for _, e in own)) for own in by_step.values()]
    return sorted((span for span in spans if span.length_ns > 0), key=lambda span: span.start_ns) or None


def usual(run: Run, reference: Span, bin_ns: int, talking: Sequence[Span] | None) -> float:
    """The 10th percentile of the rates of the reference phase's bins, bit/s: a lower rate counts as low."""
    ends = instants(reference.start_ns + bin_ns, reference, bin_ns)
    ends = ends[inside(ends, bin_ns, talking) & apart(ends, bin_ns, stalls.spans(run))]
    if not len(ends):
        return 0.0
    sums = goodput.acknowledged(run, ends) - goodput.acknowledged(run, ends - bin_ns)
    return float(np.percentile(sums, 10)) * 8e9 / bin_ns


def instants(first_ns: int, span: Span, bin_ns: int) -> Floats:
    """Ends of sliding bins up to the end of a span. ValueError for a span that has too many of them."""
    step_ns = max(bin_ns // SLIDES, 1)
    span.count(step_ns)
    return np.arange(first_ns, span.stop_ns + 1, step_ns, dtype=float)


def inside(ends: Floats, bin_ns: int, spans: Sequence[Span] | None) -> Bools:
    """Which bins lie wholly in one of the spans; all where there are none to lie in."""
    if spans is None:
        return np.ones(len(ends), dtype=bool)
    found = np.zeros(len(ends), dtype=bool)
    for span in spans:
        found |= (ends - bin_ns >= span.start_ns) & (ends <= span.stop_ns)
    return found


def apart(ends: Floats, bin_ns: int, spans: Sequence[Span]) -> Bools:
    """Which bins no span touches."""
    found = np.ones(len(ends), dtype=bool)
    for span in spans:
        found &= (ends <= span.start_ns) | (ends - bin_ns >= span.stop_ns)
    return found


def recoveries(run: Run, bin_ns: int | None = None) -> list[Recovery]:
    """One for each fault or burst of faults, from goodput in sliding bins of `bin_ns`, else at the finest grain.

    None for faults after the last phase, as by hand: nothing has to be back there.
    """
    reference = run.phases.get("reference")
    if reference is None:
        return []
    talking = None
    if bin_ns is None:
        bin_ns, talking = finest_ns(run), communication(run)
        normal = usual(run, reference, bin_ns, talking)
    else:
        normal = goodput.of_phase(run, reference)
    if normal <= 0:
        return []
    stop_ns = max(span.stop_ns for span in run.phases.values())  # after that, workloads only drain
    together = bursts([fault for fault in run.faults if fault.start_ns < stop_ns], run.ns(BIN_S))
    ends = [faults[0].start_ns for faults in together[1:]] + [stop_ns] * bool(together)
    result = []
    for index, (faults, next_ns) in enumerate(zip(together, ends, strict=True), 1):
        span = Span("after", faults[0].start_ns, min(next_ns, stop_ns))
        found = after(run, faults, span, normal, bin_ns, talking)
        until_ns = span.stop_ns if found.after_ns is None else span.start_ns + found.after_ns + bin_ns
        result.append(
            replace(
                found,
                next_fault=index < len(together),
                watched_ns=span.length_ns,
                spoilt=stalls.touches(run, Span("recovery", span.start_ns, until_ns)),
                abandoned_ns=last_path_abandoned(run, span),
                missed_ns=slowest_miss(run, span),
                repaired_ns=last_repair(run, span),
            )
        )
    return result


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
    Paths that are abandoned for a stall do not count.
    """
    first: dict[tuple[object, ...], int] = {}
    for line in run.within(span, "ev"):
        if str(line.get("new", "")).upper() == "ASSUMED_BAD" and not stalls.spoils(run, int(line["t_ns"])):
            first.setdefault((line["node"], line.get("qp"), line["ev"]), int(line["t_ns"]))
    return max(first.values()) - span.start_ns if first else None


def fell_later(run: Run, span: Span, talking: Sequence[Span] | None, low_ns: int) -> bool:
    """Whether the rate first fell when the losses of the span's faults had been repaired: for another reason, then.

    Repair takes `sample_size.REPAIR_ROUND_TRIPS` of communication, which may begin only some time after the fault.
    While hosts say that they still repair, the rate fell for that.
    """
    if any(int(line["sent_ns"]) <= low_ns <= int(line["t_ns"]) for line in repairs(run, span)):
        return False
    begins_ns = span.start_ns
    if talking is not None:
        after = [at for at in talking if at.stop_ns > span.start_ns]
        begins_ns = max(begins_ns, after[0].start_ns) if after else begins_ns
    return low_ns > begins_ns + sample_size.REPAIR_ROUND_TRIPS * sample_size.base_rtt_ns(run)


def repairs(run: Run, span: Span) -> list[Line]:
    """The repairs that began in a span, except those of packets that only a stall made look lost."""
    begun = [line for line in run.kind("repair") if span.contains(int(line["noticed_ns"]))]
    return [line for line in begun if not stalls.spoils(run, int(line["noticed_ns"]))]


def last_repair(run: Run, span: Span) -> int | None:
    """From the beginning of a span until the packets that were taken for lost in it had all arrived."""
    ends = [int(line["t_ns"]) for line in repairs(run, span)]
    return max(ends) - span.start_ns if ends else None


def slowest_miss(run: Run, span: Span) -> int | None:
    """The longest that any host took to miss the first packet that it lost, from its sending on."""
    return max((int(line["noticed_ns"]) - int(line["sent_ns"]) for line in repairs(run, span)), default=None)


def after(
    run: Run,
    faults: tuple[FaultSpan, ...],
    span: Span,
    normal: float,
    bin_ns: int,
    talking: Sequence[Span] | None = None,
) -> Recovery:
    """Goodput is back at the end of the first sliding bin that is not low and is followed by none that is for a bin.

    Bins that a stall touches are no evidence either way, nor are those in which not all hosts are `talking`.
    """
    step_ns = max(bin_ns // SLIDES, 1)
    ends = instants(span.start_ns + step_ns, span, bin_ns)
    if not len(ends):
        return Recovery(faults, 1.0, None)
    sums = goodput.acknowledged(run, ends) - goodput.acknowledged(run, ends - bin_ns)
    shares = sums * 8e9 / bin_ns / normal
    seen = inside(ends, bin_ns, talking) & apart(ends, bin_ns, stalls.spans(run))
    low = np.flatnonzero((shares < BACK_AT) & seen)
    dip = float(np.min(shares[seen], initial=1.0))
    if not len(low):
        return Recovery(faults, dip, 0)
    if fell_later(run, span, talking, int(ends[low[0]]) - bin_ns):
        return Recovery(faults, float(np.min(shares[: low[0]][seen[: low[0]]], initial=1.0)), 0)
    shares = np.where(seen, shares, 1.0)
    for index in range(int(low[0]) + 1, len(shares)):
        if seen[index] and (shares[index : index + SLIDES] >= BACK_AT).all():
            return Recovery(faults, dip, int(ends[index] - span.start_ns))
    return Recovery(faults, dip, None)
