"""The cost of a fault: the time lost against the quiet laps of the same phase.

A lap is a training step, from the end of the step before to its own end; where no job trains, it is a bin of charts
(`recovery.bin_ns`), and its work are the bytes acknowledged in it. Quiet laps are those that no fault and no stall
touches. Their median is the pace of the phase. A lap loses what it takes beyond its work at that pace. So the machine's
mood, which changes between two phases, is not in the cost: it is the drift, which has a separate line.

A burst that no packet met says nothing about the transport. The mean is over those after which a host sent a packet
again, and the costs of all count. Each lost packet must be sent again; a needless copy only makes the mean milder.

To a burst of faults belong the laps that it touches, and of those up to the next burst the ones that are slow beyond
the spread of quiet laps. A stall only ever adds time: the cost is an upper bound, and stalls widen its error downwards.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from judging.arrays import np
from judging.measures import goodput, recovery, stalls, steps
from judging.run import FaultSpan, Run, Span
from judging.sample_size import REPAIR_ROUND_TRIPS, base_rtt_ns

__all__ = ["QUIET_MIN", "by_fault", "instants", "laps", "pace"]

SETTLED_ROUND_TRIPS = 10
"""From the beginning or the end of a fault until its losses are repaired: laps after that are quiet."""
QUIET_MIN = 3
"""Quiet laps that make a pace; where a phase has fewer, those of all phases do, and drift is part of the error."""
SIGMAS = 3.0
DRIFT_MAX = 0.02
DRIFT_OF_A_MACHINE = 0.10
"""Above which no machine that kept up explains why a phase is slower than the reference."""
REPAIRS_PER_LAP = 5
"""In a step that is shorter, each of its messages is a few packets long: a fault costs a repair for each of them."""
CALM = ("reference", "heal")
WORST = 2
"""So many times the limit a single burst may cost: a fault can meet two hops of a ring, one after the other."""


@dataclass(frozen=True, slots=True)
class Lap(Span):
    """A piece of a phase and the work done in it: one step, or acknowledged bytes."""

    work: float

    def touches(self, start_ns: int, stop_ns: int) -> bool:
        return self.start_ns < stop_ns and self.stop_ns > start_ns


@dataclass(frozen=True, slots=True)
class Pace:
    """The median quiet lap: time per work, the number of laps, and their spread (a standard deviation, ns per lap)."""

    ns_per_work: float
    count: int
    spread_ns: float

    def lost_ns(self, lap: Lap) -> float:
        """The time of a lap beyond its work at this pace; negative where it was quicker."""
        return lap.length_ns - lap.work * self.ns_per_work


class Cost(NamedTuple):
    """The cost of a burst of faults, or of several that began in one lap. `bursts` counts those that packets met.

    `lost_ns` is without `away_ns`, the allowance for hosts that have fewer ports meanwhile. By `noise_ns` it may
    be more or less, by `stalled_ns` less. The noise is `spread_ns`, by which the laps of a burst vary, and `pace_ns`,
    by which the pace of the quiet laps may be wrong, for all bursts alike.
    """

    faults: tuple[FaultSpan, ...]
    bursts: int
    lost_ns: float
    away_ns: float
    spread_ns: float
    pace_ns: float
    stalled_ns: float

    def each(self, ns: float) -> float:
        """The part of each burst that packets met."""
        return ns / max(1, self.bursts)

    @property
    def noise_ns(self) -> float:
        return self.spread_ns + self.pace_ns

    @property
    def least_ns(self) -> float:
        return self.lost_ns - self.noise_ns - self.stalled_ns


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """The costs in a phase, and the pace of its quiet laps, which are `steps` or bins. `drift` is by how much they, and
    those of `heal` where they are too few for a pace, are slower than the reference's, as a share; None for none."""

    costs: tuple[Cost, ...]
    pace: Pace
    drift: float | None
    steps: bool

    @property
    def together(self) -> Cost:
        """All of them as one. Differences from lap to lap add up by their squares."""
        faults, *numbers = zip(*self.costs, strict=True)
        every = Cost(tuple(fault for some in faults for fault in some), *map(sum, numbers))
        return every._replace(spread_ns=float(np.hypot.reduce([cost.spread_ns for cost in self.costs])))


def laps(run: Run, span: Span) -> list[Lap]:
    """The laps of the job that made most steps in a span, or bins of it."""
    by_job: dict[str, list[Lap]] = {}
    for step in steps.steps(run):
        own = by_job.setdefault(step.job, [])
        own.append(Lap(step.job, own[-1].stop_ns if own else step.start_ns, step.end_ns, 1.0))
    end_ns, over = run.judged.stop_ns, steps.over_ns(run)
    for job, own in by_job.items():
        halt = Lap(job, own[-1].stop_ns, min(over.get(job, end_ns), end_ns), 1.0)
        if halt.length_ns > np.median([lap.length_ns for lap in own]):
            own.append(halt)  # a job that has come to a halt owes a step
    inside = [[lap for lap in own if lap.touches(span.start_ns, span.stop_ns)] for own in by_job.values()]
    if by_job:
        return max(inside, key=len)
    bin_ns = recovery.bin_ns(run)
    edges = span.start_ns + bin_ns * np.arange(span.count(bin_ns) + 1)
    work = np.diff(goodput.acknowledged(run, edges.astype(float)))
    return [Lap("bin", int(at), int(at) + bin_ns, float(done)) for at, done in zip(edges, work, strict=False)]


def quiet(run: Run, every: Sequence[Lap]) -> list[Lap]:
    """The laps that no fault's beginning or end, and no stall, touches."""
    settled_ns = SETTLED_ROUND_TRIPS * base_rtt_ns(run)
    at = instants(run.faults)
    return [
        lap
        for lap in every
        if lap.work > 0 and not any(lap.touches(t, t + settled_ns) for t in at) and not stalls.within(run, lap)
    ]


def pace(*groups: Sequence[Lap]) -> Pace | None:
    """The pace of all laps; their spread is within the groups, which may differ. None for no lap."""
    if not (together := [lap.length_ns / lap.work for group in groups for lap in group]):
        return None
    rests: list[float] = []
    for group in filter(None, groups):
        middle = float(np.median([lap.length_ns / lap.work for lap in group]))
        rests += [abs(lap.length_ns - lap.work * middle) for lap in group]
    return Pace(float(np.median(together)), len(together), 1.4826 * float(np.median(rests)))


def of_phase(run: Run, phase: Span, away_ns: Callable[[FaultSpan], float] | None = None) -> PhaseCost | None:
    """The costs of the faults that begin in a phase, without `away_ns` for each. None without any quiet lap."""
    own = laps(run, phase)
    calm = {name: quiet(run, laps(run, span)) for name, span in run.phases.items() if name in (phase.name, *CALM)}
    here, usual = calm[phase.name], calm.get("reference", [])
    enough = len(here) >= QUIET_MIN
    typical = pace(here) if enough else pace(*calm.values())
    before, after = pace(usual), pace(here if enough else [*here, *calm.get("heal", [])])
    if typical is None or not own:
        return None
    drift = after.ns_per_work / before.ns_per_work - 1 if after and before else None
    spread = pace(here, usual) or typical
    sigma_ns = SIGMAS * spread.spread_ns
    # The standard error of a median is 1.25 times that of a mean.
    each_ns = 1.25 * sigma_ns / typical.count**0.5 + (0.0 if enough else DRIFT_MAX * typical.ns_per_work * own[0].work)
    usually = float(np.median([stalls.held_up_ns(run, lap) / lap.length_ns for lap in here])) if here else 0.0
    groups: dict[int, list[tuple[Sequence[FaultSpan], bool]]] = {}
    bursts = recovery.bursts(run.faults, REPAIR_ROUND_TRIPS * base_rtt_ns(run))
    starts = [burst[0].start_ns for burst in bursts]
    for burst, start_ns, next_ns in zip(bursts, starts, [*starts[1:], run.end_ns], strict=False):
        if phase.contains(start_ns):
            first = next((n for n, lap in enumerate(own) if lap.stop_ns > start_ns), len(own))
            groups.setdefault(first, []).append((burst, sent_again(run, start_ns, next_ns)))
    costs = []
    for (first, group), end in zip(groups.items(), [*groups, len(own)][1:], strict=True):
        faults = tuple(fault for burst, _ in group for fault in burst)
        counted = touched(run, faults, own[first:end], typical, sigma_ns)
        away = sum(map(away_ns, faults)) if away_ns else 0.0
        lost_ns = sum(typical.lost_ns(lap) for lap in counted) - away
        noise_ns = sigma_ns * len(counted) ** 0.5, each_ns * len(counted)
        stalled_ns = sum(stalls.held_up_ns(run, lap) - usually * lap.length_ns for lap in counted)
        costs.append(Cost(faults, sum(met for _, met in group), lost_ns, away, *noise_ns, max(0.0, stalled_ns)))
    return PhaseCost(tuple(costs), typical, drift, own[0].work == 1.0)


def sent_again(run: Run, start_ns: int, stop_ns: int) -> bool:
    """Whether a host sent a packet again from one time to another, by its last samples before these."""
    for counted in (goodput.totals(run, host) for host in run.agent_samples):
        first, last = np.searchsorted(counted.times, (start_ns, stop_ns), "right") - 1
        if (sums := counted.qps.get("retransmits")) is not None and sums[first] < sums[last]:
            return True
    return False


def touched(run: Run, faults: Sequence[FaultSpan], own: Sequence[Lap], usual: Pace, sigma_ns: float) -> list[Lap]:
    """The laps that some faults touch, and those after them that are slow beyond the spread, and not for the
    machine."""
    at = instants(faults)
    settled_ns = SETTLED_ROUND_TRIPS * base_rtt_ns(run)
    return [
        lap
        for lap in own
        if any(lap.touches(t, t + settled_ns) for t in at)
        or usual.lost_ns(lap) - stalls.held_up_ns(run, lap) > sigma_ns
    ]


def instants(faults: Iterable[FaultSpan]) -> list[int]:
    """When faults begin and end."""
    return [at for fault in faults for at in (fault.start_ns, fault.stop_ns) if at is not None]


def by_fault(run: Run) -> dict[int, float]:
    """The time that faults cost, ns, by the beginning of each; those of one lap share its cost."""
    phase_costs = (of_phase(run, span) for span in run.phases.values()) if base_rtt_ns(run) else ()
    costs = [cost for phase in phase_costs if phase is not None for cost in phase.costs]
    return {fault.start_ns: cost.each(cost.lost_ns) for cost in costs for fault in cost.faults}
