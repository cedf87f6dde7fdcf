"""`reproduction.md`: the same as the page, without pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from paper import table
from paper.outcome import Outcome

INTRODUCTION = (
    "Every figure of Araujo et al., “Resilient AI Supercomputer Networking using MRC and SRv6” (arXiv:2605.04333), run"
    " here in virtual time at the paper's own rates, beside the paper's numbers. A quantity that is more than 15 % off"
    " keeps its row, with what experiments (one knob at a time) or the paper say of the reason; nothing is fitted."
)
ONE_SET = (
    "One set for all figures. No figure has a parameter of its own but its cluster, transport, workload and faults."
)
KNOBS = "Experiments, one knob at a time:"
HOW = "how it is measured here"
WIDTH = 150


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The whole document."""
    parts = [
        "# The paper, figure by figure\n",
        "`./lab reproduce` made this page; edits by hand are lost.\n",
        wrapped(INTRODUCTION),
        wrapped(table.verdict(outcomes)),
        "## Summary\n",
        rows(table.SUMMARY_HEAD, table.summary(outcomes)),
    ]
    if whys := table.whys(outcomes):
        parts += ["## What differs, and why\n"]
        parts += [wrapped(f"- **{figure}: {names}.** {why}", "  ") for figure, names, why in whys]
    for outcome in outcomes:
        parts += section(outcome)
    parts += ["## Parameters of the model\n", wrapped(ONE_SET), rows(table.PARAMETER_HEAD, table.parameters())]
    return "\n".join(parts).rstrip("\n") + "\n"


def section(outcome: Outcome) -> list[str]:
    """A figure."""
    figure, experiments = outcome.figure, table.experiments(outcome)
    return [
        f"## {figure.name}: {figure.title}\n",
        wrapped(figure.caption),
        wrapped(figure.compression),
        rows(table.QUANTITY_HEAD, table.quantities(outcome)),
        *([wrapped(KNOBS), rows(table.EXPERIMENT_HEAD, experiments)] if experiments else []),
        *(wrapped(note) for note in figure.notes),
    ]


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(cells).strip() + " |" for cells in (head, ["---"] * len(head), *body)]
    return "\n".join(lines) + "\n"


def wrapped(text: str, hanging: str = "") -> str:
    """A paragraph in lines of at most WIDTH characters; `hanging` begins every line but the first."""
    return textwrap.fill(text, WIDTH, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False) + "\n"
