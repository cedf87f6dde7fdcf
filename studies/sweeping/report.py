"""The files of a sweep: `sweep.html` to look at, `rows.csv` and `sweep.json` for programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from common import csv_text as csv
from common import files
from judging.reports import page
from judging.reports.plots import GRID, INK, RUNS, figure, in_legend, svg
from studies.sweeping import text
from studies.sweeping.metric import METRICS, Metric
from studies.sweeping.proportion import Share
from studies.sweeping.quantile import band
from studies.sweeping.statement import VariantStatement, contrasts, document, table

__all__ = ["write"]


# ECDFs of a sweep's metrics, one chart a metric, with the band in which the true distribution lies.
SPREAD = 20.0  # values this much farther apart than the smallest are drawn on a logarithmic axis


def ecdf(metric: Metric, statements: Sequence[VariantStatement]) -> str | None:
    """The share of runs at or below each value. None for a metric that no run has."""
    drawing, axes = figure(3.2)
    curves = [(statement.variant.title, sorted(statement.values(metric.name).values())) for statement in statements]
    curves = [(title, values) for title, values in curves if values]
    if not curves:
        return None
    scale = 100.0 if metric.unit.startswith("share") else 1e-6 if metric.unit == "bit/s" else 1.0
    lowest, highest = (scale * end for end in ends([values for _, values in curves]))
    logarithmic = lowest > 0 and highest / lowest > SPREAD
    margin = (highest - lowest) * 0.03 or abs(highest) * 0.01 or 1.0
    left = lowest / 1.2 if logarithmic else lowest - margin
    right = highest * 1.2 if logarithmic else highest + margin
    for index, (title, values) in enumerate(curves):
        n, colour = len(values), RUNS[index % len(RUNS)]
        places = np.concatenate([[left], scale * np.array(values), [right]])
        shares = np.concatenate([[0.0], np.arange(1, n + 1) / n, [1.0]])
        axes.step(places, shares, where="post", color=colour, linewidth=1.5, label=in_legend(f"{title} ({n} runs)"))
        low, high = np.clip(shares - band(n), 0, 1), np.clip(shares + band(n), 0, 1)
        axes.fill_between(places, low, high, step="post", color=colour, alpha=0.13, linewidth=0)
    for share in (0.01, 0.5, 0.99):
        axes.axhline(share, color=GRID, linewidth=0.8)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share of runs", color=INK)
    axes.set_xlabel(unit(metric))
    axes.legend(loc="upper left" if metric.better == "high" else "lower right", fontsize=10)
    return svg(drawing, f"Distribution of {metric.title}")


def ends(columns: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The smallest and the largest of all values."""
    return min(values[0] for values in columns), max(values[-1] for values in columns)


def unit(metric: Metric) -> str:
    """The label of the axis."""
    if metric.unit.startswith("share"):
        return f"{metric.title}, % {metric.unit.removeprefix('share ')}"
    return f"{metric.title}, {'Mb/s' if metric.unit == 'bit/s' else metric.unit}"


EXPLAINED = (
    "Each run is one seed: the seed draws the faults and everything else that chance decides. The interval beside a"
    " share says where the share of all seeds lies, with 95 % confidence (Wilson; where all runs agree, the exact"
    " one-sided bound). An unknown run is never counted as true."
)
BANDED = (
    "Each curve says which share of the runs stayed at or below a value; the band around it holds the curve of all"
    " seeds with 95 % confidence (Dvoretzky, Kiefer, Wolfowitz): ± {band:.1%} for {runs} runs."
)
PAIRED = (
    "Two variants get the same faults from the same seed. The mean difference has a 95 % interval (Student's, over the"
    " pairs)."
)


def write(folder: Path, statements: Sequence[VariantStatement]) -> Path:
    """All files, each replaced at once; the path of the page."""
    files.make_folder(folder)
    files.write(folder / "rows.csv", csv_text(statements))
    files.write_json(folder / "sweep.json", document(statements))
    files.write(folder / "sweep.html", html(statements))
    return folder / "sweep.html"


def csv_text(statements: Sequence[VariantStatement]) -> str:
    """The rows, as `statement.table` has them."""
    return csv.csv_text(*table(statements), as_it_is=("options",))


def html(statements: Sequence[VariantStatement]) -> str:
    """The page."""
    scenarios = list(dict.fromkeys(statement.variant.scenario for statement in statements))
    title = f"{', '.join(scenarios)}: {max((len(statement.rows) for statement in statements), default=0)} seeds"
    most = max((len(statement.rows) for statement in statements), default=0)
    banded = BANDED.format(band=band(most), runs=most) if most else ""
    verdicts = text.verdict_rows(statements)
    parts = [f"<h1>{page.text(title)}</h1>"]
    parts += [page.paragraph(claim, soft=True) for claim in dict.fromkeys(statement.claim for statement in statements)]
    tests = [page.paragraph(f"{s.variant.title}: {s.test.describe()}.") for s in statements if s.test is not None]
    parts.append(
        page.section(
            "How often each verdict", bars(statements), page.table(verdicts[0], verdicts[1:]), *tests,
            *(page.paragraph(line) for line in text.baselines(statements)), page.paragraph(EXPLAINED, soft=True),
        )
    )  # fmt: skip
    if checks := text.check_rows(statements):
        parts.append(page.section("Findings that were not true", page.table(["", "check", "", ""], checks)))
    for scenario in scenarios:
        own = [statement for statement in statements if statement.variant.scenario == scenario]
        charts = [chart for metric in METRICS.values() if (chart := ecdf(metric, own))]
        if charts:
            parts.append(page.section(f"Distributions: {scenario}", *charts))
    parts.append(page.paragraph(banded, soft=True))
    if metrics := text.metric_rows(statements):
        head = ["", "metric", "", "median", "1st percentile", "99th percentile"]
        parts.append(page.section("Metrics over seeds", page.table(head, metrics)))
    if differences := text.contrast_rows(contrasts(statements)):
        rows = page.table(["second − first", "", "mean (95 % interval)"], differences)
        parts.append(page.section("Differences on the same seeds", rows, page.paragraph(PAIRED, soft=True)))
    parts.append(page.section("The worst seeds, and how to repeat them", worst(statements)))
    return page.page(title, *parts)


def worst(statements: Sequence[VariantStatement]) -> str:
    """The runs to look at first, each with its command."""
    rows = []
    for statement in statements:
        for row in statement.worst():
            why = row.error or "; ".join(f"{name}: {reason}" for name, reason in row.reasons.items())
            mark = page.Raw(f'<span class="mark {row.verdict}">{row.verdict}</span>')
            command = page.Raw(f"<code>{page.text(statement.variant.command(row.seed))}</code>")
            rows.append([command, mark, why])
    return page.table(["", "verdict", "why"], rows)


def bars(statements: Sequence[VariantStatement]) -> str:
    """A bar a variant: the share of true runs, and its interval as a line."""
    rows = []
    for index, statement in enumerate(statements):
        y = 22 * index
        rows.append(f'<text x="0" y="{y + 15}" font-size="12">{page.text(statement.variant.title)}</text>')
        rows.append(bar(statement.verdicts, y))
    height = 22 * len(statements) + 4
    label = "Share of true, unknown and false runs, and the interval of the true share"
    return f'<svg role="img" aria-label="{label}" viewBox="0 0 900 {height}">{"".join(rows)}</svg>'


def bar(verdicts: Mapping[str, Share], y: int) -> str:
    """True, unknown and false from left to right."""
    left, parts, width = 320.0, [], 560.0
    for word in ("true", "unknown", "false"):
        own = width * (verdicts[word].value or 0.0)
        parts.append(
            f'<rect x="{left:.1f}" y="{y + 4}" width="{own:.1f}" height="14" fill="var(--{word})" opacity="0.75"/>'
        )
        left += own
    low, high = (320 + width * end for end in (verdicts["true"].low, verdicts["true"].high))
    line = f'<path d="M{low:.1f} {y + 11}H{high:.1f}M{low:.1f} {y + 6}v10M{high:.1f} {y + 6}v10" '
    return "".join(parts) + line + 'stroke="var(--ink)" fill="none" stroke-width="1.5"/>'
