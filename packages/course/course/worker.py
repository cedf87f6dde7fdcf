"""The process of one check: `python -m course.worker`. A request on standard input, the result on standard output.

A check has a process to itself, so that a file which takes the memory or the time of a check takes no other check's,
and so that a grader goes on after one that was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from course import carrying
from course.catalogue import LABS
from course.exercise import NotPossibleError, StudentWork
from course.result import CheckResult, TestResult


def checked(request: dict[str, Any]) -> CheckResult:
    """The result of a request: lab, path, source, student, seed, and the folder for files to look at."""
    began_s = time.monotonic()
    lab, source = LABS[request["lab"]], request["source"]
    digest = hashlib.sha256(source.encode()).hexdigest()
    work = StudentWork(source, Path(request["path"]), request["seed"], Path(request["folder"]))
    trouble = ""
    tests: tuple[TestResult, ...] = ()
    try:
        tests = carrying.carry_out(lab, work)
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
