"""The outcome of a figure: its numbers and curves, each quantity beside the paper's, and the count of all of them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from judging.arrays import np
from paper.figure import Experiment, Figure, Order, Points, Quantity
from studies.sweeping import Row

NEAR, FAR = 0.05, 0.15
TIE = 0.03
"""Two numbers that are this near to each other are a tie."""
WITHIN_NEAR, WITHIN_FAR, INSIDE = "within 5 %", "within 15 %", "inside the interval"
WITHIN_READING, BEYOND = "within the reading's error", "farther off"
CALIBRATION, POWERLESS, UNREACHABLE = "calibration", "no power", "out of reach"
NOT_RUN = "not run"
UNCHANGED = "the experiment that should take this number away from the paper's does not take it far enough ({})"
JUDGED = (WITHIN_NEAR, WITHIN_FAR, INSIDE, WITHIN_READING, BEYOND)
"""Only rows with one of these verdicts count."""
NEAR_ENOUGH = (WITHIN_NEAR, WITHIN_FAR)
"""The verdicts that the bar asks for: an interval over seeds lies within 15 % as a whole. INSIDE is compatible
only: seeds spread farther, and the paper's number is in their interval or within 15 % of their median."""
NO_SPRAY = "on one path"
"""In the names of experiments without spraying: any spraying passes a row that fails only there."""
VERDICTS = (*JUDGED, CALIBRATION, POWERLESS, UNREACHABLE, NOT_RUN)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity; ours, with its interval over seeds if it has one; and the number of the experiment that must fail.

    A number that there is not is None.
    """

    quantity: Quantity
    ours: float | None
    interval: tuple[float, float] | None = None
    failing: float | None = None
    of_paper: bool = True

    @property
    def difference(self) -> float | None:
        """(ours − paper) / scale; 0 below an upper bound."""
        return None if self.ours is None else self._off(self.ours)

    @property
    def scale(self) -> float:
        """The number of which a difference is a share."""
        return abs(self.quantity.paper if self.quantity.scale is None else self.quantity.scale)

    @property
    def difference_shown(self) -> str:
        """The difference as tables show it, with its scale where that is not the paper's number."""
        if self.difference is None:
            return "–"
        off = f"{self.difference:+.1%}".replace("-", "−")
        return off if self.scale == abs(self.quantity.paper) else f"{off} of {number(self.scale)}"

    @property
    def verdict(self) -> str:
        """One of VERDICTS."""
        quantity = self.quantity
        if quantity.measured is None:
            return UNREACHABLE
        if self.ours is None:
            return NOT_RUN
        if quantity.calibrates:
            return CALIBRATION
        if quantity.unreachable:
            return UNREACHABLE
        near = self._near(self.ours)
        if not self.of_paper:
            return near
        if quantity.fails is None:
            return POWERLESS
        if self.failing is None:
            return NOT_RUN
        if self._near(self.failing) != BEYOND or self._inside(self.failing):
            return POWERLESS
        if near in NEAR_ENOUGH:
            return near if all(self._near(bound) in NEAR_ENOUGH for bound in self.interval or ()) else INSIDE
        return INSIDE if self._inside(quantity.paper) else near

    @property
    def power(self) -> str:
        """Why the row has no power, or what makes it fail."""
        quantity = self.quantity
        if quantity.fails is None:
            return quantity.powerless
        shown = f"{quantity.fails.knob}: {number(self.failing)}"
        return UNCHANGED.format(shown) if self.verdict == POWERLESS else shown

    def _off(self, value: float) -> float:
        quantity = self.quantity
        if quantity.at_most and value <= quantity.paper:
            return 0.0
        if self.scale == 0:
            raise ValueError(f"{quantity.name}: the paper's number is 0, so `scale` must say what is much")
        return (value - quantity.paper) / self.scale

    def _near(self, value: float) -> str:
        """How near a value is to the paper's number; the error of the reading decides only what is not within 15 %."""
        off = abs(self._off(value))
        if off <= NEAR:
            return WITHIN_NEAR
        if off <= FAR:
            return WITHIN_FAR
        if not self.quantity.at_most and abs(value - self.quantity.paper) <= self.quantity.error:
            return WITHIN_READING
        return BEYOND

    def _inside(self, value: float) -> bool:
        """Whether a value is among those of other seeds."""
        return self.interval is not None and self.interval[0] <= value <= self.interval[1]


@dataclass(frozen=True, slots=True)
class Compared:
    """An order of the paper beside ours: the ratio of the first to the second, in both; None: not run, or not ended.

    `calibrated`: both numbers set values of the model, so their order says nothing; `half_calibrated`: one of them did.
    `unended`: one of ours is 0: its collective did not end within the run, so there is nothing to compare.
    """

    order: Order
    paper: float
    ours: float | None
    calibrated: bool = False
    unended: bool = False
    half_calibrated: bool = False

    @property
    def agrees(self) -> bool | None:
        """Whether the same one is ahead, or both are ties; None: not run, not ended, or calibrated."""
        if self.ours is None or self.calibrated:
            return None
        return ahead(self.paper) == ahead(self.ours) or (tie(self.paper) and tie(self.ours))

    @property
    def tie_in_one(self) -> bool:
        """Whether the two numbers are a tie in one of the two only, the paper or here."""
        return self.ours is not None and tie(self.paper) != tie(self.ours)


def ahead(ratio: float) -> int:
    """1 where the first of two is larger, −1 where the second is, 0 where they are equal."""
    return (ratio > 1) - (ratio < 1)


def tie(ratio: float) -> bool:
    """Whether a ratio says no more than that two numbers are alike."""
    return abs(ratio - 1) <= TIE


@dataclass(frozen=True, slots=True)
class Outcome:
    """A figure with the rows of its runs by part; a part without a row was not run."""

    figure: Figure
    rows: Mapping[str, Row]
    parts: Sequence[str]

    @property
    def seconds(self) -> float | None:
        """Processor time of all runs, nearly: what they took one after the other. None where a run was made elsewhere:
        a file of runs does not have their times."""
        taken = [row.seconds for row in self.rows.values()]
        return sum(taken) if all(taken) else None

    @property
    def complete(self) -> bool:
        """Whether all runs were made and none was broken off."""
        return all(part in self.rows and not self.rows[part].error for part in self.parts)

    @property
    def errors(self) -> list[str]:
        """Why runs were broken off."""
        return [f"{part}: {row.error}" for part, row in self.rows.items() if row.error]

    @property
    def lacking(self) -> list[str]:
        """The numbers ("PART:NAME") and curves that rows of these runs must have, and do not: a file may hold any."""
        figure = self.figure
        measured = [quantity.measured for quantity in figure.quantities]
        measured += [quantity.fails.measured for quantity in figure.quantities if quantity.fails]
        measured += [name for quantity in figure.quantities for name in quantity.seeds]
        measured += [experiment.measured for experiment in figure.experiments]
        measured += [name for chart in figure.charts for points in chart.points.values() for _, name in points]
        drawn = [name for chart in figure.charts for name in chart.ours]
        wanted = [(name, False) for name in measured if name is not None] + [(name, True) for name in drawn]
        absent = []
        for name, curve in wanted:
            part, _, own = name.partition(":")
            row = self.rows.get(part)
            if row is not None and not row.error and own not in (row.curves if curve else row.metrics):
                absent.append(name)
        return list(dict.fromkeys(absent))

    def number(self, name: str) -> float | None:
        """The number "PART:NAME"; None while its run is missing. KeyError for a number that its run does not have."""
        part, _, own = name.partition(":")
        row = self.rows.get(part)
        return None if row is None or row.error else row.metrics[own]

    def unchanged(self, experiment: Experiment) -> float | None:
        """The number of an experiment's quantity in the run without the change, which has the experiment's seed."""
        (measured,) = (quantity.measured for quantity in self.figure.quantities if quantity.name == experiment.quantity)
        return None if measured is None else self.number(measured)

    def curve(self, name: str) -> Points:
        """The curve "PART:CURVE"; no points while its run is missing."""
        part, _, own = name.partition(":")
        row = self.rows.get(part)
        return [] if row is None or row.error else [(x, y) for x, y in row.curves[own]]

    @property
    def comparisons(self) -> list[Comparison]:
        """All quantities of the figure."""
        return [self._compared(quantity) for quantity in self.figure.quantities]

    @property
    def orders(self) -> list[Compared]:
        """All orders of the figure."""
        known = {comparison.quantity.name: comparison for comparison in self.comparisons}
        compared = []
        for order in self.figure.orders:
            first, second = known[order.first], known[order.second]
            ours = first.ours / second.ours if first.ours and second.ours else None
            set_from = first.quantity.calibrates + second.quantity.calibrates
            unended = 0.0 in (first.ours, second.ours)
            ratio = first.quantity.paper / second.quantity.paper
            compared.append(Compared(order, ratio, ours, set_from == 2, unended, set_from == 1))
        return compared

    def _compared(self, quantity: Quantity) -> Comparison:
        ours = None if quantity.measured is None else self.number(quantity.measured)
        failing = None if quantity.fails is None else self.number(quantity.fails.measured)
        seeds = [name for name in quantity.seeds if name.partition(":")[0] in self.parts]
        drawn = [self.number(name) for name in seeds] if len(seeds) > 1 else []
        values = [value for value in drawn if value is not None]
        if not drawn or len(values) < len(drawn):
            return Comparison(quantity, None if drawn else ours, None, failing, self.figure.of_paper)
        interval = min(values), max(values)
        return Comparison(quantity, float(np.median(values)), interval, failing, self.figure.of_paper)


def count(outcomes: Iterable[Outcome]) -> Counter[str]:
    """How many quantities of the paper have which verdict."""
    return Counter(
        comparison.verdict for outcome in outcomes for comparison in outcome.comparisons if comparison.of_paper
    )


def rounded(value: float) -> float:
    """Six digits, which is more than a run or a reading has."""
    return float(f"{value:.6g}")


def number(value: float | None) -> str:
    """A number as tables show it: four digits; a very small one without a power of ten.

    It is rounded from the six digits of `reproduction.json`, so that both say the same.
    """
    if value is None:
        return "–"
    value = rounded(value)
    if 0 < abs(value) < 1e-4:
        return f"{value:.6f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
