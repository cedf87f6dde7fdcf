"""Short forms of figures as text, pages and JSON: ours beside the paper's number, and no verdict on any of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from common.terminal.columns import aligned
from judging.reports import page
from paper.outcome import Outcome
from paper.report import standing, table
from paper.report.page import TEXTS
from paper.report.picture import draw

TITLE = "The MRC paper, figure by figure: the short form"
PLAIN = TEXTS["short"]
"""The beginning of pages whose numbers do not count."""
RUNS_HEAD = ["figure", "", "runs", "seconds"]
QUANTITY_HEAD = table.QUANTITY_HEAD[:4]
KEPT = ("figure", "quantity", "unit", "paper", "reading_error", "source", "ours", "interval")
"""Of a row of `reproduction.json`: all that no verdict is needed for."""


def quantities(outcomes: Sequence[Outcome]) -> str:
    """For a terminal: a line per quantity of figures that were asked for by name."""
    lines = [PLAIN]
    for outcome in outcomes:
        body = [[name, paper, ours, unit] for name, unit, paper, ours in map(table.basic_cells, outcome.comparisons)]
        lines += [
            f"{outcome.figure.name}: {outcome.figure.title}",
            *(f"  {line}" for line in aligned([["", "paper", "here", ""], *body])),
        ]
    return "\n".join(lines) + "\n"


def summary(outcomes: Sequence[Outcome]) -> str:
    """For a terminal: a line per figure."""
    return "\n".join([PLAIN, *aligned([RUNS_HEAD, *runs(outcomes)])]) + "\n"


def runs(outcomes: Sequence[Outcome]) -> table.Rows:
    """A row per figure: how many of its runs were made, and how long they took."""
    return [
        [
            outcome.figure.name,
            outcome.figure.title,
            f"{len(outcome.rows)} of {len(outcome.parts)}" + (", broken off" if outcome.errors else ""),
            table.took(outcome.seconds),
        ]
        for outcome in outcomes
    ]


def html(outcomes: Sequence[Outcome]) -> str:
    """The page, with every figure drawn."""
    return page.page(
        TITLE,
        f"<h1>{page.text(TITLE)}</h1>",
        page.paragraph(PLAIN),
        page.section("Runs", page.table(RUNS_HEAD, runs(outcomes))),
        *(section(outcome) for outcome in outcomes),
    )


def section(outcome: Outcome) -> str:
    """A figure of the page."""
    figure = outcome.figure
    return page.section(
        f"{figure.name}: {figure.title}",
        *(draw(outcome, chart, index) for index, chart in enumerate(figure.charts)),
        page.paragraph(figure.caption),
        *(page.paragraph(f"Broken off: {error}") for error in outcome.errors),
        page.table(QUANTITY_HEAD, [table.basic_cells(comparison) for comparison in outcome.comparisons]),
    )


def document(outcomes: Sequence[Outcome]) -> str:
    """`reproduction.json` of a short form: rows without verdicts, and no counts."""
    made = [{name: row[name] for name in KEPT} for row in standing.all_rows(outcomes)]
    return json.dumps({"short": True, "rows": made}, indent=1, ensure_ascii=False) + "\n"
