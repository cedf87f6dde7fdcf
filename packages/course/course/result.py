"""The result of a check: gates with their values, tests with what was expected and what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.fields import document, read
from course.writable import writable

PASSED, NOT_YET, NOT_RUN = 0, 1, 2
"""Exit statuses of `./lab check`."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A number that decides: `value` must be at least or at most `limit`. `cause` is told in place of the test's advice
    when this gate is closed."""

    name: str
    value: float
    limit: float
    unit: str = ""
    at_most: bool = False
    cause: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", self.value + 0)  # a test may give a bool, which JSON has as no number

    @property
    def open(self) -> bool:
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    @property
    def description(self) -> str:
        """The value and the limit, as printed."""
        relation = "≤" if self.at_most else "≥"
        return f"{self.name} {four_digits(self.value)}{self.unit} ({relation} {four_digits(self.limit)}{self.unit})"


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """One test's finding. `look` are commands and files that show more."""

    __test__ = False  # pytest collects classes of this name

    passed: bool
    expected: str
    happened: str
    gates: tuple[Gate, ...] = ()
    look: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test of a lab, carried out. `score` is 0 or `points`; `printed` is the end of what the code printed.
    `defect`: the test itself ended with an error, so a teacher has to look at it. `waits` names the failed test without
    which this one doesn't count."""

    __test__ = False  # pytest collects classes of this name

    name: str
    title: str
    points: int
    outcome: TestOutcome
    seconds: float
    printed: str = ""
    defect: bool = False
    waits: str = ""

    def waiting(self, ground: str) -> TestResult:
        """The same where the test on which it rests has failed: it counts no more."""
        if not self.passed:
            return self
        happened = f"{self.outcome.happened}; this counts once the test {ground} passes"
        return replace(self, outcome=replace(self.outcome, passed=False, happened=happened), waits=ground)

    @property
    def passed(self) -> bool:
        return self.outcome.passed

    @property
    def score(self) -> int:
        return self.points if self.passed else 0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check of one file against one lab. `trouble` says why a check could not be run; it has no tests then.

    `version` is the digest of the code that graded the file, "" for a check outside of a grading.
    """

    lab: int
    student: str
    seed: int
    digest: str
    tests: tuple[TestResult, ...]
    seconds: float
    protection: tuple[str, ...] = ()
    trouble: str = ""
    version: str = ""

    @property
    def status(self) -> int:
        """0 passed, 1 not yet, 2 could not be run."""
        if self.trouble:
            return NOT_RUN
        return PASSED if self.tests and all(test.passed for test in self.tests) else NOT_YET

    @property
    def score(self) -> int:
        return sum(test.score for test in self.tests)

    @property
    def points(self) -> int:
        return sum(test.points for test in self.tests)

    @property
    def first_failure(self) -> TestResult | None:
        return next((test for test in self.tests if not test.passed and not test.waits), None)

    @property
    def defects(self) -> tuple[TestResult, ...]:
        """The tests that ended with an error."""
        return tuple(test for test in self.tests if test.defect)

    @property
    def printed(self) -> str:
        """The end of what the code printed up to the first failure, or at all."""
        first = self.first_failure
        until = self.tests.index(first) + 1 if first else len(self.tests)
        return next((test.printed for test in reversed(self.tests[:until]) if test.printed), "")

    def document(self) -> dict[str, Any]:
        """As JSON."""
        encoded: dict[str, Any] = document(self)
        return encoded

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> CheckResult:
        """The inverse of `document`, with texts that a file can hold. TypeError for anything else."""
        return read(cls, writable(values), TypeError)


def judged(
    expected: str, happened: str, gates: Sequence[Gate], look: Sequence[str] = (), advice: str = ""
) -> TestOutcome:
    """The outcome that follows from gates: passed when all of them are open; the first closed one is named.

    `happened` is a fact, and is told in any case; `look` and `advice` are for a student whose test failed.
    """
    closed = [gate for gate in gates if not gate.open]
    told = f"{happened}; {closed[0].description} fails" if closed else happened
    advice = (closed[0].cause or advice) if closed else ""
    told = f"{told}: {advice}" if advice else told
    return TestOutcome(not closed, expected, told, tuple(gates), tuple(look) if closed else ())


def four_digits(value: float) -> str:
    """A number with four significant digits at most."""
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
