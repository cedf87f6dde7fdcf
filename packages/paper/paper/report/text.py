"""The text for a terminal: each quantity of figures that were asked for by name, or a line per figure."""

from collections.abc import Sequence

from common.terminal.columns import aligned
from paper.outcome import Outcome
from paper.report import table
from paper.report.table import TEXTS


def quantities(outcomes: Sequence[Outcome]) -> str:
    """A line per quantity: the paper's number and ours, the difference, and how near that is."""
    lines = []
    for outcome in outcomes:
        rows = [["", "paper", "here", "", "", ""]]
        for comparison in outcome.comparisons:
            name, unit, paper, ours = table.basic_cells(comparison)
            rows.append([name, paper, ours, unit, comparison.difference_shown, comparison.verdict])
        lines += [f"{outcome.figure.name}: {outcome.figure.title}", *(f"  {line}" for line in aligned(rows))]
    return "\n".join(lines) + "\n"


def summary(outcomes: Sequence[Outcome]) -> str:
    """A line per figure: how many quantities are how near."""
    head, rows = table.summary(outcomes)
    return "\n".join(aligned([head, *rows])) + "\n"


def runs(outcomes: Sequence[Outcome]) -> str:
    """A line per figure of a short form: how many runs were made."""
    return "\n".join([TEXTS["short"], *aligned([table.RUNS_HEAD, *table.runs(outcomes)])]) + "\n"
