"""Two runs of a scenario side by side: the same charts overlaid, the same numbers in two columns."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.judging import counters, goodput, page, plots, recovery, report, steps
from scenarios.judging.run import Run


def names(runs: Sequence[Run]) -> list[str]:
    """What tells the runs apart: their transports, or else their seeds."""
    found = [str(run.options.get("transport", "run")) for run in runs]
    if len(set(found)) < len(found):
        found = [f"{name}, seed {run.options.get('seed')}" for name, run in zip(found, runs, strict=True)]
    if len(set(found)) < len(found):
        found = [f"{name} ({index})" for index, name in enumerate(found, start=1)]
    return found


def rows(runs: Sequence[Run]) -> list[list[str]]:
    """A number a row, a run a column."""
    result = []
    for phase in dict.fromkeys(name for run in runs for name in run.phases):
        if phase in ("warmup", "heal"):
            continue
        spans = [run.phases.get(phase) for run in runs]
        rates = [report.rate(goodput.over(run, span)) if span else "–" for run, span in zip(runs, spans, strict=True)]
        result.append([f"goodput, {phase}", *rates])
        times = [
            steps.times(steps.overlapping(steps.steps(run), span)) if span else None
            for run, span in zip(runs, spans, strict=True)
        ]
        if any(times):
            for title, field in (("median", "median_ns"), ("p99", "p99_ns"), ("slowest", "slowest_ns")):
                values = [f"{getattr(time, field) / 1e6:.0f} ms" if time else "–" for time in times]
                result.append([f"step time {title}, {phase}", *values])
    totals = [counters.qp_totals(run) for run in runs]
    for field, title in report.COUNTER_TITLES.items():
        result.append([title, *(f"{total[field]:,}" for total in totals)])
    errors = [sum(1 for line in run.kind("qp") if str(line.get("new", "")).lower() == "error") for run in runs]
    result.append(["queue pairs that failed", *map(str, errors)])
    return result


def picture(runs: Sequence[Run]) -> str:
    """The goodput chart as an SVG file of its own."""
    bin_ns = max(recovery.bin_ns(run) for run in runs)
    chart = plots.goodput_over_time(list(zip(names(runs), runs, strict=True)), bin_ns)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + chart


def as_json(runs: Sequence[Run]) -> dict[str, dict[str, str]]:
    """Every row, by run."""
    table = rows(runs)
    return {name: {row[0]: row[index] for row in table} for index, name in enumerate(names(runs), start=1)}


def html(runs: Sequence[Run]) -> str:
    titles = names(runs)
    named = list(zip(titles, runs, strict=True))
    bin_ns = max(recovery.bin_ns(run) for run in runs)
    title = " against ".join(titles)
    single = [name for name, run in named if run.options.get("single_plane")]
    note = f"{', '.join(single)} ran on the single-plane equivalent of the plan, without PFC." if single else ""
    return page.page(
        title,
        f"<h1>{page.text(title)}</h1>",
        *(page.paragraph(f"{name}: {report.subtitle(run)}", soft=True) for name, run in named),
        page.paragraph(note, soft=True) if note else "",
        page.section("Goodput", plots.goodput_over_time(named, bin_ns)),
        page.section("Training steps", plots.step_times(named)),
        page.section("In numbers", page.table(["", *titles], rows(runs))),
    )


def summary(runs: Sequence[Run]) -> str:
    table = [["", *names(runs)], *rows(runs)]
    return "\n".join(report.columns(table)) + "\n"
