"""Names on a chart over time, in rows above it, so that none lies on another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ROWS_MAX = 3


@dataclass(frozen=True, slots=True)
class ChartLabel:
    """A name at its time. `row` counts from the chart upwards; None: there was no room left for it."""

    at: float
    text: str
    row: int | None


def placed(names: Sequence[tuple[float, str]], end: float, characters: float, rows: int = ROWS_MAX) -> list[ChartLabel]:
    """Each name in the lowest row where it has room. The whole chart, 0 to `end`, is `characters` wide.

    A name begins at its time; one that would reach beyond the end is moved to the left.
    """
    free = [0.0] * rows
    found = []
    for at, text in sorted(names):
        width = (len(text) + 1) * end / characters
        start = max(0.0, min(at, end - width))
        row = next((row for row in range(rows) if free[row] <= start + 1e-9), None)
        if row is not None:
            free[row] = start + width
        found.append(ChartLabel(start, text, row))
    return found
