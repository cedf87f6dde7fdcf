"""`reproduction.md`: the same as the page, without pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from paper.outcome import TIE, Outcome
from paper.report import causes, cited, standing, table

INTRODUCTION = (
    "Figures of Araujo et al., “Resilient AI Supercomputer Networking using MRC and SRv6” (arXiv:2605.04333), run here"
    " in virtual time at the paper's own rates, beside the paper's numbers. A quantity counts only if some experiment"
    " makes it fail and if no part of the model was set from it. A quantity that is more than 15 % off keeps its row."
    " The row gives the reason, as far as experiments (one knob at a time) or the paper show it. A number that was"
    " read off one of the paper's curves has an error. A quantity that is more than 15 % off, but by no more than this"
    " error, is “within the reading's error”; it does not count as near. `reproduction.json` has the same"
    " for programs, and the error of each reading."
)
POWER = (
    "Each quantity names an experiment: a broken transport or the other one, a rule that is off, a fault that stays or"
    " is left out, another loss rate, setting or placement. If ours is still within 15 % of the paper's there, within"
    " the reading's error, or inside the interval, the quantity says nothing about the transport. One experiment is"
    " enough, and another may leave the row near: `paper.md` counts the rows that two such experiments leave near."
)
REACH = "No setting of the transport could give the paper's number here, so these do not count either."
SET = "Values of the model, or of a device profile, were set from these numbers of the paper."
ORDER = (
    "This table compares only the order of two numbers, before their size. Each ratio is the first number divided by"
    " the second. An order agrees if the same number is larger here, or if both ratios are ties, within"
    f" {TIE * 100:.0f} %."
)
ONE_SET = (
    "One set for all figures. No figure has a parameter of its own but its cluster, transport, workload and faults."
)
STRICT = (
    "The figures run MRC without any of the lab's own rules (`--transport mrc-strict`). `./lab run` does so as well,"
    " but for `trims_before_wait`, without which a message may never end (`docs/decisions/strict-by-default.md`), and"
    " for what a scenario asks for. Three do. `incast` asks for the receiver's penalty: its seven flows must be within"
    " 10 % of their mean. With seeds 1 to 10 strict MRC was false each time (seed 1: 49 % off), and 9 % of all packets"
    " were sent again; with the penalty it was true each time, with 0.6 %. No flow is slow for good: without a penalty"
    " the flows change places over hundreds of round trips, so that windows of 184 round trips are 61 to 127 % off,"
    " and 1,470 round trips together 25 % (seed 1). The paper's samples are of a second, which is tens of thousands of"
    " round trips. `nic-optics` asks for retries that end; strict MRC has those of the API's examples, without end,"
    " and waits for the light. `switch-reboot` asks for retransmissions in another plane: on real links one of six"
    " short runs without it kept 95.4 % of its goodput, and 96.6 % were needed. In virtual time it and the eight other"
    " scenarios that the ablation goes over, all but `incast`, were true with strict MRC and the seeds 1 to 100"
    " (`nic-port` whole, the others with `--time 0.3`), but for `grey-link` with seed 47, which is true with its whole"
    " phases. `ablation.md` has these runs, and scenarios without each rule, made by `./lab reproduce --ablate`."
)
KNOBS = "Experiments, one knob at a time:"
WIDTH = 150


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The whole document."""
    parts = [
        "# The paper, figure by figure\n",
        "`./lab reproduce` made this page; edits by hand are lost.\n",
        wrapped(INTRODUCTION),
        wrapped(table.verdict(outcomes)),
        "## Summary\n",
        rows(*table.summary(outcomes)),
    ]
    if orders := table.orders(outcomes):
        parts += ["## Order before size\n", wrapped(order_words(outcomes)), rows(table.ORDER_HEAD, orders)]
    if reasons := table.reasons(outcomes):
        parts += ["## What differs, and why\n"]
        parts += [wrapped(f"- **{figure}: {names}.** {why}", "  ") for figure, names, why in reasons]
    parts += missed(standing.all_rows(outcomes), cited.experiments(outcomes))
    for outcome in outcomes:
        parts += section(outcome)
    for title, text, _, body in apart(outcomes):
        parts += [f"## {title}\n", wrapped(text), *listed(body)]
    parts += ["## Strict MRC and the default\n", wrapped(STRICT)]
    parts += ["## Parameters of the model\n", wrapped(ONE_SET), rows(table.PARAMETER_HEAD, table.parameters())]
    return "\n".join(parts).rstrip("\n") + "\n"


def order_words(outcomes: Sequence[Outcome]) -> str:
    """The words above the table of orders."""
    return f"{ORDER} {table.order_notes(outcomes)}"


def missed(made: Sequence[Mapping[str, Any]], changed: cited.Changed) -> list[str]:
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
        ("Rows that calibrate", SET, table.CALIBRATION_HEAD, table.calibrating(outcomes)),
        ("Rows without power", POWER, table.POWERLESS_HEAD, table.powerless(outcomes)),
        ("Rows out of reach", REACH, table.UNREACHABLE_HEAD, table.unreachable(outcomes)),
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
