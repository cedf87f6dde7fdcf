"""`reproduction.html`: one page that needs nothing else, with every figure drawn and compared."""

from collections.abc import Sequence

from judging.reports import page
from paper import parameters
from paper.outcome import BEYOND, INSIDE, WITHIN_FAR, WITHIN_NEAR, WITHIN_READING, Outcome
from paper.report import causes, standing, table
from paper.report.picture import draw
from paper.report.table import QUANTITY_HEAD, TEXTS

TITLE = "The MRC paper, figure by figure"
KNOBS = "Experiments, one knob at a time:"
WHERE = "Where the paper has each quantity, and how it is measured here"
MARKS = {WITHIN_NEAR: "true", **dict.fromkeys((WITHIN_READING, WITHIN_FAR, INSIDE), "unknown"), BEYOND: "false"}
VERDICT = QUANTITY_HEAD.index("verdict")


def html(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    reasons, orders = table.reasons(outcomes), table.orders(outcomes)
    made, changed = standing.all_rows(outcomes), causes.experiments(outcomes)
    return page.page(
        TITLE,
        f"<h1>{page.text(TITLE)}</h1>",
        page.paragraph(TEXTS["introduction"], soft=True),
        page.paragraph(table.verdict(outcomes)),
        page.section("Summary", page.table(*table.summary(outcomes))),
        page.section(
            "Order before size",
            *(
                (
                    page.paragraph(f"{TEXTS['order']} {table.order_notes(outcomes)}"),
                    page.table(table.ORDER_HEAD, orders),
                )
                if orders
                else ()
            ),
        ),
        page.section("What differs, and why", page.table(table.WHY_HEAD, reasons) if reasons else None),
        page.section(
            "Misses by cause",
            *(
                (
                    page.paragraph(f"{causes.bar(made)} {causes.INTRODUCTION}"),
                    page.table([*causes.HEAD, ""], [[*row, causes.evidence_of(row[0], made, changed)] for row in body]),
                )
                if (body := causes.table(made))
                else ()
            ),
        ),
        *(section(outcome) for outcome in outcomes),
        *(
            page.section(title, page.paragraph(text), page.table(head, rows))
            for title, text, head, rows in apart(outcomes)
        ),
        page.section(
            "Parameters of the model",
            page.paragraph(TEXTS["one_set"]),
            page.table(table.PARAMETER_HEAD, parameters.table()),
        ),
    )


def apart(outcomes: Sequence[Outcome]) -> list[tuple[str, str, list[str], table.Rows]]:
    """The tables of rows that do not count: title, text, head and rows of each."""
    tables = [
        ("Rows that calibrate", TEXTS["set_from"], table.CALIBRATION_HEAD, table.calibrating(outcomes)),
        ("Rows without power", TEXTS["power"], table.POWERLESS_HEAD, table.powerless(outcomes)),
        ("Rows out of reach", TEXTS["reach"], table.UNREACHABLE_HEAD, table.unreachable(outcomes)),
    ]
    return [part for part in tables if part[3]]


def section(outcome: Outcome) -> str:
    """A figure: charts, caption, why runs were broken off, verdicts, experiments, and how each quantity is measured."""
    figure, experiments = outcome.figure, table.experiments(outcome)
    rows: list[list[str]] = []
    for row in table.quantities(outcome):
        verdict = row[VERDICT]
        mark = page.Raw(f'<span class="mark {MARKS.get(verdict, "")}">{page.text(verdict)}</span>')
        rows.append([*row[:VERDICT], mark, *row[VERDICT + 1 :]])
    measured = page.table(table.SOURCE_HEAD, table.sources(outcome))
    return page.section(
        f"{figure.name}: {figure.title}",
        *(draw(outcome, chart, index) for index, chart in enumerate(figure.charts)),
        page.paragraph(figure.caption),
        page.paragraph(figure.compression, soft=True),
        *(page.paragraph(f"Broken off: {error}") for error in outcome.errors),
        page.table(QUANTITY_HEAD, rows),
        *([page.paragraph(KNOBS), page.table(table.EXPERIMENT_HEAD, experiments)] if experiments else []),
        *(page.paragraph(note) for note in figure.notes),
        f"<details><summary>{WHERE}</summary>{measured}</details>",
        page.paragraph(f"The paper's points: {figure.source}.", soft=True),
    )
