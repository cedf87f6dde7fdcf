"""The process of one check: `python -m course.worker`. A request on standard input, the result on standard output.

A check has a process to itself, so that a file which takes the memory or the time of a check takes no other check's,
and so that a grader goes on after one that was killed.
"""

import hashlib
import json
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from course.box.box import BoxError, LoadError
from course.catalogue import LABS
from course.exercise import Exercise, NotPossibleError, StudentWork, Test
from course.result import CheckResult, TestOutcome, TestResult

# Carries a lab's tests out, one after the other, in this process; the student's code is in a box beside it.
LOADS = "your file loads, and its code does what each call asks for"


def carry_out(
    lab: Exercise,
    work: StudentWork,
    until_failure: bool = False,
    only: Sequence[str] = (),
    tell: Callable[[str], object] = str,
) -> tuple[TestResult, ...]:
    """The result of every test, or of those up to the first that fails. Code that doesn't load is tried once.

    `only` are names of tests; those on which they rest are run as well. `tell` hears each name as the test begins.
    An error of the student's code is a result; errors of the machine and NotPossibleError pass through.
    """
    wanted = {*only, *(test.ground for test in lab.tests if test.name in only)}
    results: dict[str, TestResult] = {}
    for test in lab.tests:
        if only and test.name not in wanted:
            continue
        tell(test.name)
        results[test.name] = carried_out(test, work) if not work.unloadable else not_loaded(test, work)
        if until_failure and not results[test.name].passed:
            break
    failed = {name for name, result in results.items() if not result.passed}
    grounds = {test.name: test.ground for test in lab.tests}
    return tuple(results[name].waiting(grounds[name]) if grounds[name] in failed else results[name] for name in results)


def carried_out(test: Test, work: StudentWork) -> TestResult:
    """One test's result. An error that the lab did not expect fails this test alone, and says so to the teacher."""
    began_s, defect = time.monotonic(), False
    work.printed.clear()
    try:
        outcome = test.run(work)
    except (NotPossibleError, OSError, MemoryError):  # the machine's fault, not the student's
        raise
    except BoxError as error:
        outcome = TestOutcome(False, LOADS, str(error))
        if isinstance(error, LoadError):
            work.unloadable = str(error)
    except Exception as error:
        defect, outcome = True, TestOutcome(False, LOADS, defect_text(error))
    seconds = round(time.monotonic() - began_s, 3)
    printed = work.printed[-1] if work.printed else ""
    return TestResult(test.name, test.title, test.points, outcome, seconds, printed, defect)


def defect_text(error: Exception) -> str:
    """An error of the lab in words, with the place where it was raised."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"the test ended with {type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno}). Look for a value"
        " of an odd type or size in your answers; the lab should have named it, so tell your teacher"
    )


def not_loaded(test: Test, work: StudentWork) -> TestResult:
    """The result of a test that was left out."""
    return TestResult(test.name, test.title, test.points, TestOutcome(False, LOADS, work.unloadable), 0.0)


def checked(request: dict[str, Any]) -> CheckResult:
    """The result of a request: lab, path, source, student, seed, and the folder for files to look at."""
    began_s = time.monotonic()
    lab, source = LABS[request["lab"]], request["source"]
    digest = hashlib.sha256(source.encode()).hexdigest()
    work = StudentWork(source, Path(request["path"]), request["seed"], Path(request["folder"]))
    trouble = ""
    tests: tuple[TestResult, ...] = ()
    try:
        with open(request["names"], "w") as names:
            tests = carry_out(lab, work, only=request["only"], tell=partial(print, file=names, flush=True))
    except NotPossibleError as error:
        trouble = str(error)
    seconds = round(time.monotonic() - began_s, 2)
    protection = tuple(sorted(work.protection))
    return CheckResult(lab.number, request["student"], work.seed, digest, tests, seconds, protection, trouble)


def end_with(parent: int) -> None:
    """End this process and its boxes, which are one session, as soon as the parent has ended, also by a kill."""

    def wait(handle: int) -> None:
        select.select([handle], [], [])
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, args=(os.pidfd_open(parent),), daemon=True).start()


def main() -> None:
    request = json.loads(sys.stdin.read())
    end_with(request["parent"])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else may write into the answer
    json.dump(checked(request).document(), answers)


if __name__ == "__main__":
    main()
