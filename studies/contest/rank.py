"""Ranks of algorithms on the same seeds, with the ranks that the seeds leave possible.

Each pair of algorithms is compared by the interval of its paired difference. An algorithm's best possible rank follows
from how many are clearly better, its worst from how many are clearly worse (M. Mogstad, J. Romano, A. Shaikh, D.
Wilhelm, Review of Economic Studies 91, 2024). The 5 % of error are divided among all pairs (Bonferroni), so all ranks
of one metric hold together with 95 % confidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from studies.sweeping.paired import difference
from studies.sweeping.proportion import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Ranking:
    """`place` is the rank of the mean, from 1 for the best; the true rank lies in `low` to `high`."""

    place: int
    low: int
    high: int

    def words(self) -> str:
        """Such as `2 (1 to 3)`."""
        return f"{self.place} ({self.low})" if self.low == self.high else f"{self.place} ({self.low} to {self.high})"


def ranks(values: Mapping[str, Mapping[int, float]], better: str) -> dict[str, Ranking]:
    """The rank of each algorithm from its numbers by seed; `better` is "high" or "low".

    Only seeds that all algorithms have count. Empty without such a seed.
    """
    seeds = set.intersection(*(set(own) for own in values.values())) if values else set()
    if not seeds:
        return {}
    sign = 1.0 if better == "high" else -1.0
    own = {name: {seed: sign * numbers[seed] for seed in sorted(seeds)} for name, numbers in values.items()}
    means = {name: sum(numbers.values()) / len(seeds) for name, numbers in own.items()}
    beaten_by, beats = dict.fromkeys(own, 0), dict.fromkeys(own, 0)
    pairs = list(combinations(own, 2))
    for first, second in pairs:
        order = _order(own[first], own[second], (1 - CONFIDENCE) / len(pairs))
        if order:
            winner, loser = (second, first) if order > 0 else (first, second)
            beats[winner] += 1
            beaten_by[loser] += 1
    return {
        name: Ranking(1 + sum(other > mean for other in means.values()), 1 + beaten_by[name], len(own) - beats[name])
        for name, mean in means.items()
    }


def _order(first: Mapping[int, float], second: Mapping[int, float], error: float) -> int:
    """1 if the second is clearly higher, −1 if it is clearly lower, otherwise 0.

    With n seeds all differences have one sign by chance with a probability of 2^(1 − n): so many seeds are needed that
    this is no more than the error that is allowed.
    """
    found = difference(first, second, 1 - error)
    if found is None or not found.clear or 2.0 ** (1 - found.pairs) > error:
        return 0
    return 1 if found.mean > 0 else -1
