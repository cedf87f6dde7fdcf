"""A lab of the course, called an exercise in the code: a page, a starter, tests that run in their order, and hints.

Students and pages say "lab"; in the code, a lab is a running network.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from common.seeds import Purpose, derive
from course.box.box import Box, BoxLimits, opened
from course.order import NAMES
from course.result import TestOutcome

T = TypeVar("T")
LABS = Path(__file__).with_name("labs")
HINTS = 3
"""Steps of hints for each test: the place to look at, the idea, the code."""


def typed(path: Path) -> Path:
    """A path as a reader types it: from the current folder, where the path is inside."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


class NotPossibleError(RuntimeError):
    """A check cannot be run, and the student is not the reason."""


@dataclass(slots=True)
class StudentWork:
    """The input of a test: the student's source, the seed, and a folder for what a reader may want to open.

    `protection` collects how the student's code was contained, `printed` the end of what it printed in each box, `kept`
    what several tests share. `brief` leaves out what only a reader needs: a hunt says what broke, and neither shrinks
    the schedule nor writes it down. `unloadable` says why the code could not be loaded.
    """

    source: str
    path: Path
    seed: int
    folder: Path
    protection: set[str] = field(default_factory=set)
    printed: list[str] = field(default_factory=list)
    kept: dict[str, Any] = field(default_factory=dict)
    brief: bool = False
    unloadable: str = ""

    def once(self, name: str, make: Callable[[], T]) -> T:
        """The result of `make`, made once for all tests of the check."""
        if name not in self.kept:
            self.kept[name] = make()
        result: T = self.kept[name]
        return result

    def rng(self, purpose: str) -> Random:
        """The generator for one purpose, always at its beginning."""
        return Random(derive(self.seed, Purpose.CHECK, purpose))

    def box(self, limits: BoxLimits | None = None) -> AbstractContextManager[Box]:
        """The student's code in a process with limits. BoxError for code that cannot be loaded."""
        return opened(self.source, self.path.name, limits or BoxLimits(), self.protection, self.printed)


@dataclass(frozen=True, slots=True)
class Test:
    """A sentence that must hold of the student's work. `run` may raise BoxError: the student's code has failed.

    `ground` names the test without which this one counts for nothing: a file that does nothing at all would pass.
    """

    __test__ = False  # pytest collects classes of this name

    name: str
    title: str
    points: int
    run: Callable[[StudentWork], TestOutcome]
    ground: str = ""


def no_change(text: str, seed: int) -> str:
    """The starter as it is."""
    return text


@dataclass(frozen=True)
class Exercise:
    """`fill` puts a student's own values into the starter. `extra` are files to read beside the student's, by name;
    `solve` puts the values of a seed into the reference.

    `answers`: the file holds answers to the questions of a seed, so another seed is another exercise.
    """

    name: str
    title: str
    minutes: int
    tests: Sequence[Test]
    fill: Callable[[str, int], str] = no_change
    extra: Callable[[int], dict[str, str]] = lambda seed: {}
    solve: Callable[[str, int], str] = no_change
    answers: bool = False

    @property
    def number(self) -> int:
        return NAMES.index(self.name) + 1

    @cached_property
    def file(self) -> str:
        """The name of the student's file in `mylab/`."""
        return f"{self.name}{self._starter.suffix}"

    @property
    def folder(self) -> Path:
        return LABS / self.name

    @property
    def page(self) -> Path:
        return self.folder / "README.md"

    def starter(self, seed: int) -> str:
        """The file that a student begins with."""
        return self.fill(self._starter.read_text(), seed)

    @cached_property
    def _starter(self) -> Path:
        return next(self.folder.glob("starter.*"))

    @cached_property
    def hints(self) -> dict[str, tuple[str, ...]]:
        """By test: the steps of `hints.md`, a section for each test and a numbered list in it."""
        by_test: dict[str, tuple[str, ...]] = {}
        for section in re.split(r"^## ", (self.folder / "hints.md").read_text(), flags=re.MULTILINE)[1:]:
            name, _, text = section.partition("\n")
            steps = re.split(r"^\d\. ", text.strip(), flags=re.MULTILINE)[1:]
            by_test[name.strip()] = tuple(" ".join(step.split()) for step in steps)
        return by_test

    @property
    def points(self) -> int:
        return sum(test.points for test in self.tests)
