"""Two variants on the same seeds: by how much they differ, with a bootstrap interval.

A seed draws the same faults for both, so the difference of a pair says more than two distributions side by side. The
interval is the percentile bootstrap of the mean difference (B. Efron, Annals of Statistics 7, 1979): pairs are drawn
again with replacement, from a seeded generator, so that equal rows give equal intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.seeds import Purpose, derive
from judging.arrays import np
from studies.sweeping.proportion import CONFIDENCE

RESAMPLES = 10_000
SEED = 20_271_828
PAIRS_MIN = 5  # fewer pairs have too few resamples to speak of an interval
DRAWN_AT_ONCE = 4_000_000  # numbers: 32 MB


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of second − first over `pairs` seeds, and its interval; None for bounds of too few pairs."""

    pairs: int
    mean: float
    low: float | None
    high: float | None

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def difference(
    first: Mapping[int, float], second: Mapping[int, float], confidence: float = CONFIDENCE
) -> PairedDifference | None:
    """From two variants' numbers by seed; seeds that only one of them has are left out. None without a pair."""
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    values = [second[seed] - first[seed] for seed in seeds]
    mean = sum(values) / len(values)
    if len(values) < PAIRS_MIN:
        return PairedDifference(len(values), mean, None, None)
    return PairedDifference(len(values), mean, *bootstrap(values, confidence))


def bootstrap(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The percentile interval of the mean."""
    generator = np.random.default_rng(int(derive(SEED, Purpose.RESAMPLING)))
    array = np.asarray(values, dtype=float)
    at_once = max(1, DRAWN_AT_ONCE // len(array))
    means: list[float] = []
    while len(means) < RESAMPLES:
        count = min(at_once, RESAMPLES - len(means))
        means += array[generator.integers(0, len(array), (count, len(array)))].mean(axis=1).tolist()
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)
