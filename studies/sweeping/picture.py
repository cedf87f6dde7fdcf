"""ECDFs of a sweep's metrics, one chart a metric, with the band in which the true distribution lies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judging.reports.plots import GRID, INK, RUNS, figure, in_legend, svg
from studies.sweeping.metric import Metric
from studies.sweeping.quantile import band
from studies.sweeping.statement import VariantStatement

SPREAD = 20.0  # values this much farther apart than the smallest are drawn on a logarithmic axis


def ecdf(metric: Metric, found: Sequence[VariantStatement]) -> str | None:
    """The share of runs at or below each value. None for a metric that no run has."""
    drawing, axes = figure(3.2)
    curves = [(one.variant.title, sorted(one.values(metric.name).values())) for one in found]
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
    """What stands at the axis."""
    if metric.unit.startswith("share"):
        return f"{metric.title}, % {metric.unit.removeprefix('share ')}"
    return f"{metric.title}, {'Mb/s' if metric.unit == 'bit/s' else metric.unit}"
