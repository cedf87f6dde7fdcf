"""The differences of a contest as a picture: a chart per metric, a line per algorithm, zero for the reference."""

from __future__ import annotations

from common.interpreter import mpl  # before all else of Matplotlib

# isort: split
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from judging.reports.plots import FAINT, INK, RUNS, STYLE, svg
from studies.contest.result import MEASURES, Match, Result
from studies.sweeping.metric import Metric

IN_A_ROW = 3


def differences(match: Match) -> str | None:
    """One drawing of all metrics. None where no other algorithm shares a seed with the reference."""
    found = [(metric, match.results(metric)) for metric in MEASURES.values()]
    found = [(metric, results) for metric, results in found if any(one.difference for one in results)]
    if not found:
        return None
    lines = -(-len(found) // IN_A_ROW)
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(9.2, lines * (1.1 + 0.3 * len(match.algorithms))), layout="constrained")
        grid = drawing.subplots(lines, IN_A_ROW, squeeze=False)
        charts = [axes for line in grid for axes in line]
        for axes, (metric, results) in zip(charts, found, strict=False):
            _chart(axes, match, metric, results)
        for axes in charts[len(found) :]:
            axes.set_visible(False)
    return svg(drawing, f"Differences to {match.reference} in {match.scenario}")


def _chart(axes: Axes, match: Match, metric: Metric, results: list[Result]) -> None:
    shares, rates = metric.unit.startswith("share"), metric.unit == "bit/s"
    scale = 100.0 if shares else 1e-6 if rates else 1.0
    unit = "points" if shares else "Mb/s" if rates else metric.unit
    axes.axvline(0.0, color=INK, linewidth=1.0)
    for one in results:
        place, gap = match.algorithms.index(one.algorithm), one.difference
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
