"""The answer for a whole job, from runs of its parts: weighted quantiles of step times, and the slowest step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from common.scratch import Scratch
from running import prepare
from running.document import spec_of, written
from scale.carried import Carried, PartJob, seeds, spec
from scale.job import ScaleError
from scale.part import Cut, Part
from studies.farm import Engine

SCRATCH = "mrclab-scale-"
SAMPLES = 4
"""Runs of a class with so many members or more."""
TAIL = 0.99
"""Beyond this quantile, step times are taken to fall exponentially."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Answer:
    """Step times of all NICs and steps of a job, ns; `exact_nics` were simulated, of which some represent others.

    `slowest_ns` of undisturbed parts that were not simulated is extrapolated. `unfinished` is the share of steps
    without an end.
    """

    nics: int
    exact_nics: int
    median_ns: float
    p99_ns: float
    slowest_ns: float
    unfinished: float
    packets: float
    resent: float


def planned(cut: Cut, seed: int, transport: str, samples: int, scratch: Path, whole: bool) -> list[PartJob]:
    """The runs to be made: of each class some members, each with another seed."""
    jobs: list[PartJob] = []
    parts = [cut.whole] if whole else cut.parts()
    for number, part in enumerate(parts):
        file = scratch / f"part{number}.goal"
        own = seeds(seed, part.title)
        for _ in range(min(samples, part.members)):
            run = spec(cut.job, part, next(own), transport, file)
            steps, rounds = cut.job.steps, cut.job.rounds_per_step
            title = f"{part.title}, {part.plan.host_count} NICs"
            jobs.append(PartJob(f"{number}-{len(jobs)}", written(run), title, part=number, steps=steps, rounds=rounds))
    return jobs


def memory_bytes(cut: Cut, transport: str, whole: bool) -> int:
    """The most that one of the runs takes. ValueError for a part that does not fit into this machine."""
    with Scratch(SCRATCH) as scratch:
        jobs = planned(cut, 1, transport, 1, scratch, whole)
        return max(prepare(spec_of(job.run)).needed.memory_bytes for job in jobs)


def answered(
    cut: Cut,
    seed: int,
    engine: Engine[PartJob, Carried],
    *,
    transport: str = "mrc",
    samples: int = SAMPLES,
    whole: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Answer:
    """Carry the parts, or with `whole` all of the job as one, and put the answer together."""
    parts = [cut.whole] if whole else cut.parts()
    with Scratch(SCRATCH) as scratch:
        jobs = planned(cut, seed, transport, samples, scratch, whole)
        for job in jobs:
            engine.submit(job)
        carried: list[Carried] = []
        while engine.pending:
            carried.append(engine.next())
            tell(f"{len(carried)} of {len(jobs)}: {parts[carried[-1].part].title}")
    return together(parts, carried)


def together(parts: Sequence[Part], carried: Sequence[Carried]) -> Answer:
    """The answer from one run or more of each part."""
    values, weights, slowest, packets, resent, simulated = [], [], 0.0, 0.0, 0.0, 0
    for number, part in enumerate(parts):
        own = [run for run in carried if run.part == number]
        if not own:
            raise ScaleError(f"{part.title} was not carried")
        each = part.members / len(own)
        share = sum(part.weights) / part.plan.host_count
        steps = np.concatenate([run.steps_ns for run in own])
        weight = np.broadcast_to(np.array(part.weights) * each, steps.shape)
        counted = weight > 0
        values.append(steps[counted])
        weights.append(weight[counted])
        slowest = max(slowest, most(steps[counted], float(weight.sum())))
        packets += each * share * sum(run.packets for run in own)
        resent += each * share * sum(run.resent for run in own)
        simulated += len(own) * part.plan.host_count
    all_values, all_weights = np.concatenate(values), np.concatenate(weights)
    ended = ~np.isnan(all_values)
    median_ns, p99_ns = quantiles(all_values[ended], all_weights[ended], (0.5, 0.99))
    return Answer(
        nics=round(sum(sum(part.weights) * part.members for part in parts)),
        exact_nics=simulated,
        median_ns=median_ns,
        p99_ns=p99_ns,
        slowest_ns=slowest,
        unfinished=float(all_weights[~ended].sum() / all_weights.sum()),
        packets=packets,
        resent=resent,
    )


def quantiles(values: Values, weights: Values, shares: Sequence[float]) -> list[float]:
    """The smallest value below or at which lies at least each share of the weight; nan without values."""
    if not len(values):
        return [float("nan")] * len(shares)
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array(shares) * reached[-1])
    return [float(values[order[min(place, len(order) - 1)]]) for place in places]


def most(values: Values, weight: float) -> float:
    """The largest of values of so much weight, of which these are a sample.

    The largest of all, if each represents itself. Otherwise the tail beyond `TAIL` is taken to be exponential, with
    the mean excess of the sample there, and the value is that which one of `weight` values is expected to exceed.
    """
    values = values[~np.isnan(values)]
    if not len(values):
        return float("nan")
    largest = float(values.max())
    if weight <= len(values) + 0.5:
        return largest
    begin = float(np.quantile(values, TAIL))
    beyond = values[values >= begin] - begin
    return max(largest, begin + float(beyond.mean()) * float(np.log(max(1.0, (1 - TAIL) * weight))))
