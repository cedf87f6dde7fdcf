"""The result of a contest: each metric of each algorithm, its difference to the reference, and its rank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, comb, log2
from statistics import fmean
from typing import Any

from studies.sweeping.metric import METRICS, Metric
from studies.sweeping.paired import PAIRS_MIN, PairedDifference, difference
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


def ranks(values: Mapping[str, Mapping[int, float]], better: str, effect: float = 0.0) -> dict[str, Ranking]:
    """The rank of each algorithm from its numbers by seed; `better` is "high" or "low". A difference below `effect`
    orders nothing.

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
        order = _order(own[first], own[second], (1 - CONFIDENCE) / len(pairs), effect)
        if order:
            winner, loser = (second, first) if order > 0 else (first, second)
            beats[winner] += 1
            beaten_by[loser] += 1
    return {
        name: Ranking(1 + sum(other > mean for other in means.values()), 1 + beaten_by[name], len(own) - beats[name])
        for name, mean in means.items()
    }


def _order(first: Mapping[int, float], second: Mapping[int, float], error: float, effect: float) -> int:
    """1 if the second is clearly higher, −1 if it is clearly lower, otherwise 0.

    With n seeds all differences have one sign by chance with a probability of 2^(1 − n): so many seeds are needed that
    this is no more than the error that is allowed.
    """
    gap = difference(first, second, 1 - error)
    if gap is None or not gap.clear or abs(gap.mean) < effect or 2.0 ** (1 - gap.pairs) > error:
        return 0
    return 1 if gap.mean > 0 else -1


def seeds_needed(algorithms: int) -> int:
    """The seeds that can order so many algorithms at all, by the rule of `_order`."""
    return max(PAIRS_MIN, 1 + ceil(log2(max(1, comb(algorithms, 2)) / (1 - CONFIDENCE))))


def holm(chances: Sequence[float]) -> list[float]:
    """The chances of several comparisons, adjusted: those up to 0.05 are all right at once with 95 % confidence
    (S. Holm, Scandinavian Journal of Statistics 6, 1979)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    adjusted, most = [0.0] * len(chances), 0.0
    for place, index in enumerate(order):
        most = max(most, min(1.0, (len(chances) - place) * chances[index]))
        adjusted[index] = most
    return adjusted


FAULTS = Metric("goodput_faults", "goodput under faults", "bit/s", "high", lambda run: None)  # `values` has both
TRUE = Metric("true_share", "true verdicts", "share of runs", "high", lambda run: None)
LEADING: Mapping[str, Metric] = {metric.name: metric for metric in (FAULTS, METRICS["goodput"])}
"""The metrics that lead: absolute, and so always ranked. The other metrics of runs are relative to the algorithm's own
runs without faults, and ranked only where those are alike."""
MEASURES: Mapping[str, Metric] = {**LEADING, TRUE.name: TRUE, **METRICS}
"""By name, in the order of tables."""
MATTERS = 0.02
"""The smallest difference that matters: of a rate as a share of the reference's, and of multiples."""
MATTERS_POINTS = 0.01
MATTERS_ROUND_TRIPS = 1.0


def effect(metric: Metric, reference: float) -> float:
    """The smallest difference of a metric that matters, in its unit, where the reference's mean is `reference`."""
    if metric.unit == "bit/s":
        return MATTERS * reference
    if metric.unit == "round trips":
        return MATTERS_ROUND_TRIPS
    return MATTERS_POINTS if metric.unit.startswith("share") else MATTERS


@dataclass(frozen=True, slots=True)
class Result:
    """A metric of an algorithm in a scenario. `runs` have the metric; `mean` is theirs, in the metric's unit.

    `difference` is that to the reference, seed by seed: None for the reference. `effect` is the smallest difference
    that matters, and `chance` the difference's own, adjusted for all differences of the contest. `rank` is None where
    no seed has the metric for all algorithms, for verdicts, and where references differ (`Match.apart`).
    """

    metric: Metric
    algorithm: str
    runs: int
    mean: float
    difference: PairedDifference | None
    effect: float
    rank: Ranking | None
    chance: float | None = None

    @property
    def meaning(self) -> str:
        """The difference in a word; "" for the reference, for verdicts and for too few pairs."""
        gap = self.difference
        if gap is None or gap.low is None or gap.high is None or self.metric is TRUE:
            return ""
        if self.chance is not None and self.chance <= 1 - CONFIDENCE:
            word = "better" if (gap.mean > 0) == (self.metric.better == "high") else "worse"
            return word if abs(gap.mean) >= self.effect else f"slightly {word}"
        return "alike" if -self.effect <= gap.low and gap.high <= self.effect else "not known"


@dataclass(frozen=True, slots=True)
class Match:
    """All algorithms in one scenario. `statements` are in the order of `algorithms`."""

    scenario: str
    algorithms: Sequence[str]
    reference: str
    statements: Sequence[VariantStatement]

    def results(self, metric: Metric) -> list[Result]:
        """A result per algorithm that has the metric, in the order of algorithms."""
        own = self.numbers(metric)
        base = own.get(self.reference, {})
        matters = effect(metric, fmean(base.values()) if base else 0.0)
        apart = self.apart()
        ranked = metric.name in LEADING or (metric is not TRUE and apart is not None and apart <= MATTERS)
        places = ranks(own, metric.better, matters) if ranked else {}
        return [
            Result(
                metric,
                name,
                len(numbers),
                fmean(numbers.values()),
                None if name == self.reference else difference(base, numbers),
                matters,
                places.get(name),
            )
            for name, numbers in own.items()
        ]

    def numbers(self, metric: Metric) -> dict[str, dict[int, float]]:
        """By algorithm and seed, without algorithms that lack the metric."""
        every = zip(self.algorithms, self.statements, strict=True)
        own = {name: values(statement, metric) for name, statement in every}
        return {name: numbers for name, numbers in own.items() if numbers}

    def apart(self) -> float | None:
        """By what share of the highest the mean goodputs without faults differ; None where an algorithm has none."""
        means = [fmean(numbers.values()) for numbers in self.numbers(METRICS["goodput"]).values()]
        if len(means) < len(self.algorithms) or not max(means):
            return None
        return 1 - min(means) / max(means)


def results(matches: Sequence[Match]) -> list[tuple[Match, Result]]:
    """Those of all metrics that a run has, scenario by scenario, with chances adjusted for all of them."""
    rows = [(match, result) for match in matches for metric in MEASURES.values() for result in match.results(metric)]
    gaps = [None if result.metric is TRUE else result.difference for _, result in rows]
    chances = [None if gap is None else gap.chance for gap in gaps]
    adjusted = iter(holm([chance for chance in chances if chance is not None]))
    return [
        (match, result if chance is None else replace(result, chance=next(adjusted)))
        for (match, result), chance in zip(rows, chances, strict=True)
    ]


def values(statement: VariantStatement, metric: Metric) -> dict[int, float]:
    """A metric by seed; runs without it are left out."""
    if metric is TRUE:
        return {row.seed: float(row.passed) for row in statement.rows}
    if metric is FAULTS:
        kept, usual = statement.values("goodput_kept"), statement.values("goodput")
        return {seed: kept[seed] * usual[seed] for seed in kept.keys() & usual.keys()}
    return statement.values(metric.name)


HEAD = [
    "scenario", "metric", "unit", "better", "algorithm", "runs", "mean", "reference", "pairs", "difference", "low",
    "high", "effect", "chance", "meaning", "rank", "rank_low", "rank_high",
]  # fmt: skip


def records(matches: Sequence[Match]) -> list[dict[str, Any]]:
    """A record under `HEAD` per scenario, metric and algorithm, in the metrics' own units; None for no number."""
    rows = []
    for match, result in results(matches):
        gap, rank, metric = result.difference, result.rank, result.metric
        differences = [None] * 4 if gap is None else [gap.pairs, gap.mean, gap.low, gap.high]
        places = [None] * 3 if rank is None else [rank.place, rank.low, rank.high]
        row = [
            match.scenario, metric.name, metric.unit, metric.better, result.algorithm, result.runs, result.mean,
            match.reference, *differences, result.effect, result.chance, result.meaning or None, *places,
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
