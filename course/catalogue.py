"""The labs by number, in the order in which a course takes them."""

from __future__ import annotations

from course.lab import Lab
from course.labs.spray.tests import LAB as SPRAY
from course.labs.usids.tests import LAB as USIDS

LABS: dict[int, Lab] = {lab.number: lab for lab in (USIDS, SPRAY)}


def find(word: str) -> Lab:
    """A lab by its number or name. ValueError with the valid ones."""
    for lab in LABS.values():
        if word in (str(lab.number), lab.name):
            return lab
    valid = ", ".join(f"{lab.number} ({lab.name})" for lab in LABS.values())
    raise ValueError(f"there is no lab {word!r}; valid are {valid}")
