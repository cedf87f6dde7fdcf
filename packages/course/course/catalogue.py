"""The labs by number, in the order in which a course takes them."""

from course.exercise import Exercise
from course.labs.faults.tests import LAB as FAULTS
from course.labs.figure.tests import LAB as FIGURE
from course.labs.health.tests import LAB as HEALTH
from course.labs.hop.tests import LAB as HOP
from course.labs.ports.tests import LAB as PORTS
from course.labs.spray.tests import LAB as SPRAY
from course.labs.tables.tests import LAB as TABLES
from course.labs.trim.tests import LAB as TRIM
from course.labs.usids.tests import LAB as USIDS
from course.labs.window.tests import LAB as WINDOW

LABS: dict[int, Exercise] = {
    lab.number: lab for lab in (USIDS, HOP, TABLES, TRIM, SPRAY, HEALTH, WINDOW, PORTS, FAULTS, FIGURE)
}


def find(word: str) -> Exercise:
    """A lab by its number or name. ValueError with the valid ones."""
    for lab in LABS.values():
        if word in (str(lab.number), lab.name):
            return lab
    valid = ", ".join(f"{lab.number} ({lab.name})" for lab in LABS.values())
    raise ValueError(f"there is no lab {word!r}; valid are {valid}")
