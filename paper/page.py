"""`reproduction.html`: one page that needs nothing else, with every figure drawn and compared."""

from __future__ import annotations

from collections.abc import Sequence

from judging.reports import page
from paper import table
from paper.document import HOW, INTRODUCTION, KNOBS, ONE_SET
from paper.outcome import BEYOND, IMPOSSIBLE, WITHIN_FAR, WITHIN_NEAR, Outcome
from paper.picture import draw

MARKS = {WITHIN_NEAR: "true", WITHIN_FAR: "unknown", BEYOND: "false", IMPOSSIBLE: "false"}


def html(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    title = "The MRC paper, figure by figure"
    whys = table.whys(outcomes)
    return page.page(
        title,
        f"<h1>{page.text(title)}</h1>",
        page.paragraph(INTRODUCTION, soft=True),
        page.paragraph(table.verdict(outcomes)),
        page.section("Summary", page.table(table.SUMMARY_HEAD, table.summary(outcomes))),
        page.section("What differs, and why", page.table(table.WHY_HEAD, whys) if whys else None),
        *(section(outcome) for outcome in outcomes),
        page.section(
            "Parameters of the model", page.paragraph(ONE_SET), page.table(table.PARAMETER_HEAD, table.parameters())
        ),
    )


def section(outcome: Outcome) -> str:
    """A figure: charts, table, caption, how each quantity is measured."""
    figure, experiments = outcome.figure, table.experiments(outcome)
    charts = [draw(outcome, chart, index) for index, chart in enumerate(figure.charts)]
    rows: list[list[str]] = []
    for row in table.quantities(outcome):
        mark = page.Raw(f'<span class="mark {MARKS.get(row[-1], "")}">{page.text(row[-1])}</span>')
        rows.append([*row[:-1], mark])
    measured = page.table(["quantity", HOW], [[one.name, one.how] for one in figure.quantities])
    return page.section(
        f"{figure.name}: {figure.title}",
        *charts,
        page.paragraph(figure.caption),
        page.paragraph(figure.compression, soft=True),
        *(page.paragraph(f"Broken off: {error}") for error in outcome.errors),
        page.table(table.QUANTITY_HEAD, rows),
        *([page.paragraph(KNOBS), page.table(table.EXPERIMENT_HEAD, experiments)] if experiments else []),
        *(page.paragraph(note) for note in figure.notes),
        f"<details><summary>How each quantity is measured here</summary>{measured}</details>",
        page.paragraph(f"The paper's points: {figure.source}.", soft=True),
    )
