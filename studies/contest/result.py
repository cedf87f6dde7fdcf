"""The result of a contest: each metric of each algorithm, its difference to the reference, and its rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studies.contest.rank import Ranking, ranks
from studies.sweeping.metric import METRICS, Metric
from studies.sweeping.paired import PairedDifference, difference
from studies.sweeping.statement import VariantStatement

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
        own = {name: values(one, metric) for name, one in zip(self.algorithms, self.statements, strict=True)}
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


def values(one: VariantStatement, metric: Metric) -> dict[int, float]:
    """A metric by seed; runs without it are left out."""
    if metric is TRUE:
        return {row.seed: float(row.passed) for row in one.rows}
    return one.values(metric.name)


HEAD = [
    "scenario", "metric", "unit", "better", "algorithm", "runs", "mean", "reference", "pairs", "difference", "low",
    "high", "rank", "rank_low", "rank_high",
]  # fmt: skip


def records(matches: Sequence[Match]) -> list[dict[str, Any]]:
    """A record under `HEAD` per scenario, metric and algorithm, in the metrics' own units; None for no number."""
    found = []
    for match in matches:
        for one in match.all_results():
            gap, rank, metric = one.difference, one.rank, one.metric
            differences = [None] * 4 if gap is None else [gap.pairs, gap.mean, gap.low, gap.high]
            places = [None] * 3 if rank is None else [rank.place, rank.low, rank.high]
            row = [
                match.scenario, metric.name, metric.unit, metric.better, one.algorithm, one.runs, one.mean,
                match.reference, *differences, *places,
            ]  # fmt: skip
            found.append(dict(zip(HEAD, row, strict=True)))
    return found


def table(matches: Sequence[Match]) -> list[list[str]]:
    """The records as text: numbers with nine digits, "" for no number."""
    return [[_text(value) for value in record.values()] for record in records(matches)]


def _text(value: str | float | None) -> str:
    if value is None:
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)
