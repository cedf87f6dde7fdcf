"""A sweep's statements for a terminal."""

from collections.abc import Sequence

from judging.reports.report import columns, rerouted
from running.options import OPTIONS
from running.transport_choice import TRANSPORTS
from studies.sweeping.metric import METRICS, Metric
from studies.sweeping.paired import PAIRS_MIN, PairedDifference
from studies.sweeping.quantile import Quantile
from studies.sweeping.statement import Contrast, VariantStatement, contrasts, number

__all__ = ["summary"]

CONTRASTED = ("goodput_kept", "p99_step", "fault_cost")


def summary(statements: Sequence[VariantStatement]) -> str:
    """Verdicts, checks that were not true, metrics, differences and the seeds to look at."""
    lines = [*columns(verdict_rows(statements)), "", *(f"  {line}" for line in baselines(statements))]
    lines += [f"  {s.variant.title}: {s.test.describe()}" for s in statements if s.test is not None]
    for title, rows in (
        ("findings that were not true (runs)", check_rows(statements)),
        ("metrics over seeds (median, 1st and 99th percentile, each with its 95 % interval)", metric_rows(statements)),
        ("second − first on the same seeds (mean, 95 % interval)", contrast_rows(contrasts(statements))),
    ):
        if rows:
            lines += ["", title, *columns(rows)]
    worst = [(statement, row) for statement in statements for row in statement.worst() if not row.passed]
    if worst:
        lines += ["", "runs to look at"]
        for statement, row in worst:
            why = row.error or "; ".join(f"{name}: {reason}" for name, reason in row.reasons.items())
            lines += [f"  {statement.variant.command(row.seed)}", f"      {row.verdict}: {why}"]
    return "\n".join(lines) + "\n"


def verdict_rows(statements: Sequence[VariantStatement]) -> list[list[str]]:
    """A line a variant, under a head."""
    rows = [["", "runs", "true", "false", "unknown"]]
    for statement in statements:
        shares = [statement.verdicts[word] for word in ("true", "false", "unknown")]
        cells = [f"{share.count}: {share.describe()}" for share in shares]
        rows.append([statement.variant.title, str(len(statement.rows)), *cells])
    return rows


def baselines(statements: Sequence[VariantStatement]) -> list[str]:
    """A sentence for each transport that ran on a single plane: the fabric that it had."""
    after_s = {
        statement.variant.transport: dict(statement.variant.others).get("reconvergence", OPTIONS["reconvergence"].usual)
        for statement in statements
        if statement.variant.transport in TRANSPORTS and TRANSPORTS[statement.variant.transport].single_plane
    }
    return [f"{name}: one plane at the sum of the rates, routes that {rerouted(s)}" for name, s in after_s.items()]


def check_rows(statements: Sequence[VariantStatement]) -> list[list[str]]:
    """A line for each check that was not true somewhere."""
    return [
        [statement.variant.title, name, f"{false} false", f"{unknown} unknown"]
        for statement in statements
        for name, (false, unknown) in statement.checks.items()
    ]


def metric_rows(statements: Sequence[VariantStatement]) -> list[list[str]]:
    """A line for each metric of each variant."""
    rows = []
    for statement in statements:
        for name, quantiles in statement.metrics.items():
            metric = METRICS[name]
            low, median, high = (quantiles[p] for p in (0.01, 0.5, 0.99))
            cells = [with_interval(metric, value) for value in (median, low, high)]
            rows.append([statement.variant.title, metric.title, metric.unit if metric.unit[0] in "rt" else "", *cells])
    return rows


def with_interval(metric: Metric, quantile: Quantile) -> str:
    """A quantile and its interval; a bound that too few runs leave open is written as dots."""
    low = "…" if quantile.low is None else number(metric, quantile.low)
    high = "…" if quantile.high is None else number(metric, quantile.high)
    return f"{number(metric, quantile.value)} ({low} to {high})"


def contrast_rows(contrasts: Sequence[Contrast]) -> list[list[str]]:
    """A line for each pair of variants and metric."""
    rows = []
    for contrast in contrasts:
        title = f"{contrast.second.title} − {contrast.first.title}"
        rows.append([title, "true verdicts", points(contrast.passed)])
        for name in CONTRASTED:
            if name in contrast.metrics:
                metric = METRICS[name]
                rows.append([title, metric.title, signed(metric, contrast.metrics[name])])
    return rows


def signed(metric: Metric, difference: PairedDifference) -> str:
    """A difference of a metric with its interval, in the unit in which people read the metric."""
    if metric.unit == "bit/s":
        return _interval(difference, 1e-6, " Mb/s")
    return points(difference) if metric.unit.startswith("share") else plain(difference)


def points(difference: PairedDifference) -> str:
    """A difference of shares, in percentage points."""
    return _interval(difference, 100, " points")


def plain(difference: PairedDifference) -> str:
    """A difference of numbers."""
    return _interval(difference, 1, "")


def _interval(difference: PairedDifference, scale: float, unit: str) -> str:
    mean = f"{scale * difference.mean:+.2f}{unit}"
    if difference.low is None or difference.high is None:
        return f"{mean} ({difference.pairs} pairs: at least {PAIRS_MIN} are needed for an interval)"
    return f"{mean} ({scale * difference.low:+.2f} to {scale * difference.high:+.2f}), {difference.pairs} pairs"
