"""Two runs side by side: the findings between them, their charts overlaid, their numbers in columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from common import plain_file
from judging.checks import qp_errors
from judging.measures import counters, flows, goodput, paths, recovery, steps
from judging.reports import contrast, page, plots, report, tables
from judging.reports.figures import figures
from judging.run import Run
from judging.units import brief
from judging.verdict import WORDS, Finding

__all__ = ["as_json", "html", "picture", "summary"]


def names(runs: Sequence[Run]) -> list[str]:
    """A name for each run by what tells the runs apart: the transport, changes of plan or settings, or the seed."""
    found = [str(run.options.get("transport", "run")) for run in runs]
    for key in ("overrides", "settings"):
        if len(set(found)) < len(found):
            found = [
                with_changes(name, run.options.get(key) or {}, runs, key) for name, run in zip(found, runs, strict=True)
            ]
    if len(set(found)) < len(found):
        found = [f"{name}, seed {run.options.get('seed')}" for name, run in zip(found, runs, strict=True)]
    if len(set(found)) < len(found):
        found = [f"{name} ({index})" for index, name in enumerate(found, start=1)]
    return found


def with_changes(name: str, own: dict[str, Any], runs: Sequence[Run], key: str) -> str:
    """The name with those values of the option `key` in which this run differs from another."""
    every = [run.options.get(key) or {} for run in runs]
    changes = [f"{what}={value}" for what, value in own.items() if any(other.get(what) != value for other in every)]
    return f"{name} ({', '.join(changes)})" if changes else name


def verdict_word(run: Run) -> str:
    """The run's own verdict, "–" for a run that was never judged."""
    file = run.directory / "verdict.json" if run.directory else None
    return str(plain_file.read_object(file).get("verdict", "–")) if file and os.path.lexists(file) else "–"


def rows(runs: Sequence[Run]) -> list[list[str]]:
    """A row for each number, a column for each run; the first row has the runs' own verdicts."""
    result: list[list[str]] = []

    def row(title: str, values: Iterable[Any], word: Callable[[Any], str]) -> None:
        """No row where no run has a value."""
        found = list(values)
        if any(value is not None for value in found):
            result.append([title, *("–" if value is None else word(value) for value in found)])

    row("verdict by itself", map(verdict_word, runs), str)
    for phase in dict.fromkeys(name for run in runs for name in run.phases):
        if phase in tables.UNJUDGED:
            continue
        spans = [(run, run.phases.get(phase)) for run in runs]
        row(f"goodput, {phase}", (span and goodput.of_phase(run, span) for run, span in spans), tables.rate)
        times = [span and steps.times(steps.of_phase(steps.steps(run), span)) for run, span in spans]
        for title, field in (("median", "median_ns"), ("p99", "p99_ns"), ("slowest", "slowest_ns")):
            row(f"step time {title}, {phase}", (one and getattr(one, field) for one in times), brief)
        for workload in dict.fromkeys(name for run in runs for name in flows.workloads(run)):
            seen = [span and flows.within(run, span, workload) for run, span in spans]
            title = f"{workload} flows, {phase}"
            row(
                f"{title}: slowest",
                (min(one.rates.values()) if one and one.rates else None for one in seen),
                tables.rate,
            )
            row(f"{title}: longest silence", (one and one.silence_ns for one in seen), brief)
            row(f"{title}: all began after", (one and one.first_ns for one in seen), brief)
    totals = [counters.qp_totals(run) for run in runs]
    for field, title in tables.COUNTER_TITLES.items():
        row(title, (total[field] for total in totals), "{:,}".format)
    abandoned = [(run, *paths.abandoned(run)) for run in runs]
    row("paths abandoned", (count for _, count, _ in abandoned), "{:,}".format)
    row("for so long, all of them together", (run.lasting(for_ns) for run, _, for_ns in abandoned), str)
    drops = [counters.switch_drops(run) for run in runs]
    for reason in sorted({reason for counted in drops for reason, count in counted.items() if count}):
        row(f"switch drops: {tables.drop_title(reason)}", (counted[reason] for counted in drops), "{:,}".format)
    row("queue pairs that failed", (len(qp_errors(run)) for run in runs), str)
    return result


def picture(runs: Sequence[Run]) -> str:
    """The goodput chart as a separate SVG file."""
    bin_ns = max(recovery.bin_ns(run) for run in runs)
    chart = plots.goodput_over_time(list(zip(names(runs), runs, strict=True)), bin_ns)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + chart


def shown(runs: Sequence[Run]) -> list[Finding]:
    """The conclusions from comparing the runs (`judging.reports.contrast`)."""
    return contrast.findings(list(zip(names(runs), runs, strict=True)))


def as_json(runs: Sequence[Run]) -> dict[str, Any]:
    """`findings` as in `verdict.json`, every row of the table by run, and their numbers (`figures`) by run."""
    table = rows(runs)
    by_run = {name: {row[0]: row[index] for row in table} for index, name in enumerate(names(runs), start=1)}
    findings = [
        {"check": f.check, "holds": f.holds, "word": WORDS[f.holds], "reason": f.reason, "figures": f.figures}
        for f in shown(runs)
    ]
    numbers = {name: figures(run) for name, run in zip(names(runs), runs, strict=True)}
    return {"findings": findings, "runs": by_run, "figures": numbers}


def html(runs: Sequence[Run]) -> str:
    """The page."""
    titles = names(runs)
    named = list(zip(titles, runs, strict=True))
    bin_ns = max(recovery.bin_ns(run) for run in runs)
    title = " against ".join(titles)
    single = [name for name, run in named if run.options.get("single_plane")]
    note = f"{', '.join(single)} ran on the single-plane equivalent of the plan." if single else ""
    return page.page(
        title,
        f"<h1>{page.text(title)}</h1>",
        *(page.paragraph(f"{name}: {report.subtitle(run)}", soft=True) for name, run in named),
        page.paragraph(note, soft=True) if note else "",
        page.section("What they show", page.table(["", "", ""], report.finding_rows(shown(runs)))),
        page.section("Goodput", plots.goodput_over_time(named, bin_ns)),
        page.section("Training steps", plots.step_times(named)),
        page.section("In numbers", page.table(["", *titles], rows(runs))),
    )


def summary(runs: Sequence[Run]) -> str:
    """The comparison as text for a terminal, without the charts."""
    found = [[report.MARKS[f.holds], f.check, f.reason] for f in shown(runs)]
    table = [["", *names(runs)], *rows(runs)]
    return report.for_terminal([*report.columns(found), "", *report.columns(table)])
