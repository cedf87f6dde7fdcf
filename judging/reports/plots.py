"""The charts of a report over a run, as SVG text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from judging import jobs
from judging.arrays import np
from judging.measures import goodput, paths, planes, recovery, stalls, steps
from judging.reports.chart import FAINT, Axis, Chart, svg
from judging.reports.labels import placed
from judging.run import SECOND_NS, FaultSpan, Run, Span

FAULT = "#f7c9c4"
BAD = "#c0392b"
DENIED = "#7b8794"
STALL = "#52606d"
HEALTHY = "#d8eadf"
PLANES = ("#1f6feb", "#d97706", "#0f9d8a", "#9b3fb5", "#c2410c", "#4d7c0f", "#be185d", "#475569")
RUNS = ("#1f6feb", "#d97706", "#0f9d8a", "#9b3fb5", "#be185d", "#475569")
CHARACTERS = 105  # of the names above a chart fit side by side
NAMED_STRIPS = 64  # more paths than this are drawn without a name and a gap each
STRIP_HEIGHT, STRIPS_HEIGHT = 11.5, 360.0  # of a path with a name, and of all paths where they have none
AXIS_HEIGHT = 50.0


def mark_faults(chart: Chart, run: Run) -> None:
    """Shade the time of each fault."""
    for fault in run.faults:
        start = run.place(fault.start_ns)
        stop = run.place(fault.stop_ns if fault.stop_ns is not None else run.end_ns)
        chart.band(start, stop, FAULT, 0.7, edge=BAD)


def mark_stalls(chart: Chart, run: Run) -> None:
    """A grey bar for each stall, at least a hair wide: the machine causes what happens there."""
    for stall in stalls.stalls(run):
        chart.band(run.place(stall.start_ns), run.place(stall.stop_ns), STALL, 0.55, hair=0.6)


def mark_phases(chart: Chart, run: Run) -> None:
    """A dotted line where each phase begins."""
    for span in run.phases.values():
        chart.upright(run.place(span.start_ns), FAINT, dashes="1 2")


def name_times(chart: Chart, run: Run) -> None:
    """Above the chart the names of phases, and above those the faults, each burst by its first one."""
    end = run.place(whole(run).stop_ns) or 1
    phases = placed([(run.place(span.start_ns), span.name) for span in run.phases.values()], end, CHARACTERS, rows=1)
    bursts = recovery.bursts(run.faults, whole(run).length_ns // 50)  # nearer than that is one place on the chart
    faults = placed([(run.place(burst[0].start_ns), burst_title(burst)) for burst in bursts], end, CHARACTERS)
    lowest = 1 if any(label.row is not None for label in phases) else 0
    for labels, base, colour in ((phases, 0, FAINT), (faults, lowest, BAD)):
        for label in labels:
            if label.row is not None:
                chart.name_above(label.at, label.text, base + label.row, colour)


def burst_title(burst: Sequence[FaultSpan]) -> str:
    """The first fault of a burst, and how many more."""
    more = len(burst) - 1
    return f"{burst[0].verb} {burst[0].target}" + (f" +{more}" if more else "")


def over_time(run: Run, height: float, unit: str) -> Chart:
    """An empty chart: the run from edge to edge, zero at the bottom, room at the top."""
    across = Axis(run.unit_name, 0.0, run.place(whole(run).stop_ns) or 1)
    return Chart(height, across, Axis(unit, 0.0, margin=0.1))


def whole(run: Run) -> Span:
    """From the first phase to the end of the last."""
    ends = [span.stop_ns for span in run.phases.values()]
    return Span("run", run.start_ns, max(ends, default=run.end_ns))


def overlaid(runs: Sequence[tuple[str, Run]], height: float, unit: str) -> Chart:
    """A chart for several runs: the first one's faults and phases with their names, the stalls of all."""
    chart = over_time(runs[0][1], height, unit)
    mark_faults(chart, runs[0][1])
    mark_phases(chart, runs[0][1])
    name_times(chart, runs[0][1])
    for _, run in runs:
        mark_stalls(chart, run)
    return chart


def goodput_over_time(runs: Sequence[tuple[str, Run]], bin_ns: int) -> str:
    """Goodput of all hosts together; several runs are overlaid, the first one's faults are marked."""
    chart = overlaid(runs, 250, f"goodput, {runs[0][1].rate_unit[0]}")
    for index, (name, run) in enumerate(runs):
        centres, rates = goodput.series(run, bin_ns, whole(run))
        centres *= SECOND_NS / run.unit[1]
        chart.line(centres.tolist(), (rates / run.rate_unit[1]).tolist(), RUNS[index % len(RUNS)], name=name)
    return svg("Goodput over time " + " ".join(name for name, _ in runs), chart)


def step_times(runs: Sequence[tuple[str, Run]]) -> str | None:
    """Every training step as a dot: when it ended, how long it took."""
    if not any(steps.steps(run) for _, run in runs):
        return None
    unit = runs[0][1].unit[0]
    chart = overlaid(runs, 230, f"step time, {'ms' if unit == 's' else unit}")
    chart.legend = "upper"
    for index, (name, run) in enumerate(runs):
        all_steps = steps.steps(run)
        ends = [run.place(step.end_ns) for step in all_steps]
        lengths = [step.total_ns / (1_000_000 if run.unit[0] == "s" else run.unit[1]) for step in all_steps]
        chart.dots(ends, lengths, RUNS[index % len(RUNS)], name=name)
    return svg("Training step times " + " ".join(name for name, _ in runs), chart)


def loss_curves(run: Run) -> str | None:
    """The loss of every job after each of its steps. A job that died ends early; equal curves lie on each other."""
    found = jobs.losses(run)
    if not found:
        return None
    chart = Chart(173, Axis("step"), Axis("loss"), legend="upper")
    for index, (name, points) in enumerate(found.items()):
        numbers, values = zip(*points, strict=True)
        draw = chart.dots if index else chart.line
        draw(numbers, values, RUNS[index % len(RUNS)], name=name)
    return svg("Loss of " + " and ".join(found), chart)


def plane_load(run: Run, bin_ns: int) -> str:
    """The rate at which hosts sent on each plane, over time."""
    span = whole(run)
    chart = over_time(run, 216, f"sent, {run.rate_unit[0]}")
    mark_faults(chart, run)
    mark_stalls(chart, run)
    name_times(chart, run)
    edges = span.start_ns + bin_ns * np.arange(max(1, span.length_ns // bin_ns) + 1, dtype=float)
    centres = ((edges[:-1] + bin_ns / 2 - run.start_ns) / run.unit[1]).tolist()
    for plane, sent in planes.curves(run, edges).items():
        rates = np.diff(sent) * 8e9 / bin_ns / run.rate_unit[1]
        chart.line(centres, rates.tolist(), PLANES[plane % len(PLANES)], name=f"plane {plane}", width=1.2)
    return svg("Load on each plane", chart)


def path_health(run: Run) -> str | None:
    """A strip for every path of the fabric: green while all senders use it, the redder the more have given it up."""
    strips = sorted(paths.strips(run).items(), key=lambda item: (item[0][0], natural(item[0][1])))
    if not strips or run.options.get("single_plane"):
        return None
    named = len(strips) <= NAMED_STRIPS
    most = max((level.bad + level.denied for _, spans in strips for level in spans), default=1)
    end = run.place(whole(run).stop_ns) or 1
    ticks: dict[float, str] = {}
    boxes: dict[tuple[str, float], list[tuple[float, float, float, float]]] = {}
    healthy: list[tuple[float, float, float, float]] = []
    for row, ((plane, via), spans) in enumerate(strips):
        if named:
            ticks[row + 0.5] = via if via.startswith("p") else f"p{plane} {via}"
        elif f"plane {plane}" not in ticks.values():
            ticks[row] = f"plane {plane}"
        low, high = (row + 0.08, row + 0.92) if named else (row, row + 1)
        healthy.append((0.0, end, low, high))
        for level in spans:
            shade = BAD if level.bad else DENIED, 0.3 + 0.7 * (level.bad + level.denied) / most
            boxes.setdefault(shade, []).append((run.place(level.start_ns), run.place(level.stop_ns), low, high))
    height = AXIS_HEIGHT + (STRIP_HEIGHT * len(strips) if named else STRIPS_HEIGHT)
    down = Axis(low=0, high=len(strips), ticks=list(ticks.items()), downwards=True)
    chart = Chart(height, Axis(run.unit_name, 0.0, end), down, grid=False)
    chart.boxes(healthy, HEALTHY)
    for (colour, opacity), where in boxes.items():
        chart.boxes(where, colour, opacity)
    for fault in run.faults:
        chart.upright(run.place(fault.start_ns), BAD)
    mark_stalls(chart, run)
    return svg("Path health", chart)


def natural(name: str) -> list[int | str]:
    """Sorts p0s2 before p0s10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
