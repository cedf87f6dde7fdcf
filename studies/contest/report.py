"""The files of a contest: `contest.html` to look at, `contest.csv` and `rows.csv` for programs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from common.interpreter import mpl  # before all else of Matplotlib

# isort: split
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from common import csv_text as csv
from common import files
from judging.reports import page
from judging.reports.plots import FAINT, INK, RUNS, STYLE, svg
from judging.reports.report import REPLAY
from studies.contest import text
from studies.contest.result import (
    HEAD,
    MATTERS,
    MATTERS_POINTS,
    MATTERS_ROUND_TRIPS,
    MEASURES,
    Match,
    Result,
    results,
    table,
)
from studies.sweeping import report
from studies.sweeping.metric import Metric
from studies.sweeping.row import Row
from studies.sweeping.statement import VariantStatement

__all__ = ["write"]


IN_A_ROW = 3


def differences(match: Match) -> str | None:
    """One drawing of all metrics. None where no other algorithm shares a seed with the reference."""
    measured = [(metric, match.results(metric)) for metric in MEASURES.values()]
    measured = [(metric, own) for metric, own in measured if any(result.difference for result in own)]
    if not measured:
        return None
    lines = -(-len(measured) // IN_A_ROW)
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(9.2, lines * (1.1 + 0.3 * len(match.algorithms))), layout="constrained")
        grid = drawing.subplots(lines, IN_A_ROW, squeeze=False)
        charts = [axes for line in grid for axes in line]
        for axes, (metric, own) in zip(charts, measured, strict=False):
            _chart(axes, match, metric, own)
        for axes in charts[len(measured) :]:
            axes.set_visible(False)
    return svg(drawing, f"Differences to {match.reference} in {match.scenario}")


def _chart(axes: Axes, match: Match, metric: Metric, results: list[Result]) -> None:
    shares, rates = metric.unit.startswith("share"), metric.unit == "bit/s"
    scale = 100.0 if shares else 1e-6 if rates else 1.0
    unit = "points" if shares else "Mb/s" if rates else metric.unit
    axes.axvline(0.0, color=INK, linewidth=1.0)
    for result in results:
        place, gap = match.algorithms.index(result.algorithm), result.difference
        colour = RUNS[place % len(RUNS)]
        if gap is None:
            axes.plot([0.0], [place], marker="o", markersize=5, color=INK)
            continue
        axes.plot([scale * gap.mean], [place], marker="o", markersize=5, color=colour)
        if gap.low is not None and gap.high is not None:
            axes.plot([scale * gap.low, scale * gap.high], [place, place], color=colour, linewidth=2)
    axes.set_yticks(range(len(match.algorithms)), match.algorithms, fontsize=9)
    axes.set_ylim(len(match.algorithms) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_title(metric.title, fontsize=10, color=INK, loc="left")
    better = "right" if metric.better == "high" else "left"
    axes.set_xlabel(f"{unit}; better to the {better}", fontsize=9, color=INK)
    axes.spines["left"].set_color(FAINT)


Kept = Callable[[VariantStatement, Row], Path | None]
"""The folder of the kept run of a row, if there is one."""

EXPLAINED = (
    "Every algorithm gets the same seeds, and a seed draws the same faults for all. A difference is the mean over"
    " seeds of the algorithm minus the reference, with its 95 % interval (Student's, over the pairs). Each"
    " interval holds by itself: of twenty, one is wrong on average. “Better” and “worse” hold together with 95 %"
    " confidence (Holm's correction for all differences of the contest), and are “slightly” below the smallest"
    f" difference that matters: {MATTERS:.0%} of the reference's rate or of a multiple, {100 * MATTERS_POINTS:g} point"
    f" of a share, {MATTERS_ROUND_TRIPS:g} round trip. “Alike”: the interval lies within that. Goodput leads. Verdicts"
    " are claims about MRC and have no rank. The other metrics are relative to the algorithm's own runs without faults."
)
RANKED = (
    "A rank is that of the mean. The ranks in brackets are those that the seeds leave possible: an algorithm is ranked"
    " behind another only where their paired difference is clear and matters. All ranks of one metric hold together"
    " with 95 % confidence. A wide range means that more seeds are needed, or that the algorithms are equally good."
)
LEFT_OUT = "{count} runs were broken off. They count as not true, and are missing from the other metrics. The first: "


def write(folder: Path, matches: Sequence[Match], kept: Kept) -> Path:
    """All files, each replaced at once; the path of the page."""
    files.make_folder(folder)
    files.write(
        folder / "rows.csv", report.csv_text([statement for match in matches for statement in match.statements])
    )
    files.write(folder / "contest.csv", csv_text(matches))
    files.write(folder / "contest.html", html(folder, matches, kept))
    return folder / "contest.html"


def csv_text(matches: Sequence[Match]) -> str:
    """The results, as `result.table` has them."""
    return csv.csv_text(HEAD, table(matches))


def html(folder: Path, matches: Sequence[Match], kept: Kept) -> str:
    """The page; links to kept runs are relative to `folder`."""
    seeds = max((len(statement.rows) for match in matches for statement in match.statements), default=0)
    title = f"Contest: {', '.join(matches[0].algorithms)}"
    enough = text.seeds_enough(len(matches[0].algorithms), seeds)
    reference = page.paragraph(f"{enough}; the reference is {matches[0].reference}.")
    in_all = results(matches)
    parts = [f"<h1>{page.text(title)}</h1>", reference, page.paragraph(EXPLAINED, soft=True)]
    parts.append(page.paragraph(RANKED, soft=True))
    for match in matches:
        claim = page.paragraph(match.statements[0].claim, soft=True)
        rows = page.table(text.head(match), text.rows(match, in_all))
        why = page.paragraph(why) if (why := text.not_ranked(match)) else None
        parts.append(page.section(match.scenario, claim, differences(match), rows, why, broken_off(match)))
    parts.append(page.section("The worst seed of each", worst(folder, matches, kept)))
    return page.page(title, *parts)


def broken_off(match: Match) -> str | None:
    """The words about runs that an exception ended."""
    errors = [row for statement in match.statements for row in statement.errors]
    return page.paragraph(LEFT_OUT.format(count=len(errors)) + errors[0].error) if errors else None


def worst(folder: Path, matches: Sequence[Match], kept: Kept) -> str:
    """The run to look at first of each algorithm, with its replay and the command that repeats it."""
    rows = []
    for match in matches:
        for name, statement in zip(match.algorithms, match.statements, strict=True):
            for row in statement.worst()[:1]:
                mark = page.Raw(f'<span class="mark {row.verdict}">{row.verdict}</span>')
                command = page.Raw(f"<code>{page.text(statement.variant.command(row.seed))}</code>")
                links = page.Raw("".join(_links(folder, kept(statement, row))))
                rows.append([match.scenario, name, f"seed {row.seed}", mark, links, text.why(row), command])
    return page.table(["scenario", "algorithm", "seed", "verdict", "kept", "why", "again"], rows)


def _links(folder: Path, run: Path | None) -> list[str]:
    paths = [run / name for name in (REPLAY, "report.html") if (run / name).exists()] if run is not None else []
    return [f'<a href="{page.text(path.relative_to(folder).as_posix())}">{path.stem}</a> ' for path in paths]
