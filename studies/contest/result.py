"""The result of a contest: each metric of each algorithm, its difference to the reference, and its rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from studies.sweeping.metric import METRICS, Metric
from studies.sweeping.paired import PairedDifference, difference
from studies.sweeping.proportion import CONFIDENCE
from studies.sweeping.statement import VariantStatement


# Ranks of algorithms on the same seeds, with the ranks that the seeds leave possible.
# Each pair of algorithms is compared by the interval of its paired difference. An algorithm's best possible rank
# follows from how many are clearly better, its worst from how many are clearly worse (M. Mogstad, J. Romano, A. Shaikh,
# D. Wilhelm, Review of Economic Studies 91, 2024). The 5 % of error are divided among all pairs (Bonferroni), so all
# ranks of one metric hold together with 95 % confidence.
@dataclass(frozen=True, slots=True)
class Ranking:
    """`place` is the rank of the mean, from 1 for the best; the true rank lies in `low` to `high`."""

    place: int
    low: int
    high: int

    def describe(self) -> str:
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
    gap = difference(first, second, 1 - error)
    if gap is None or not gap.clear or 2.0 ** (1 - gap.pairs) > error:
        return 0
    return 1 if gap.mean > 0 else -1


TRUE = Metric("true_share", "true verdicts", "share of runs", "high", lambda run: None)  # of verdicts: `values` below
MEASURES: Mapping[str, Metric] = {TRUE.name: TRUE, **METRICS}
"""By name, in the order of tables."""


@dataclass(frozen=True, slots=True)
class Result:
    """A metric of an algorithm in a scenario. `runs` have the metric; `mean` is theirs, in the metric's unit.

    `difference` is that to the reference, seed by seed: None for the reference. `rank` is None where no seed has the
    metric for all algorithms.
    """

    metric: Metric
    algorithm: str
    runs: int
    mean: float
    difference: PairedDifference | None
    rank: Ranking | None


@dataclass(frozen=True, slots=True)
class Match:
    """All algorithms in one scenario. `statements` are in the order of `algorithms`."""

    scenario: str
    algorithms: Sequence[str]
    reference: str
    statements: Sequence[VariantStatement]

    def results(self, metric: Metric) -> list[Result]:
        """A result per algorithm that has the metric, in the order of algorithms."""
        own = {
            name: values(statement, metric) for name, statement in zip(self.algorithms, self.statements, strict=True)
        }
        own = {name: numbers for name, numbers in own.items() if numbers}
        places, base = ranks(own, metric.better), own.get(self.reference, {})
        return [
            Result(
                metric,
                name,
                len(numbers),
                sum(numbers.values()) / len(numbers),
                None if name == self.reference else difference(base, numbers),
                places.get(name),
            )
            for name, numbers in own.items()
        ]

    def all_results(self) -> list[Result]:
        """Those of all metrics that a run has."""
        return [result for metric in MEASURES.values() for result in self.results(metric)]


def values(statement: VariantStatement, metric: Metric) -> dict[int, float]:
    """A metric by seed; runs without it are left out."""
    if metric is TRUE:
        return {row.seed: float(row.passed) for row in statement.rows}
    return statement.values(metric.name)


HEAD = [
    "scenario", "metric", "unit", "better", "algorithm", "runs", "mean", "reference", "pairs", "difference", "low",
    "high", "rank", "rank_low", "rank_high",
]  # fmt: skip


def records(matches: Sequence[Match]) -> list[dict[str, Any]]:
    """A record under `HEAD` per scenario, metric and algorithm, in the metrics' own units; None for no number."""
    rows = []
    for match in matches:
        for result in match.all_results():
            gap, rank, metric = result.difference, result.rank, result.metric
            differences = [None] * 4 if gap is None else [gap.pairs, gap.mean, gap.low, gap.high]
            places = [None] * 3 if rank is None else [rank.place, rank.low, rank.high]
            row = [
                match.scenario, metric.name, metric.unit, metric.better, result.algorithm, result.runs, result.mean,
                match.reference, *differences, *places,
            ]  # fmt: skip
            rows.append(dict(zip(HEAD, row, strict=True)))
    return rows


def table(matches: Sequence[Match]) -> list[list[str]]:
    """The records as text: numbers with nine digits, "" for no number."""
    return [[_text(value) for value in record.values()] for record in records(matches)]


def _text(value: str | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)
