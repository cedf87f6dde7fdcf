"""The tables of a reproduction as rows of words."""

from __future__ import annotations

from collections.abc import Sequence

from paper.outcome import BEYOND, CALIBRATION, FAR, JUDGED, NOT_RUN, POWERLESS, UNREACHABLE, Comparison, Outcome, number
from paper.report.standing import Standing

Rows = list[list[str]]
QUANTITY_HEAD = ["quantity", "unit", "paper", "here", "difference", "verdict", "fails with"]
SUMMARY_HEAD = [
    "figure",
    "",
    "within 5 %",
    "5 to 15 %",
    "interval",
    "within reading",
    "farther off",
    "judged",
    "calibrating",
    "no power",
    "out of reach",
    "orders",
    "seconds",
]
ORDER_HEAD = ["figure", "first", "second", "paper, first : second", "here", "order"]
POWERLESS_HEAD = ["figure", "quantity", "unit", "paper", "here", "why no experiment makes it fail"]
UNREACHABLE_HEAD = ["figure", "quantity", "unit", "paper", "here", "why it is out of reach"]
CALIBRATION_HEAD = ["figure", "quantity", "unit", "paper", "here", "why it is missed"]
SOURCE_HEAD = ["quantity", "the paper's number", "reading error", "how it is measured here"]
PARAMETER_HEAD = ["parameter", "value", "source"]
WHY_HEAD = ["figure", "quantities", "why"]
EXPERIMENT_HEAD = ["what was changed", "quantity", "unit", "paper", "with the same seed", "changed"]
UNENDED = "not ended"
UNKNOWN = "–"
AGREES = {True: "agrees", False: "opposite", None: "not run"}


def quantities(outcome: Outcome) -> Rows:
    """A row per quantity that is judged or was not run; where the figure is not of the paper, all of them."""
    kept = [c for c in outcome.comparisons if c.verdict in (*JUDGED, NOT_RUN) or not c.of_paper]
    return [[*basic_cells(c), c.difference_shown, c.verdict, c.power if c.quantity.fails else ""] for c in kept]


def basic_cells(comparison: Comparison) -> list[str]:
    """The name, the unit, the paper's number and ours, an interval with its median."""
    ours = number(comparison.ours)
    if comparison.interval is not None:
        ours += f" ({number(comparison.interval[0])} to {number(comparison.interval[1])})"
    return [comparison.quantity.name, comparison.quantity.unit, number(comparison.quantity.paper), ours]


def powerless(outcomes: Sequence[Outcome]) -> Rows:
    """A row per quantity that agrees whatever the transport does."""
    return [[figure, *basic_cells(comparison), comparison.power] for figure, comparison in having(outcomes, POWERLESS)]


def unreachable(outcomes: Sequence[Outcome]) -> Rows:
    """A row per quantity that no setting could bring near the paper's."""
    comparisons = having(outcomes, UNREACHABLE)
    return [[figure, *basic_cells(c), c.quantity.unreachable or c.quantity.why] for figure, c in comparisons]


def calibrating(outcomes: Sequence[Outcome]) -> Rows:
    """A row per quantity to which the model or a device profile was set; the last cell is of those that miss it."""
    return [
        [figure, *basic_cells(c), c.quantity.why or "unknown" if abs(c.difference or 0.0) > FAR else ""]
        for figure, c in having(outcomes, CALIBRATION)
    ]


def having(outcomes: Sequence[Outcome], verdict: str) -> list[tuple[str, Comparison]]:
    """The quantities with a verdict, each with the name of its figure."""
    return [
        (outcome.figure.name, comparison)
        for outcome in outcomes
        for comparison in outcome.comparisons
        if comparison.verdict == verdict and comparison.of_paper
    ]


def orders(outcomes: Sequence[Outcome]) -> Rows:
    """A row per comparison that the paper makes: the ratio in the paper, ours, and whether the order is the same."""
    return [
        [
            outcome.figure.name,
            order.order.first,
            order.order.second,
            number(order.paper),
            number(order.ours),
            CALIBRATION if order.calibrated else UNENDED if order.unended else AGREES[order.agrees],
        ]
        for outcome in outcomes
        for order in outcome.orders
    ]


def sources(outcome: Outcome) -> Rows:
    """A row per q: where the paper has it, how exactly it was read, and how ours is measured."""
    return [
        [q.name, q.source or outcome.figure.source, number(q.error) if q.error else "", q.how]
        for q in outcome.figure.quantities
    ]


def experiments(outcome: Outcome) -> Rows:
    """A row an experiment: the quantity in the run whose seed the experiment has, and as it became with one knob
    changed. Where the figure has an interval over seeds, that is not the interval's median."""
    known = {q.name: q for q in outcome.figure.quantities}
    rows = []
    for experiment in outcome.figure.experiments:
        quantity = known[experiment.quantity]
        row = [experiment.knob, quantity.name, quantity.unit, number(quantity.paper)]
        rows.append([*row, number(outcome.unchanged(experiment)), number(outcome.number(experiment.measured))])
    return rows


def order_notes(outcomes: Sequence[Outcome]) -> str:
    """Which of the orders that agree say less than the others."""
    agreeing = [order for outcome in outcomes for order in outcome.orders if order.agrees]
    ties, half = sum(order.tie_in_one for order in agreeing), sum(order.half_calibrated for order in agreeing)
    return (
        f"Of the {len(agreeing)} that agree, {ties} are a tie in one of the two only, the paper or here, and {half}"
        " have a number from which the model was set."
    )


def summary(outcomes: Sequence[Outcome]) -> tuple[list[str], Rows]:
    """A head, a row per figure, and one of all figures of the paper together, which the numbers of each column add up
    to. Where no time is known, there is no column of times."""
    rows = []
    for outcome in outcomes:
        figure = outcome.figure
        ended = took(outcome.seconds) if outcome.complete else f"{len(outcome.rows)} of {len(outcome.parts)} runs"
        ended = ended if outcome.rows else "not run"
        cells = counted(Standing.of([outcome])) if figure.of_paper else ["not of the paper", *[""] * 9]
        rows.append([figure.name, figure.title, *cells, "broken off" if outcome.errors else ended])
    known = [outcome.seconds for outcome in outcomes]
    seconds = sum(each for each in known if each is not None)
    rows.append(["all", "", *counted(Standing.of(outcomes)), took(None if None in known else seconds)])
    if all(row[-1] == UNKNOWN for row in rows):
        return SUMMARY_HEAD[:-1], [row[:-1] for row in rows]
    return SUMMARY_HEAD, rows


def took(seconds: float | None) -> str:
    """The cell of the time that runs took."""
    return UNKNOWN if seconds is None else f"{seconds:.0f}"


def counted(standing: Standing) -> list[str]:
    """The cells of the summary between a figure's title and its seconds."""
    cells = [
        standing.within_5,
        standing.within_15,
        standing.inside,
        standing.within_reading,
        standing.beyond,
        standing.judged,
        standing.calibrating,
        standing.without_power,
        standing.out_of_reach,
    ]
    return [*(str(cell) for cell in cells), f"{standing.order_agree} of {standing.order_compared}"]


def verdict(outcomes: Sequence[Outcome]) -> str:
    """All figures together in a few sentences."""
    standing = Standing.of(outcomes)
    return (
        f"{standing.judged} quantities are judged: {standing.near} are near the paper, which is within 15 % with all"
        f" their interval over seeds, {standing.within_5} of them within 5 %. {standing.inside} are only compatible:"
        " seeds spread farther, around the paper's number or within 15 % of it on average."
        f" {standing.within_reading} are more than 15 % off and within the reading's error, and {standing.beyond} are"
        f" farther off. {standing.any_spray} near rows are only known to fail with each queue pair on one path, so any"
        f" spraying passes them, and {standing.told_twice} of all these tells another's fact again."
        f" {standing.calibrating} more calibrate the model,"
        f" {standing.without_power} have no power, {standing.out_of_reach} are out of reach, and"
        f" {standing.not_run} were not run; none of these counts. The paper's order holds in"
        f" {standing.order_agree} of {standing.order_compared} comparisons."
    )


def reasons(outcomes: Sequence[Outcome]) -> Rows:
    """Quantities that are farther off, those of one reason together; "unknown" without one."""
    named: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        for comparison in outcome.comparisons:
            if comparison.verdict == BEYOND:
                off = "" if comparison.difference is None else f" ({comparison.difference_shown})"
                named.setdefault((outcome.figure.name, comparison.quantity.why or "unknown"), []).append(
                    comparison.quantity.name + off
                )
    return [[figure, "; ".join(names), why] for (figure, why), names in named.items()]
