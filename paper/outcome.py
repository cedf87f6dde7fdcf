"""What came of a figure: its numbers and curves, each quantity beside the paper's, and the count of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paper.figure import Figure, Points, Quantity
from studies.sweeping.row import Row

NEAR, FAR = 0.05, 0.15
WITHIN_NEAR, WITHIN_FAR, BEYOND = "within 5 %", "within 15 %", "farther off"
CALIBRATION, IMPOSSIBLE, NOT_RUN = "calibration", "not reproduced", "not run"
VERDICTS = (WITHIN_NEAR, WITHIN_FAR, BEYOND, IMPOSSIBLE, CALIBRATION, NOT_RUN)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity, ours (None: there is none) and the difference relative to the paper's scale."""

    quantity: Quantity
    ours: float | None

    @property
    def difference(self) -> float | None:
        """(ours − paper) / scale; 0 below an upper bound."""
        if self.ours is None:
            return None
        quantity = self.quantity
        if quantity.at_most and self.ours <= quantity.paper:
            return 0.0
        if self.scale == 0:
            raise ValueError(f"{quantity.name}: the paper's number is 0, so `scale` must say what is much")
        return (self.ours - quantity.paper) / self.scale

    @property
    def scale(self) -> float:
        """What a difference is a share of."""
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
        if self.quantity.measured is None:
            return IMPOSSIBLE
        difference = self.difference
        if difference is None:
            return NOT_RUN
        if self.quantity.calibrates:
            return CALIBRATION
        off = abs(difference)
        return WITHIN_NEAR if off <= NEAR else WITHIN_FAR if off <= FAR else BEYOND


@dataclass(frozen=True, slots=True)
class Outcome:
    """A figure with the rows of its runs by part; a part without a row was not run."""

    figure: Figure
    rows: Mapping[str, Row]
    parts: Sequence[str]

    @property
    def seconds(self) -> float:
        """Processor time of all runs, nearly: what they took one after the other."""
        return sum(row.seconds for row in self.rows.values())

    @property
    def whole(self) -> bool:
        """Whether all runs were made and none was broken off."""
        return all(part in self.rows and not self.rows[part].error for part in self.parts)

    @property
    def errors(self) -> list[str]:
        """Why runs were broken off."""
        return [f"{part}: {row.error}" for part, row in self.rows.items() if row.error]

    def number(self, name: str) -> float | None:
        """The number "PART:NAME"; None while its run is missing. KeyError for a number that its run does not have."""
        part, _, own = name.partition(":")
        row = self.rows.get(part)
        return None if row is None or row.error else row.metrics[own]

    def curve(self, name: str) -> Points:
        """The curve "PART:CURVE"; no points while its run is missing."""
        part, _, own = name.partition(":")
        row = self.rows.get(part)
        return [] if row is None or row.error else [(x, y) for x, y in row.curves[own]]

    @property
    def comparisons(self) -> list[Comparison]:
        """All quantities of the figure."""
        return [
            Comparison(quantity, None if quantity.measured is None else self.number(quantity.measured))
            for quantity in self.figure.quantities
        ]


def count(outcomes: Iterable[Outcome]) -> Counter[str]:
    """How many quantities have which verdict."""
    return Counter(comparison.verdict for outcome in outcomes for comparison in outcome.comparisons)


def number(value: float | None) -> str:
    """A number as tables show it: four digits; a very small one without a power of ten."""
    if value is None:
        return "–"
    if 0 < abs(value) < 1e-4:
        return f"{value:.6f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
