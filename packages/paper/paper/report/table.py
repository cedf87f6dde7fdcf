"""The tables of a reproduction as rows of words, and as lines for a terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from common.terminal.columns import aligned
from paper import texts
from paper.outcome import (
    BEYOND,
    CALIBRATION,
    FAR,
    JUDGED,
    NOT_RUN,
    POWERLESS,
    TIE,
    UNREACHABLE,
    Comparison,
    Outcome,
    count,
    number,
)
from paper.report import standing

Rows = list[list[str]]
TEXTS: Mapping[str, str] = texts.load(Path(__file__).parent / "texts.toml", {"tie": round(TIE * 100)})
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
RUNS_HEAD = ["figure", "", "runs", "seconds"]
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
    return TEXTS["order_notes"].format(agreeing=len(agreeing), ties=ties, half=half)


def summary(outcomes: Sequence[Outcome]) -> tuple[list[str], Rows]:
    """A head, a row per figure, and one of all figures of the paper together, which the numbers of each column add up
    to. Where no time is known, there is no column of times."""
    rows = []
    for outcome in outcomes:
        figure = outcome.figure
        ended = took(outcome.seconds) if outcome.complete else f"{len(outcome.rows)} of {len(outcome.parts)} runs"
        ended = ended if outcome.rows else "not run"
        cells = counted([outcome]) if figure.of_paper else ["not of the paper", *[""] * 9]
        rows.append([figure.name, figure.title, *cells, "broken off" if outcome.errors else ended])
    known = [outcome.seconds for outcome in outcomes]
    seconds = sum(each for each in known if each is not None)
    rows.append(["all", "", *counted(outcomes), took(None if None in known else seconds)])
    if all(row[-1] == UNKNOWN for row in rows):
        return SUMMARY_HEAD[:-1], [row[:-1] for row in rows]
    return SUMMARY_HEAD, rows


def runs(outcomes: Sequence[Outcome]) -> Rows:
    """A row per figure of a short form: how many of its runs were made, and how long they took."""
    return [
        [
            outcome.figure.name,
            outcome.figure.title,
            f"{len(outcome.rows)} of {len(outcome.parts)}" + (", broken off" if outcome.errors else ""),
            took(outcome.seconds),
        ]
        for outcome in outcomes
    ]


def took(seconds: float | None) -> str:
    """The cell of the time that runs took."""
    return UNKNOWN if seconds is None else f"{seconds:.0f}"


def counted(outcomes: Sequence[Outcome]) -> list[str]:
    """The cells of the summary between a figure's title and its seconds."""
    verdicts, known = count(outcomes), standing.counts(outcomes)
    apart = (verdicts[verdict] for verdict in (CALIBRATION, POWERLESS, UNREACHABLE))
    cells = [*(verdicts[verdict] for verdict in JUDGED), known["judged"], *apart]
    return [*map(str, cells), f"{known['order_agree']} of {known['order_compared']}"]


def verdict(outcomes: Sequence[Outcome]) -> str:
    """All figures together in a few sentences."""
    return TEXTS["verdict"].format(**standing.counts(outcomes), beyond=count(outcomes)[BEYOND])


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


def quantity_lines(outcomes: Sequence[Outcome]) -> str:
    """A line per quantity: the paper's number and ours, the difference, and how near that is."""
    lines = []
    for outcome in outcomes:
        rows = [["", "paper", "here", "", "", ""]]
        for comparison in outcome.comparisons:
            name, unit, paper, ours = basic_cells(comparison)
            rows.append([name, paper, ours, unit, comparison.difference_shown, comparison.verdict])
        lines += [f"{outcome.figure.name}: {outcome.figure.title}", *(f"  {line}" for line in aligned(rows))]
    return "\n".join(lines) + "\n"


def summary_lines(outcomes: Sequence[Outcome]) -> str:
    """A line per figure: how many quantities are how near."""
    head, rows = summary(outcomes)
    return "\n".join(aligned([head, *rows])) + "\n"


def run_lines(outcomes: Sequence[Outcome]) -> str:
    """A line per figure of a short form: how many runs were made."""
    return "\n".join([TEXTS["short"], *aligned([RUNS_HEAD, *runs(outcomes)])]) + "\n"
