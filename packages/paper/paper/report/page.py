"""`reproduction.html`: one page that needs nothing else, with every figure drawn and compared."""

from collections.abc import Iterator, Sequence

from judging.reports import page
from judging.reports.plots import RUNS, in_legend, svg
from judging.reports.plots import figure as new_figure
from paper import parameters
from paper.figure import Chart, Points
from paper.outcome import BEYOND, INSIDE, WITHIN_FAR, WITHIN_NEAR, WITHIN_READING, Outcome
from paper.report import causes, standing, table
from paper.report.table import QUANTITY_HEAD, TEXTS

TITLE = "The MRC paper, figure by figure"
KNOBS = "Experiments, one knob at a time:"
WHERE = "Where the paper has each quantity, and how it is measured here"
MARKS = {WITHIN_NEAR: "true", **dict.fromkeys((WITHIN_READING, WITHIN_FAR, INSIDE), "unknown"), BEYOND: "false"}
VERDICT = QUANTITY_HEAD.index("verdict")
SPREAD = 20.0  # values this much farther apart than the smallest are drawn on a logarithmic axis


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


def draw(outcome: Outcome, chart: Chart, number: int = 0) -> str | None:
    """The chart as SVG; None while none of its runs has been made."""
    curves: list[tuple[str, Points]] = [(label, outcome.curve(name)) for name, label in chart.ours.items()]
    curves += [(label, list(made_points(outcome, points))) for label, points in chart.points.items()]
    curves = [(label, points) for label, points in curves if points]
    if not curves:
        return None
    drawing, axes = new_figure(3.6)
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
