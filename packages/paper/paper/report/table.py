"""The tables of a reproduction as rows of words, for the page and for Markdown alike."""

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
AGREES = {True: "agrees", False: "**opposite**", None: "not run"}


def quantities(outcome: Outcome) -> Rows:
    """A row per quantity that is judged or was not run; where the figure is not of the paper, all of them."""
    kept = [one for one in outcome.comparisons if one.verdict in (*JUDGED, NOT_RUN) or not one.of_paper]
    return [[*own(one), one.difference_shown, one.verdict, one.power if one.quantity.fails else ""] for one in kept]


def own(one: Comparison) -> list[str]:
    """The name, the unit, the paper's number and ours, an interval with its median."""
    ours = number(one.ours)
    if one.interval is not None:
        ours += f" ({number(one.interval[0])} to {number(one.interval[1])})"
    return [one.quantity.name, one.quantity.unit, number(one.quantity.paper), ours]


def powerless(outcomes: Sequence[Outcome]) -> Rows:
    """A row per quantity that agrees whatever the transport does."""
    return [[figure, *own(one), one.power] for figure, one in having(outcomes, POWERLESS)]


def unreachable(outcomes: Sequence[Outcome]) -> Rows:
    """A row per quantity that no setting could bring near the paper's."""
    found = having(outcomes, UNREACHABLE)
    return [[figure, *own(one), one.quantity.unreachable or one.quantity.why] for figure, one in found]


def calibrating(outcomes: Sequence[Outcome]) -> Rows:
    """A row per quantity to which the model or a device profile was set; the last cell is of those that miss it."""
    return [
        [figure, *own(one), one.quantity.why or "unknown" if abs(one.difference or 0.0) > FAR else ""]
        for figure, one in having(outcomes, CALIBRATION)
    ]


def having(outcomes: Sequence[Outcome], verdict: str) -> list[tuple[str, Comparison]]:
    """The quantities with a verdict, each with the name of its figure."""
    return [
        (outcome.figure.name, one)
        for outcome in outcomes
        for one in outcome.comparisons
        if one.verdict == verdict and one.of_paper
    ]


def orders(outcomes: Sequence[Outcome]) -> Rows:
    """A row per comparison that the paper makes: the ratio in the paper, ours, and whether the order is the same."""
    return [
        [
            outcome.figure.name,
            one.order.first,
            one.order.second,
            number(one.paper),
            number(one.ours),
            CALIBRATION if one.calibrated else UNENDED if one.unended else AGREES[one.agrees],
        ]
        for outcome in outcomes
        for one in outcome.orders
    ]


def sources(outcome: Outcome) -> Rows:
    """A row per quantity: where the paper has it, how exactly it was read, and how ours is measured."""
    return [
        [one.name, one.source or outcome.figure.source, number(one.error) if one.error else "", one.how]
        for one in outcome.figure.quantities
    ]


def experiments(outcome: Outcome) -> Rows:
    """A row an experiment: the quantity in the run whose seed the experiment has, and as it became with one knob
    changed. Where the figure has an interval over seeds, that is not the interval's median."""
    known = {one.name: one for one in outcome.figure.quantities}
    rows = []
    for one in outcome.figure.experiments:
        row = [one.knob, one.quantity, known[one.quantity].unit, number(known[one.quantity].paper)]
        rows.append([*row, number(outcome.unchanged(one)), number(outcome.number(one.measured))])
    return rows


def order_notes(outcomes: Sequence[Outcome]) -> str:
    """Which of the orders that agree say less than the others."""
    agreeing = [one for outcome in outcomes for one in outcome.orders if one.agrees]
    ties, half = sum(one.tie_in_one for one in agreeing), sum(one.half_calibrated for one in agreeing)
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
        ended = took(outcome.seconds) if outcome.whole else f"{len(outcome.rows)} of {len(outcome.parts)} runs"
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
        f"{standing.judged} quantities are judged: {standing.within_5} are within 5 % of the paper,"
        f" {standing.within_15} more within 15 %, {standing.inside} more have the paper's number inside their interval"
        f" over seeds, {standing.within_reading} are more than 15 % off and within the reading's error, and"
        f" {standing.beyond} are farther off. {standing.calibrating} more calibrate the model,"
        f" {standing.without_power} have no power, {standing.out_of_reach} are out of reach, and"
        f" {standing.not_run} were not run; none of these counts. The paper's order holds in"
        f" {standing.order_agree} of {standing.order_compared} comparisons."
    )


def reasons(outcomes: Sequence[Outcome]) -> Rows:
    """Quantities that are farther off, those of one reason together; "unknown" without one."""
    named: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        for one in outcome.comparisons:
            if one.verdict == BEYOND:
                off = "" if one.difference is None else f" ({one.difference_shown})"
                named.setdefault((outcome.figure.name, one.quantity.why or "unknown"), []).append(
                    one.quantity.name + off
                )
    return [[figure, "; ".join(names), why] for (figure, why), names in named.items()]
