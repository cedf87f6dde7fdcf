"""Two runs side by side: what they show against each other, their charts overlaid, their numbers in columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from scenarios.judging import contrast, counters, flows, goodput, page, paths, plots, recovery, report, steps
from scenarios.judging.checks import qp_errors
from scenarios.judging.figures import figures
from scenarios.judging.run import Run
from scenarios.judging.units import brief
from scenarios.judging.verdict import WORDS, Finding


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
    return str(json.loads(file.read_text())["verdict"]) if file and file.exists() else "–"


def rows(runs: Sequence[Run]) -> list[list[str]]:
    """A row for each number, a column for each run; the first row has the runs' own verdicts."""
    result = [["verdict by itself", *map(verdict_word, runs)]]
    for phase in dict.fromkeys(name for run in runs for name in run.phases):
        if phase in report.UNJUDGED:
            continue
        spans = [run.phases.get(phase) for run in runs]
        rates = [
            report.rate(goodput.of_phase(run, span)) if span else "–" for run, span in zip(runs, spans, strict=True)
        ]
        result.append([f"goodput, {phase}", *rates])
        times = [
            steps.times(steps.of_phase(steps.steps(run), span)) if span else None
            for run, span in zip(runs, spans, strict=True)
        ]
        if any(times):
            for title, field in (("median", "median_ns"), ("p99", "p99_ns"), ("slowest", "slowest_ns")):
                values = [brief(getattr(time, field)) if time else "–" for time in times]
                result.append([f"step time {title}, {phase}", *values])
        for workload in dict.fromkeys(name for run in runs for name in flows.workloads(run)):
            seen = [flows.within(run, span, workload) if span else None for run, span in zip(runs, spans, strict=True)]
            if not any(seen):
                continue
            title = f"{workload} flows, {phase}"
            result.append(
                [f"{title}: slowest", *(report.rate(min(one.rates.values())) if one else "–" for one in seen)]
            )
            silences = [brief(one.silence_ns) if one else "–" for one in seen]
            result.append([f"{title}: longest silence", *silences])
            if any(one and one.first_ns is not None for one in seen):
                firsts = [brief(one.first_ns) if one and one.first_ns is not None else "–" for one in seen]
                result.append([f"{title}: all began after", *firsts])
    totals = [counters.qp_totals(run) for run in runs]
    for field, title in report.COUNTER_TITLES.items():
        result.append([title, *(f"{total[field]:,}" for total in totals)])
    given_up = [paths.given_up(run) for run in runs]
    result.append(["paths given up", *(f"{count:,}" for count, _ in given_up)])
    result.append(
        [
            "for so long, all of them together",
            *(run.lasting(for_ns) for run, (_, for_ns) in zip(runs, given_up, strict=True)),
        ]
    )
    drops = [counters.switch_drops(run) for run in runs]
    for reason in sorted({reason for counted in drops for reason, count in counted.items() if count}):
        result.append([f"switch drops: {report.drop_title(reason)}", *(f"{counted[reason]:,}" for counted in drops)])
    result.append(["queue pairs that failed", *(str(len(qp_errors(run))) for run in runs)])
    return result


def picture(runs: Sequence[Run]) -> str:
    """The goodput chart as an SVG file of its own."""
    bin_ns = max(recovery.bin_ns(run) for run in runs)
    chart = plots.goodput_over_time(list(zip(names(runs), runs, strict=True)), bin_ns)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + chart


def shown(runs: Sequence[Run]) -> list[Finding]:
    """What the runs show against each other (`scenarios.judging.contrast`)."""
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
    return "\n".join([*report.columns(found), "", *report.columns(table)]) + "\n"
