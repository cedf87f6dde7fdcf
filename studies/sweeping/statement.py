"""Statements of a sweep: verdicts and metrics of each variant with intervals, differences of pairs, the worst seeds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from judging import WORDS
from studies.sweeping.metric import METRICS, Metric
from studies.sweeping.paired import PairedDifference, difference
from studies.sweeping.proportion import Share, share
from studies.sweeping.quantile import Quantile, quantile
from studies.sweeping.row import Row
from studies.sweeping.sweep import Sweep
from studies.sweeping.until import Until
from studies.sweeping.variant import Variant

WORST = 3  # seeds named for each variant
SHOWN = (0.01, 0.5, 0.99)


@dataclass(frozen=True, slots=True)
class VariantStatement:
    """About one variant. `checks` counts the findings that were not true, by check: (false, unknown)."""

    variant: Variant
    claim: str
    rows: Sequence[Row]
    verdicts: Mapping[str, Share]
    checks: Mapping[str, tuple[int, int]]
    metrics: Mapping[str, Mapping[float, Quantile]]
    test: Until | None

    @property
    def errors(self) -> list[Row]:
        """Runs that an exception ended."""
        return [row for row in self.rows if row.error]

    def values(self, metric: str) -> dict[int, float]:
        """A metric by seed; runs without it are left out."""
        return {row.seed: row.metrics[metric] for row in self.rows if metric in row.metrics}

    def worst(self) -> list[Row]:
        """The runs to look at first: false ones, then unknown ones, then those with the least goodput kept.

        A scenario without faults keeps none: there the least goodput counts.
        """
        order = {WORDS[False]: 0, WORDS[None]: 1, WORDS[True]: 2}

        def place(row: Row) -> tuple[int, float, float, float, int]:
            kept, p99 = row.metrics.get("goodput_kept", 1.0), row.metrics.get("p99_step", 0.0)
            return order[row.verdict], kept, -p99, row.metrics.get("goodput", 0.0), row.seed

        return sorted(self.rows, key=place)[:WORST]


@dataclass(frozen=True, slots=True)
class Contrast:
    """Second − first, of two variants that differ in one thing; `passed` of the share of true verdicts."""

    axis: str
    first: Variant
    second: Variant
    passed: PairedDifference
    metrics: Mapping[str, PairedDifference]


def statements(sweep: Sweep) -> list[VariantStatement]:
    """One for each subject, in the sweep's order."""
    return [
        statement(subject.variant, subject.title, sweep.rows(index), sweep.test(index))
        for index, subject in enumerate(sweep.subjects)
    ]


def statement(variant: Variant, claim: str, rows: Sequence[Row], test: Until | None = None) -> VariantStatement:
    """Count and measure the rows of one variant."""
    counted = Counter(row.verdict for row in rows)
    checks: dict[str, tuple[int, int]] = {}
    for row in rows:
        for name, holds in row.findings.items():
            if holds is not True:
                false, unknown = checks.get(name, (0, 0))
                checks[name] = (false + (holds is False), unknown + (holds is None))
    metrics: dict[str, dict[float, Quantile]] = {}
    for name in METRICS:
        values = [row.metrics[name] for row in rows if name in row.metrics]
        if values:
            metrics[name] = {p: quantile(values, p) for p in SHOWN}
    verdicts = {word: share(counted[word], len(rows)) for word in WORDS.values()}
    return VariantStatement(variant, claim, rows, verdicts, dict(sorted(checks.items())), metrics, test)


def contrasts(statements: Sequence[VariantStatement]) -> list[Contrast]:
    """Every two variants that differ in one axis, and share a seed; not those of two scenarios."""
    result = []
    for first, second in combinations(statements, 2):
        base, other = first.variant.axes, second.variant.axes
        differ = [name for name in {**base, **other} if base.get(name) != other.get(name)]
        if len(differ) != 1 or differ[0] == "scenario":
            continue
        left, right = ({row.seed: float(row.passed) for row in side.rows} for side in (first, second))
        passed = difference(left, right)
        if passed is None:
            continue
        both = {name: difference(first.values(name), second.values(name)) for name in METRICS}
        kept = {name: value for name, value in both.items() if value is not None}
        result.append(Contrast(differ[0], first.variant, second.variant, passed, kept))
    return result


def document(statements: Sequence[VariantStatement]) -> dict[str, Any]:
    """Everything as JSON. The same rows give the same text, in any order and from any engine."""
    return {
        "variants": [_variant(statement) for statement in statements],
        "differences": [
            {
                "axis": contrast.axis,
                "first": dict(contrast.first.axes),
                "second": dict(contrast.second.axes),
                "true_share": asdict(contrast.passed),
                **{name: asdict(value) for name, value in contrast.metrics.items()},
            }
            for contrast in contrasts(statements)
        ],
    }


def _variant(statement: VariantStatement) -> dict[str, Any]:
    return {
        **dict(statement.variant.axes),
        "options": statement.variant.options,
        "claim": statement.claim,
        "runs": len(statement.rows),
        "seeds": [row.seed for row in statement.rows],
        "verdicts": {word: {**asdict(value), "share": value.value} for word, value in statement.verdicts.items()},
        "until": None if statement.test is None else {"target": statement.test.target, "known": statement.test.known},
        "checks": {name: {"false": false, "unknown": unknown} for name, (false, unknown) in statement.checks.items()},
        "metrics": {
            name: {"unit": METRICS[name].unit, "quantiles": {f"{p:g}": asdict(value) for p, value in quantiles.items()}}
            for name, quantiles in statement.metrics.items()
        },
        "worst": [
            {
                "seed": row.seed,
                "verdict": row.verdict,
                "reasons": dict(row.reasons) or row.error,
                "command": statement.variant.command(row.seed),
            }
            for row in statement.worst()
        ],
    }


def table(statements: Sequence[VariantStatement]) -> tuple[list[str], list[list[str]]]:
    """Head and rows for people's own tools: a line per run; every axis, verdict, metric and finding is a column."""
    axes = list(dict.fromkeys(name for statement in statements for name in statement.variant.axes))
    checks = sorted({name for statement in statements for row in statement.rows for name in row.findings})
    head = [*axes, "options", "seed", "verdict", *METRICS, *(f"check {name}" for name in checks), "error", "key"]
    lines = []
    for statement in statements:
        own = statement.variant.axes
        for row in statement.rows:
            numbers = [f"{row.metrics[name]:.9g}" if name in row.metrics else "" for name in METRICS]
            holds = [WORDS[row.findings[name]] if name in row.findings else "" for name in checks]
            first = [own.get(name, "") for name in axes]
            lines.append(
                [*first, statement.variant.options, str(row.seed), row.verdict, *numbers, *holds, row.error, row.key]
            )
    return head, lines


def number(metric: Metric, value: float) -> str:
    """A metric's number for people."""
    if metric.unit == "bit/s":
        return f"{value / 1e6:,.1f} Mb/s"
    if metric.unit.startswith("share"):
        return f"{100 * value:.2f} %"
    return f"{value:.2f}"
