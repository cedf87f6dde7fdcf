"""Sentences that take their numbers from the rows of the same page, so that text and tables cannot differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paper.outcome import Outcome, number

Changed = Mapping[tuple[str, str, str], tuple[str, str]]
"""By figure, by what was changed, and by quantity: the number of the run with the same seed, and that of the
experiment, as tables show them."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Text with fields `{NAME[paper]}`, `{NAME[here]}`, `{NAME[interval]}`, `{NAME[same]}` and `{NAME[changed]}`.

    `rows` gives the figure and the quantity of each NAME; `knob` names the experiment that `changed` is of, and `same`
    is its run without the change, which has one seed.
    """

    text: str
    rows: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    knob: str = ""

    def filled(self, made: Sequence[Mapping[str, Any]], changed: Changed) -> str | None:
        """The text with the numbers of these rows of `reproduction.json`; None if one of them was not made."""
        try:
            return self.text.format(**{name: self._cells(*row, made, changed) for name, row in self.rows.items()})
        except KeyError:
            return None

    def _cells(self, figure: str, quantity: str, made: Sequence[Mapping[str, Any]], changed: Changed) -> dict[str, str]:
        found = {}
        for row in made:
            if (row["figure"], row["quantity"]) == (figure, quantity):
                found = {"paper": number(row["paper"])}
                if row["ours"] is not None:
                    found["here"] = number(row["ours"])
                if row["interval"] is not None:
                    found["interval"] = " to ".join(number(value) for value in row["interval"])
        if (key := (figure, self.knob, quantity)) in changed:
            found["same"], found["changed"] = changed[key]
        return found


def experiments(outcomes: Sequence[Outcome]) -> dict[tuple[str, str, str], tuple[str, str]]:
    """The numbers of all experiments that were run."""
    return {
        (outcome.figure.name, one.knob, one.quantity): (number(same), number(changed))
        for outcome in outcomes
        for one in outcome.figure.experiments
        if (same := outcome.unchanged(one)) is not None and (changed := outcome.number(one.measured)) is not None
    }
