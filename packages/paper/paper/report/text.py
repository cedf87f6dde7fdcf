"""The text for a terminal: each quantity of figures that were asked for by name, or a line a figure."""

from __future__ import annotations

from collections.abc import Sequence

from common.terminal.columns import aligned
from paper.outcome import Outcome
from paper.report import table


def quantities(outcomes: Sequence[Outcome]) -> str:
    """A line a quantity: the paper's number, ours, the difference, how near that is."""
    lines = []
    for outcome in outcomes:
        rows = [
            [name, paper, ours, unit, comparison.difference_shown, comparison.verdict]
            for comparison in outcome.comparisons
            for name, unit, paper, ours in [table.basic_cells(comparison)]
        ]
        lines += [
            f"{outcome.figure.name}: {outcome.figure.title}",
            *(f"  {line}" for line in aligned([["", "paper", "here", "", "", ""], *rows])),
        ]
    return "\n".join(lines) + "\n"


def summary(outcomes: Sequence[Outcome]) -> str:
    """A line a figure: how many quantities are how near."""
    head, rows = table.summary(outcomes)
    return "\n".join(aligned([head, *rows])) + "\n"
