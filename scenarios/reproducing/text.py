"""What a terminal says: each quantity of figures that were asked for by name, or a line a figure."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.reproducing import table
from scenarios.reproducing.outcome import Outcome


def quantities(outcomes: Sequence[Outcome]) -> str:
    """A line a quantity: the paper's number, ours, the difference, how near that is."""
    lines = []
    for outcome in outcomes:
        rows = [[name, paper, ours, unit, off, how] for name, unit, paper, ours, off, how in table.quantities(outcome)]
        lines += [
            f"{outcome.figure.name}: {outcome.figure.title}",
            *columns([["", "paper", "here", "", "", ""], *rows]),
        ]
    return "\n".join(lines) + "\n"


def summary(outcomes: Sequence[Outcome]) -> str:
    """A line a figure: how many quantities are how near."""
    return "\n".join(columns([["figure", *table.SUMMARY_HEAD[1:]], *table.summary(outcomes)])) + "\n"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines; numbers to the right, words to the left."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *others = zip(row, widths, strict=True)
        cells = [first[0].ljust(first[1])]
        cells += [cell.rjust(width) if number(cell) else cell.ljust(width) for cell, width in others]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def number(cell: str) -> bool:
    return cell[:1].isdigit() or cell[:1] in ("+", "−")
