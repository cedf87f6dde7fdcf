"""Why rows miss: each quantity that is farther off than 15 % has one cause, and each cause an experiment."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from paper import texts
from paper.outcome import BEYOND, NEAR_ENOUGH, Outcome, number
from paper.random_loss import PROFILE

Rows = list[list[str]]
Changed = Mapping[tuple[str, str], tuple[str, str]]
"""By figure and quantity: the number of the run with the same seed, and that of the experiment, as tables show them.
A quantity on which several experiments were made is not in it."""
BAR = 0.75
"""The share of judged rows that should not be farther off."""
HEAD = ["cause", "rows", "figures", "too low", "too high"]
FILE = texts.read(Path(__file__).parent / "causes.toml")
INTRODUCTION: str = texts.filled(FILE["introduction"], {})
BESIDE = texts.load(Path(__file__).parent / "beside.toml") | {
    "repair_ms": PROFILE.roce["repair_ns"] / 1e6,
    "patience_us": PROFILE.mrc["loss_patience_ns"] / 1e3,
}
CELL = re.compile(r"\{([\w.]+): ([^{}]+): (\w+)\}")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of `causes.toml`: its name, the experiments that show it, and a pattern of quantities by figure."""

    name: str
    sentences: Sequence[str]
    quantities: Mapping[str, str]

    def explains(self, figure: str, quantity: str) -> bool:
        """Whether this is the cause of a quantity's miss."""
        pattern = self.quantities.get(figure)
        return pattern is not None and re.match(pattern, quantity) is not None

    def evidence(self, made: Sequence[Mapping[str, Any]], changed: Changed) -> str:
        """The sentences whose numbers are on the page."""
        known = [sentence(template, made, changed) for template in self.sentences]
        return " ".join(text for text in known if text is not None)


CAUSES = tuple(Cause(**entry) for entry in FILE["causes"])


def sentence(text: str, made: Sequence[Mapping[str, Any]], changed: Changed) -> str | None:
    """A sentence with the numbers of these rows of the page's JSON; None if one of them was not made."""

    def cell(field: re.Match[str]) -> str:
        figure, quantity, name = field.groups()
        numbers = dict(zip(("same", "changed"), changed.get((figure, quantity), ()), strict=False))
        for row in made:
            if (row["figure"], row["quantity"]) == (figure, quantity):
                numbers["paper"] = number(row["paper"])
                numbers["here"] = "" if row["ours"] is None else number(row["ours"])
                numbers["interval"] = " to ".join(number(value) for value in row["interval"] or ())
        if not numbers.get(name):
            raise LookupError(f"figure {figure}, {quantity}: there is no number {name!r}")
        return numbers[name]

    try:
        return CELL.sub(cell, " ".join(text.split())).format_map(BESIDE)
    except LookupError:
        return None


def experiments(outcomes: Sequence[Outcome]) -> Changed:
    """The numbers of all experiments that were run."""
    by_quantity: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for outcome in outcomes:
        for experiment in outcome.figure.experiments:
            same, changed = outcome.unchanged(experiment), outcome.number(experiment.measured)
            if same is not None and changed is not None:
                key = outcome.figure.name, experiment.quantity
                by_quantity.setdefault(key, []).append((number(same), number(changed)))
    return {key: pairs[0] for key, pairs in by_quantity.items() if len(pairs) == 1}


def cause_of(figure: str, quantity: str) -> Cause | None:
    """The cause of a quantity's miss, None where there is none known. ValueError where two claim it."""
    causes = [cause for cause in CAUSES if cause.explains(figure, quantity)]
    if len(causes) > 1:
        raise ValueError(f"{figure}, {quantity}: a miss has one cause (got {', '.join(c.name for c in causes)})")
    return causes[0] if causes else None


def row_cause(row: Mapping[str, Any]) -> str | None:
    """The name of the cause of a row of the page's JSON; None for a row that does not count, or is near enough."""
    if not row["counts"] or row["verdict"] != BEYOND:
        return None
    cause = cause_of(row["figure"], row["quantity"])
    return cause.name if cause else UNKNOWN


def table(made: Sequence[Mapping[str, Any]]) -> Rows:
    """The misses among the rows of the page's JSON, by cause, the most frequent first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in made:
        if name := row_cause(row):
            groups.setdefault(name, []).append(row)
    body = []
    for name, rows in sorted(groups.items(), key=lambda item: -len(item[1])):
        figures = ", ".join(dict.fromkeys(str(row["figure"]) for row in rows))
        low = sum(row["difference"] < 0 for row in rows)
        body.append([name, str(len(rows)), figures, str(low), str(len(rows) - low)])
    return body


def evidence_of(name: str, made: Sequence[Mapping[str, Any]], changed: Changed) -> str:
    """The experiments that show a cause, by its name, with the numbers of these rows and experiments."""
    return next((c.evidence(made, changed) for c in CAUSES if c.name == name), "No experiment has shown it.")


def bar(made: Sequence[Mapping[str, Any]]) -> str:
    """How far the rows are from the bar, in a sentence."""
    judged = [row for row in made if row["counts"]]
    near = sum(row["verdict"] in NEAR_ENOUGH for row in judged)
    wanted = ceil(BAR * len(judged))
    told = f"{near} of {len(judged)} judged rows are near, within 15 %"
    if near >= wanted:
        return f"{told}; the bar is {wanted} ({BAR:.0%})."
    missing = "1 row is" if wanted - near == 1 else f"{wanted - near} rows are"
    return f"{told}. The bar is {wanted} ({BAR:.0%}), so {missing} missing."
