"""`reproduction.md`: the same as the page, without pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paper import parameters, texts
from paper.outcome import TIE, Outcome
from paper.report import causes, standing, table

TEXTS: Mapping[str, str] = texts.load(Path(__file__).parent / "texts.toml", {"tie": round(TIE * 100)})
KNOBS = "Experiments, one knob at a time:"
WIDTH = 150


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The whole document."""
    parts = [
        "# The paper, figure by figure\n",
        "`./lab reproduce` made this page; edits by hand are lost.\n",
        wrapped(TEXTS["introduction"]),
        wrapped(table.verdict(outcomes)),
        "## Summary\n",
        rows(*table.summary(outcomes)),
    ]
    if orders := table.orders(outcomes):
        parts += ["## Order before size\n", wrapped(order_words(outcomes)), rows(table.ORDER_HEAD, orders)]
    if reasons := table.reasons(outcomes):
        parts += ["## What differs, and why\n"]
        parts += [wrapped(f"- **{figure}: {names}.** {why}", "  ") for figure, names, why in reasons]
    parts += missed(standing.all_rows(outcomes), causes.experiments(outcomes))
    for outcome in outcomes:
        parts += section(outcome)
    for title, text, _, body in apart(outcomes):
        parts += [f"## {title}\n", wrapped(text), *listed(body)]
    parts += ["## Parameters of the model\n", wrapped(TEXTS["one_set"]), rows(table.PARAMETER_HEAD, parameters.table())]
    return "\n".join(parts).rstrip("\n") + "\n"


def order_words(outcomes: Sequence[Outcome]) -> str:
    """The words above the table of orders."""
    return f"{TEXTS['order']} {table.order_notes(outcomes)}"


def missed(made: Sequence[Mapping[str, Any]], changed: causes.Changed) -> list[str]:
    """The section of the causes of misses, of rows as `reproduction.json` has them; none where nothing is missed."""
    if not (body := causes.table(made)):
        return []
    return [
        "## Misses by cause\n",
        wrapped(f"{causes.bar(made)} {causes.INTRODUCTION}"),
        rows(causes.HEAD, body),
        *(wrapped(f"- **{name}.** {causes.shown(name, made, changed)}", "  ") for name, *_ in body),
    ]


def apart(outcomes: Sequence[Outcome]) -> list[tuple[str, str, list[str], table.Rows]]:
    """The tables of rows that do not count: title, text, head and rows of each."""
    found = [
        ("Rows that calibrate", TEXTS["set_from"], table.CALIBRATION_HEAD, table.calibrating(outcomes)),
        ("Rows without power", TEXTS["power"], table.POWERLESS_HEAD, table.powerless(outcomes)),
        ("Rows out of reach", TEXTS["reach"], table.UNREACHABLE_HEAD, table.unreachable(outcomes)),
    ]
    return [one for one in found if one[3]]


def listed(body: table.Rows) -> list[str]:
    """Rows as a list, those of one figure and one reason together; a reason is too long for a table of Markdown."""
    named: dict[tuple[str, str], list[str]] = {}
    for figure, name, unit, theirs, ours, *reason in body:
        numbers = f"{theirs}, here {ours} {unit}".rstrip()
        named.setdefault((figure, " ".join(reason)), []).append(f"{name} ({numbers})")
    return [wrapped(f"- **{figure}: {'; '.join(names)}.** {why}", "  ") for (figure, why), names in named.items()]


def section(outcome: Outcome) -> list[str]:
    """A figure."""
    figure, experiments = outcome.figure, table.experiments(outcome)
    return [
        f"## {figure.name}: {figure.title}\n",
        wrapped(figure.caption),
        wrapped(figure.compression),
        *([rows(table.QUANTITY_HEAD, judged)] if (judged := table.quantities(outcome)) else []),
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
