"""Carries a lab's tests out, one after the other, in this process; the student's code is in a box beside it."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

from course.box.box import BoxError, LoadError
from course.exercise import Exercise, NotPossibleError, StudentWork, Test
from course.result import TestOutcome, TestResult

LOADS = "your file loads, and its code does what each call asks for"


def carry_out(lab: Exercise, work: StudentWork, until_failure: bool = False) -> tuple[TestResult, ...]:
    """The result of every test, or of those up to the first that fails. Code that doesn't load is tried once.

    An error of the student's code is a result; errors of the machine and NotPossibleError pass through.
    """
    found: list[TestResult] = []
    for test in lab.tests:
        found.append(carried_out(test, work) if not work.unloadable else not_loaded(test, work))
        if until_failure and not found[-1].passed:
            break
    return tuple(found)


def carried_out(test: Test, work: StudentWork) -> TestResult:
    """One test's result. An error that the lab did not expect fails this test alone, and says so to the teacher."""
    began_s, defect = time.monotonic(), False
    work.printed.clear()
    try:
        found = test.run(work)
    except (NotPossibleError, OSError, MemoryError):  # the machine's fault, not the student's
        raise
    except BoxError as error:
        found = TestOutcome(False, LOADS, str(error))
        if isinstance(error, LoadError):
            work.unloadable = str(error)
    except Exception as error:
        defect, found = True, TestOutcome(False, LOADS, told(error))
    seconds = round(time.monotonic() - began_s, 3)
    printed = work.printed[-1] if work.printed else ""
    return TestResult(test.name, test.title, test.points, found, seconds, printed, defect)


def told(error: Exception) -> str:
    """An error of the lab in words, with the place where it was raised."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"the test ended with {type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno}). Look for a value"
        " of an odd type or size in your answers; the lab should have named it, so tell your teacher"
    )


def not_loaded(test: Test, work: StudentWork) -> TestResult:
    """The result of a test that was left out."""
    return TestResult(test.name, test.title, test.points, TestOutcome(False, LOADS, work.unloadable), 0.0)
