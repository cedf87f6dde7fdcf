"""Carries a lab's tests out, one after the other, in this process; the student's code is in a box beside it."""

from __future__ import annotations

import time

from course.box.box import BoxError, LoadError
from course.exercise import Exercise, StudentWork, Test
from course.result import TestOutcome, TestResult

LOADS = "your file loads, and its code does what each call asks for"


def carry_out(lab: Exercise, work: StudentWork, until_failure: bool = False) -> tuple[TestResult, ...]:
    """The result of every test, or of those up to the first that fails. Code that doesn't load is tried once.

    An error of the student's code is a result; NotPossibleError passes through.
    """
    found: list[TestResult] = []
    for test in lab.tests:
        found.append(carried_out(test, work) if not work.unloadable else not_loaded(test, work))
        if until_failure and not found[-1].passed:
            break
    return tuple(found)


def carried_out(test: Test, work: StudentWork) -> TestResult:
    """One test's result."""
    began_s = time.monotonic()
    work.printed.clear()
    try:
        found = test.run(work)
    except BoxError as error:
        found = TestOutcome(False, LOADS, str(error))
        if isinstance(error, LoadError):
            work.unloadable = str(error)
    seconds = round(time.monotonic() - began_s, 3)
    return TestResult(test.name, test.title, test.points, found, seconds, work.printed[-1] if work.printed else "")


def not_loaded(test: Test, work: StudentWork) -> TestResult:
    """The result of a test that was left out."""
    return TestResult(test.name, test.title, test.points, TestOutcome(False, LOADS, work.unloadable), 0.0)
