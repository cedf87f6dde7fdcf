"""A sweep's statements for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from judging.reports.report import columns
from studies.sweeping.metric import METRICS, Metric
from studies.sweeping.paired import PAIRS_MIN, PairedDifference
from studies.sweeping.quantile import Quantile
from studies.sweeping.statement import Contrast, VariantStatement, contrasts, number

__all__ = ["summary"]

CONTRASTED = ("goodput_kept", "p99_step", "fault_cost")


def summary(found: Sequence[VariantStatement]) -> str:
    """Verdicts, checks that were not true, metrics, differences and the seeds to look at."""
    lines = [*columns(verdict_rows(found)), ""]
    lines += [f"  {one.variant.title}: {one.test.words()}" for one in found if one.test is not None]
    for title, rows in (
        ("findings that were not true (runs)", check_rows(found)),
        ("metrics over seeds (median, 1st and 99th percentile, each with its 95 % interval)", metric_rows(found)),
        ("second − first on the same seeds (mean, 95 % interval)", contrast_rows(contrasts(found))),
    ):
        if rows:
            lines += ["", title, *columns(rows)]
    worst = [(one, row) for one in found for row in one.worst() if not row.passed]
    if worst:
        lines += ["", "runs to look at"]
        for one, row in worst:
            why = row.error or "; ".join(f"{name}: {reason}" for name, reason in row.reasons.items())
            lines += [f"  {one.variant.command(row.seed)}", f"      {row.verdict}: {why}"]
    return "\n".join(lines) + "\n"


def verdict_rows(found: Sequence[VariantStatement]) -> list[list[str]]:
    """A line a variant, under a head."""
    rows = [["", "runs", "true", "false", "unknown"]]
    for one in found:
        shares = [one.verdicts[word] for word in ("true", "false", "unknown")]
        rows.append([one.variant.title, str(len(one.rows)), *(f"{each.count}: {each.words()}" for each in shares)])
    return rows


def check_rows(found: Sequence[VariantStatement]) -> list[list[str]]:
    """A line for each check that was not true somewhere."""
    return [
        [one.variant.title, name, f"{false} false", f"{unknown} unknown"]
        for one in found
        for name, (false, unknown) in one.checks.items()
    ]


def metric_rows(found: Sequence[VariantStatement]) -> list[list[str]]:
    """A line for each metric of each variant."""
    rows = []
    for one in found:
        for name, quantiles in one.metrics.items():
            metric = METRICS[name]
            low, median, high = (quantiles[p] for p in (0.01, 0.5, 0.99))
            cells = [with_interval(metric, value) for value in (median, low, high)]
            rows.append([one.variant.title, metric.title, metric.unit if metric.unit[0] in "rt" else "", *cells])
    return rows


def with_interval(metric: Metric, found: Quantile) -> str:
    """A quantile and its interval; a bound that too few runs leave open is written as dots."""
    low = "…" if found.low is None else number(metric, found.low)
    high = "…" if found.high is None else number(metric, found.high)
    return f"{number(metric, found.value)} ({low} to {high})"


def contrast_rows(found: Sequence[Contrast]) -> list[list[str]]:
    """A line for each pair of variants and metric."""
    rows = []
    for one in found:
        title = f"{one.second.title} − {one.first.title}"
        rows.append([title, "true verdicts", points(one.passed)])
        for name in CONTRASTED:
            if name in one.metrics:
                metric = METRICS[name]
                rows.append([title, metric.title, signed(metric, one.metrics[name])])
    return rows


def signed(metric: Metric, found: PairedDifference) -> str:
    """A difference of a metric with its interval, in the unit in which people read the metric."""
    if metric.unit == "bit/s":
        return _interval(found, 1e-6, " Mb/s")
    return points(found) if metric.unit.startswith("share") else plain(found)


def points(found: PairedDifference) -> str:
    """A difference of shares, in percentage points."""
    return _interval(found, 100, " points")


def plain(found: PairedDifference) -> str:
    """A difference of numbers."""
    return _interval(found, 1, "")


def _interval(found: PairedDifference, scale: float, unit: str) -> str:
    mean = f"{scale * found.mean:+.2f}{unit}"
    if found.low is None or found.high is None:
        return f"{mean} ({found.pairs} pairs: at least {PAIRS_MIN} are needed for an interval)"
    return f"{mean} ({scale * found.low:+.2f} to {scale * found.high:+.2f}), {found.pairs} pairs"
