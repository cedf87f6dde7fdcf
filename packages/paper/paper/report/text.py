"""The text for a terminal: each quantity of figures that were asked for by name, or a line a figure."""

from collections.abc import Sequence

from common.terminal.columns import aligned
from paper.outcome import Outcome
from paper.report import table
from paper.report.table import TEXTS


def quantities(outcomes: Sequence[Outcome], *, judged: bool = True) -> str:
    """A line a quantity: the paper's number and ours; if they are judged, the difference and how near that is."""
    lines = [] if judged else [TEXTS["short"]]
    for outcome in outcomes:
        rows = [["", "paper", "here", "", *["", ""] * judged]]
        for comparison in outcome.comparisons:
            name, unit, paper, ours = table.basic_cells(comparison)
            rows.append([name, paper, ours, unit, *[comparison.difference_shown, comparison.verdict] * judged])
        lines += [f"{outcome.figure.name}: {outcome.figure.title}", *(f"  {line}" for line in aligned(rows))]
    return "\n".join(lines) + "\n"


def summary(outcomes: Sequence[Outcome], *, judged: bool = True) -> str:
    """A line a figure: how many quantities are how near, or how many runs were made."""
    head, rows = table.summary(outcomes) if judged else (table.RUNS_HEAD, table.runs(outcomes))
    return "\n".join([*([] if judged else [TEXTS["short"]]), *aligned([head, *rows])]) + "\n"
