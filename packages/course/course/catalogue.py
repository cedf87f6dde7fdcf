"""The labs by number, in the order in which a course takes them."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from course.exercise import Exercise
from course.order import NAMES, name_of


class _Labs(Mapping[int, Exercise]):
    """Each lab is imported when it is asked for: all of them take two seconds."""

    def __getitem__(self, number: int) -> Exercise:
        if number not in range(1, len(NAMES) + 1):
            raise KeyError(number)
        lab: Exercise = import_module(f"course.labs.{NAMES[number - 1]}.tests").LAB
        return lab

    def __iter__(self) -> Iterator[int]:
        return iter(range(1, len(NAMES) + 1))

    def __len__(self) -> int:
        return len(NAMES)


LABS = _Labs()


def find(word: str) -> Exercise:
    """A lab by its number or name. ValueError with the valid ones."""
    return LABS[NAMES.index(name_of(word)) + 1]
