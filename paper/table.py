"""The tables of a reproduction as rows of words, for the page and for Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence

from paper.outcome import BEYOND, CALIBRATION, IMPOSSIBLE, NOT_RUN, WITHIN_FAR, WITHIN_NEAR, Outcome, count, number
from paper.parameters import PARAMETERS

Rows = list[list[str]]
QUANTITY_HEAD = ["quantity", "unit", "paper", "here", "difference", "verdict"]
SUMMARY_HEAD = ["figure", "", "within 5 %", "within 15 %", "farther off", "not reproduced", "seconds"]
PARAMETER_HEAD = ["parameter", "value", "source"]
WHY_HEAD = ["figure", "quantities", "why"]
EXPERIMENT_HEAD = ["what was changed", "quantity", "unit", "paper", "as above", "changed"]


def quantities(outcome: Outcome) -> Rows:
    """A row a quantity."""
    return [
        [
            one.quantity.name,
            one.quantity.unit,
            number(one.quantity.paper),
            number(one.ours),
            one.difference_shown,
            one.verdict,
        ]
        for one in outcome.comparisons
    ]


def experiments(outcome: Outcome) -> Rows:
    """A row an experiment: the quantity as the figure has it, and as it became with one knob changed."""
    known = {one.quantity.name: one for one in outcome.comparisons}
    rows = []
    for one in outcome.figure.experiments:
        usual = known[one.quantity]
        row = [one.knob, one.quantity, usual.quantity.unit, number(usual.quantity.paper), number(usual.ours)]
        rows.append([*row, number(outcome.number(one.measured))])
    return rows


def summary(outcomes: Sequence[Outcome]) -> Rows:
    """A row a figure, those that nothing here reproduces among them, and all together."""
    rows = []
    for outcome in outcomes:
        found = count([outcome])
        name = outcome.figure.name
        if not outcome.rows:
            rows.append([name, outcome.figure.title, *[""] * 4, "not run"])
            continue
        near, far = found[WITHIN_NEAR], found[WITHIN_NEAR] + found[WITHIN_FAR]
        cells = [str(near), str(far), str(found[BEYOND]), str(found[IMPOSSIBLE])]
        ended = f"{outcome.seconds:.0f}" if outcome.whole else f"{len(outcome.rows)} of {len(outcome.parts)} runs"
        rows.append([name, outcome.figure.title, *cells, "broken off" if outcome.errors else ended])
    return rows


def verdict(outcomes: Sequence[Outcome]) -> str:
    """All figures together in a sentence."""
    found = count(outcomes)
    compared = found[WITHIN_NEAR] + found[WITHIN_FAR] + found[BEYOND]
    near, far = found[WITHIN_NEAR], found[WITHIN_NEAR] + found[WITHIN_FAR]
    return (
        f"Of {compared} quantities that were measured, {near} are within 5 % of the paper, {far} within 15 % and"
        f" {found[BEYOND]} farther off; {found[IMPOSSIBLE]} cannot be reproduced, {found[CALIBRATION]} calibrate the"
        " model"
        f" and count for nothing, {found[NOT_RUN]} were not run."
    )


def whys(outcomes: Sequence[Outcome]) -> Rows:
    """Quantities that are farther off or were not reproduced, those of one reason together; "unknown" without one."""
    named: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        for one in outcome.comparisons:
            if one.verdict in (BEYOND, IMPOSSIBLE):
                off = "" if one.difference is None else f" ({one.difference_shown})"
                named.setdefault((outcome.figure.name, one.quantity.why or "unknown"), []).append(
                    one.quantity.name + off
                )
    return [[figure, "; ".join(names), why] for (figure, why), names in named.items()]


def parameters() -> Rows:
    """Every parameter of the model with its source."""
    return [[one.name, one.value, one.source] for one in PARAMETERS]
