"""The pictures of a report, as SVG text. Matplotlib draws them; nothing here touches a display or global state."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from common.interpreter import mpl  # before all else of Matplotlib

# isort: split
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter

from judging import jobs
from judging.measures import goodput, paths, planes, recovery, stalls, steps
from judging.run import FaultSpan, Run, Span

__all__ = ["FAINT", "GRID", "INK", "RUNS", "STYLE", "figure", "in_legend", "svg"]

INK = "#1f2933"
FAINT = "#9aa5b1"
GRID = "#e4e7eb"
BINS_DRAWN = 20_000  # more than a chart has pixels
FAULT = "#f7c9c4"
BAD = "#c0392b"
DENIED = "#7b8794"
STALL = "#52606d"
HEALTHY = "#d8eadf"
PLANES = ("#1f6feb", "#d97706", "#0f9d8a", "#9b3fb5", "#c2410c", "#4d7c0f", "#be185d", "#475569")
RUNS = ("#1f6feb", "#d97706", "#0f9d8a", "#9b3fb5", "#be185d", "#475569")
"""Colours of runs that are drawn together, in order."""
LABEL_SIZE = 10
LABEL_POINTS = 13  # from one row of names to the next
CHARACTERS = 105  # of LABEL_SIZE fit side by side over a chart
NAMED_STRIPS = 64  # more paths than this are drawn without a name and a gap each

STYLE: Any = {  # Any: matplotlib's own type for it differs from version to version
    "svg.fonttype": "none",  # text stays text: searchable, and in the reader's own font
    "svg.hashsalt": "mrclab",  # the same run gives the same file
    "font.family": "sans-serif",
    "font.size": 11,  # to be read from the last row
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}
"""Matplotlib's settings for every picture."""


ROWS_MAX = 3


@dataclass(frozen=True, slots=True)
class ChartLabel:
    """A name at its time. `row` counts from the chart upwards; None: there was no room left for it."""

    at: float
    text: str
    row: int | None


def placed(names: Sequence[tuple[float, str]], end: float, characters: float, rows: int = ROWS_MAX) -> list[ChartLabel]:
    """Each name in the lowest row where it has room. The whole chart, 0 to `end`, is `characters` wide.

    A name begins at its time; one that would reach beyond the end is moved to the left.
    """
    free = [0.0] * rows
    labels = []
    for at, text in sorted(names):
        width = (len(text) + 1) * end / characters
        start = max(0.0, min(at, end - width))
        row = next((row for row in range(rows) if free[row] <= start + 1e-9), None)
        if row is not None:
            free[row] = start + width
        labels.append(ChartLabel(start, text, row))
    return labels


def figure(height: float, columns: int = 1) -> tuple[Figure, Any]:
    """A chart, or several side by side, as wide as the report's column; `height` in inches."""
    with mpl.rc_context(STYLE):
        drawing = Figure(figsize=(9.2, height), layout="constrained")
        return drawing, drawing.subplots(1, columns)


def svg(drawing: Figure, label: str) -> str:
    """The drawing as an inline `<svg>` with a text alternative, its ids made unique to `label`."""
    _without_formulas(drawing)
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        # `savefig` would draw it twice
        FigureCanvasSVG(drawing).print_svg(buffer, metadata={"Date": None})  # type: ignore[no-untyped-call]
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    slug = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    text = re.sub(r'\bid="', f'id="{slug}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{slug}-", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def in_legend(name: str) -> str:
    """A name as the label of a curve. Matplotlib leaves labels that begin with `_` out of legends; behind a space of no
    width, a name is never one of them."""
    return f"\N{ZERO WIDTH SPACE}{name}" if name.startswith("_") else name


def _without_formulas(drawing: Figure) -> None:
    """Take every text as it is: names that users chose may hold `$`, which would begin a formula, or break the drawing.
    Only the numbers that Matplotlib writes at an axis stay formulas: powers of ten, on a logarithmic one."""
    for text in drawing.findobj(Text):
        text.set_parse_math(False)
    for axis in (axis for axes in drawing.axes for axis in (axes.xaxis, axes.yaxis)):
        if isinstance(axis.get_major_formatter(), LogFormatter):
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                tick.label1.set_parse_math(True)


def mark_faults(axes: Axes, run: Run) -> None:
    """Shade the time of each fault."""
    for fault in run.faults:
        start = run.place(fault.start_ns)
        stop = run.place(fault.stop_ns if fault.stop_ns is not None else run.end_ns)
        axes.axvspan(start, stop, color=FAULT, alpha=0.7, linewidth=0)
        axes.axvline(start, color=BAD, linewidth=0.8)


def mark_stalls(axes: Axes, run: Run) -> None:
    """A grey bar for each stall, at least a hair wide: the machine causes what happens there."""
    for stall in stalls.stalls(run):
        start, stop = run.place(stall.start_ns), run.place(stall.stop_ns)
        axes.axvspan(start, stop, facecolor=STALL, alpha=0.55, edgecolor=STALL, linewidth=0.6, zorder=1.5)


def mark_phases(axes: Axes, run: Run) -> None:
    """A dotted line where each phase begins."""
    for span in run.phases.values():
        axes.axvline(run.place(span.start_ns), color=FAINT, linewidth=0.8, linestyle=":")


def name_times(axes: Axes, run: Run) -> None:
    """Above the chart the names of phases, and above those the faults, each burst by its first one."""
    end = run.place(run.judged.stop_ns) or 1
    phases = placed([(run.place(span.start_ns), span.name) for span in run.phases.values()], end, CHARACTERS, rows=1)
    bursts = recovery.bursts(run.faults, run.judged.length_ns // 50)  # nearer than that is one place on the chart
    faults = placed([(run.place(burst[0].start_ns), burst_title(burst)) for burst in bursts], end, CHARACTERS)
    lowest = 1 if any(label.row is not None for label in phases) else 0
    for labels, base, colour in ((phases, 0, FAINT), (faults, lowest, BAD)):
        for label in labels:
            if label.row is not None:
                above = LABEL_POINTS * (base + label.row)
                axes.annotate(
                    label.text, (label.at, 1.0), (0, 3 + above), xycoords=("data", "axes fraction"),
                    textcoords="offset points", fontsize=LABEL_SIZE, color=colour, annotation_clip=False,
                )  # fmt: skip


def burst_title(burst: Sequence[FaultSpan]) -> str:
    """The first fault of a burst, and how many more."""
    more = len(burst) - 1
    return f"{burst[0].verb} {burst[0].target}" + (f" +{more}" if more else "")


def finish(axes: Axes, run: Run, unit: str) -> None:
    """Give a chart over time what all of them have: the run from edge to edge, zero at the bottom, room at the top."""
    axes.set_xlim(0, run.place(run.judged.stop_ns) or 1)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.1)
    axes.set_xlabel(run.unit_name)
    axes.set_ylabel(unit)
    name_times(axes, run)


def overlaid(runs: Sequence[tuple[str, Run]], height: float) -> tuple[Figure, Axes]:
    """A drawing for several runs: the first one's faults and phases, the stalls of all."""
    drawing, axes = figure(height)
    mark_faults(axes, runs[0][1])
    mark_phases(axes, runs[0][1])
    for _, run in runs:
        mark_stalls(axes, run)
    return drawing, axes


def drawable(span: Span, bin_ns: int) -> int:
    """The length of a bin of which a chart can show all of a span's."""
    return max(bin_ns, span.length_ns // BINS_DRAWN, 1)


def goodput_over_time(runs: Sequence[tuple[str, Run]]) -> str:
    """Goodput of all hosts together; several runs are overlaid, the first one's faults are marked.

    The means of bins of round trips are drawn, thinly where jobs train: there those of a step are the bold line.
    """
    drawing, axes = overlaid(runs, 3.5)
    for index, (name, run) in enumerate(runs):
        bin_ns, step_ns = recovery.bin_ns(run), recovery.window_ns(run)
        every_ns = drawable(run.judged, bin_ns // 4)
        for window_ns in dict.fromkeys((bin_ns, step_ns)):
            times, rates = goodput.sliding(run, max(window_ns, every_ns), every_ns, run.judged)
            bold = {"linewidth": 1.4, "label": in_legend(name)}
            style = bold if window_ns == step_ns else {"linewidth": 0.5, "alpha": 0.4}
            at, heights = (times - run.start_ns) / run.unit[1], rates / run.rate_unit[1]
            axes.plot(at, heights, color=RUNS[index % len(RUNS)], **style)
    finish(axes, runs[0][1], f"goodput, {runs[0][1].rate_unit[0]}")
    if len(runs) > 1:
        axes.legend(loc="lower right")
    return svg(drawing, "Goodput over time " + " ".join(name for name, _ in runs))


def step_times(runs: Sequence[tuple[str, Run]]) -> str | None:
    """Every training step as a dot: when it ended, how long it took."""
    if not any(steps.steps(run) for _, run in runs):
        return None
    drawing, axes = overlaid(runs, 3.2)
    for index, (name, run) in enumerate(runs):
        all_steps = steps.steps(run)
        ends = [run.place(step.end_ns) for step in all_steps]
        lengths = [step.total_ns / (1_000_000 if run.unit[0] == "s" else run.unit[1]) for step in all_steps]
        axes.plot(ends, lengths, ".", markersize=4, color=RUNS[index % len(RUNS)], label=in_legend(name))
    unit = runs[0][1].unit[0]
    finish(axes, runs[0][1], f"step time, {'ms' if unit == 's' else unit}")
    if len(runs) > 1:
        axes.legend(loc="upper right")
    return svg(drawing, "Training step times " + " ".join(name for name, _ in runs))


def loss_curves(run: Run) -> str | None:
    """The loss of every job after each of its steps. A job that died ends early; equal curves lie on each other."""
    curves = jobs.losses(run)
    if not curves:
        return None
    drawing, axes = figure(2.4)
    for index, (name, points) in enumerate(curves.items()):
        numbers, values = zip(*points, strict=True)
        style = "-" if index == 0 else "o"
        axes.plot(
            numbers, values, style, markersize=3, color=RUNS[index % len(RUNS)], linewidth=1.4, label=in_legend(name)
        )
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend(loc="upper right")
    return svg(drawing, "Loss of " + " and ".join(curves))


def plane_load(run: Run) -> str:
    """The rate at which hosts sent on each plane, over time: means of training steps, or of bins of round trips."""
    span = run.judged
    drawing, axes = figure(3.0)
    mark_faults(axes, run)
    mark_stalls(axes, run)
    every_ns = drawable(span, recovery.bin_ns(run) // 4)
    window_ns = min(max(recovery.window_ns(run), every_ns), span.length_ns)
    times = np.arange(span.start_ns + window_ns, span.stop_ns + 1, every_ns, dtype=float)
    before = planes.curves(run, times - window_ns)
    for plane, sent in planes.curves(run, times).items():
        rates = (sent - before[plane]) * 8e9 / (window_ns or 1) / run.rate_unit[1]
        at = (times - run.start_ns) / run.unit[1]
        axes.plot(at, rates, color=PLANES[plane % len(PLANES)], linewidth=1.2, label=f"plane {plane}")
    finish(axes, run, f"sent, {run.rate_unit[0]}")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", ncols=8, fontsize=10)
    return svg(drawing, "Load on each plane")


def path_health(run: Run) -> str | None:
    """A strip for every path of the fabric: green while all senders use it, the redder the more have given it up."""
    strips = sorted(paths.strips(run).items(), key=lambda item: (item[0][0], natural(item[0][1])))
    if not strips or run.options.get("single_plane"):
        return None
    named = len(strips) <= NAMED_STRIPS
    drawing, axes = figure(0.7 + (0.16 * len(strips) if named else 5.0))
    most = max((level.bad + level.denied for _, spans in strips for level in spans), default=1)
    shapes, colours = [], []
    ticks: dict[float, str] = {}
    for row, ((plane, via), spans) in enumerate(strips):
        if named:
            ticks[row + 0.5] = via if via.startswith("p") else f"p{plane} {via}"
        elif f"plane {plane}" not in ticks.values():
            ticks[row] = f"plane {plane}"
        low, high = (row + 0.08, row + 0.92) if named else (row, row + 1)
        for level in spans:
            left, right = run.place(level.start_ns), run.place(level.stop_ns)
            shapes.append([(left, low), (right, low), (right, high), (left, high)])
            share = 0.3 + 0.7 * (level.bad + level.denied) / most
            colours.append(to_rgba(BAD if level.bad else DENIED, share))
        axes.axhspan(low, high, color=HEALTHY, linewidth=0)
    axes.add_collection(PolyCollection(shapes, facecolors=colours, edgecolors="none", zorder=2))
    for fault in run.faults:
        axes.axvline(run.place(fault.start_ns), color=BAD, linewidth=0.8)
    mark_stalls(axes, run)
    axes.set_xlim(0, run.place(run.judged.stop_ns) or 1)
    axes.set_ylim(len(strips), 0)
    axes.set_yticks(list(ticks), list(ticks.values()), fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(run.unit_name)
    axes.grid(False)
    return svg(drawing, "Path health")


def natural(name: str) -> list[int | str]:
    """Sorts p0s2 before p0s10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
