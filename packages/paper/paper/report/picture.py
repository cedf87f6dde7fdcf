"""A figure drawn: our curves as lines, the paper's points over them, in the paper's axes."""

from collections.abc import Iterator, Sequence

from judging.reports.plots import RUNS, figure, in_legend, svg
from paper.figure import Chart, Points
from paper.outcome import Outcome

SPREAD = 20.0  # values this much farther apart than the smallest are drawn on a logarithmic axis


def draw(outcome: Outcome, chart: Chart, number: int = 0) -> str | None:
    """The chart as SVG; None while none of its runs has been made."""
    curves: list[tuple[str, Points]] = [(label, outcome.curve(name)) for name, label in chart.ours.items()]
    curves += [(label, list(made_points(outcome, points))) for label, points in chart.points.items()]
    curves = [(label, points) for label, points in curves if points]
    if not curves:
        return None
    drawing, axes = figure(3.6)
    labels = list(dict.fromkeys([*chart.ours.values(), *chart.points, *(curve.label for curve in chart.paper)]))
    colours = {label: RUNS[index % len(RUNS)] for index, label in enumerate(labels)}
    named: set[str] = set()  # several curves may share a label, which the legend has once
    for label, points in curves:
        style = "o-" if label in chart.points else "-"
        x, y = zip(*points, strict=True)
        legend = "_" if label in named else in_legend(f"{label}, here")
        axes.plot(x, y, style, markersize=3.5, linewidth=1.5, color=colours[label], label=legend)
        named.add(label)
    for curve in chart.paper:
        x, y = zip(*curve.points, strict=True)
        colour = colours[curve.label] if curve.label in named else "#1f2933"
        axes.plot(
            x, y, "D", markersize=6, markerfacecolor="none", markeredgewidth=1.4, color=colour,
            label=in_legend(f"{curve.label}, paper"), clip_on=False,
        )  # fmt: skip
    if chart.logarithmic:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda value, place: f"{value:,g}")
    low, high = ends([points for _, points in curves] + [curve.points for curve in chart.paper])
    if chart.logarithmic and low > 0 and high / low > SPREAD:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, place: f"{value:,g}")
    else:
        axes.set_ylim(0, axes.get_ylim()[1] * 1.08)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    if chart.title:
        axes.set_title(chart.title, loc="left", fontsize=11)
    # Above the axes, where a legend covers no point.
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=9, ncols=4 if len(labels) < 3 else 3)
    return svg(drawing, f"Figure {outcome.figure.name} chart {number}")


def ends(curves: Sequence[Points]) -> tuple[float, float]:
    """The lowest and the highest of all values."""
    values = [y for points in curves for _, y in points]
    return min(values), max(values)


def made_points(outcome: Outcome, points: Sequence[tuple[float, str]]) -> Iterator[tuple[float, float]]:
    """The points whose runs have been made."""
    for x, name in points:
        value = outcome.number(name)
        if value is not None:
            yield x, value
