"""The paper's numbers against a second reading of a third of them, made without sight of the first."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paper import readings
from paper.readings import Reading

FILE = Path(__file__).with_name("second_reading.toml")
ROUNDING = 1e-9
"""What binary fractions may be off: two readings may differ by exactly the sum of their errors."""


@dataclass(frozen=True, slots=True)
class Second:
    """A number read again, and what that reading may be off, both in the unit of the first reading."""

    value: float
    error: float


def second() -> dict[str, dict[str, Second]]:
    """The second readings by figure and name; TypeError for a key that none has."""
    document = tomllib.loads(FILE.read_text())
    return {figure: {name: Second(**entry) for name, entry in entries.items()} for figure, entries in document.items()}


def disagreements(first: Mapping[str, Reading], again: Mapping[str, Second]) -> list[str]:
    """The numbers of a figure whose two readings are further apart than their errors together."""
    return [
        f"{name}: {first[name].value} ± {first[name].error}, again {two.value} ± {two.error}"
        for name, two in again.items()
        if abs(first[name].value - two.value) > first[name].error + two.error + ROUNDING
    ]


def test_a_second_reading_of_a_third_of_the_papers_numbers_agrees() -> None:
    """Truth: the paper itself, read twice by different means. The draw is described in the file."""
    found = second()
    assert sum(map(len, found.values())) == 128
    assert {figure: disagreements(readings.of(figure), again) for figure, again in found.items()} == {
        figure: [] for figure in found
    }
