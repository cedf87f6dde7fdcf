"""A check from outside: the worker's process, its limits, and the result that it leaves."""

import json
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import plain_file
from common.interpreter import python
from course.box.box import SOURCE_BYTES_MAX
from course.exercise import Exercise
from course.result import CheckResult
from course.student import Student

MEMORY_BYTES = 4 << 30  # of addresses, not of memory: libraries reserve much that they never touch
P4_MEMORY_BYTES = 1 << 30  # of a check of P4, which compiles no C: a check needs 320 MiB, a program at most 256 MiB
SECONDS_MAX = 600.0


def read(path: Path) -> str:
    """The text of a student's file. OSError when it cannot be read or is too large."""
    return plain_file.read_up_to(path, SOURCE_BYTES_MAX).decode(errors="replace")


def not_run(lab: Exercise, student: Student, seed: int, trouble: str) -> CheckResult:
    """The result of a check that could not be run."""
    return CheckResult(lab.number, student.name, seed, "", (), 0.0, (), trouble)


def nothing(name: str) -> None:
    """A progress callback that does nothing."""


def check(
    lab: Exercise,
    path: Path,
    source: str,
    student: Student,
    folder: Path,
    seed: int | None = None,
    only: Sequence[str] = (),
    tell: Callable[[str], None] = nothing,
) -> CheckResult:
    """Check the text of the file at `path`. A check that could not be run says so in its result.

    `only` are the names of the tests to run, all without one; `tell` is called with each name as its test begins.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = student.seed(lab.number) if seed is None else seed
    if lab.answers and (why := student.other_start(lab.number, source)):
        return not_run(lab, student, number, why)
    request = {
        "lab": lab.number,
        "path": str(path.resolve()),
        "source": source,
        "student": student.name,
        "seed": number,
        "folder": str(folder.resolve()),
        "parent": os.getpid(),
        "only": list(only),
    }
    result = carried_out(request, tell)
    return not_run(lab, student, number, result) if isinstance(result, str) else result


def carried_out(request: dict[str, Any], tell: Callable[[str], None]) -> CheckResult | str:
    """The result of a request, from a worker's process; a text that says why there is none."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        python("-m", "course.worker"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
        text=True,
        pass_fds=(writing,),
    )
    os.close(writing)
    telling = threading.Thread(target=tell_names, args=(reading, tell))
    telling.start()
    most = P4_MEMORY_BYTES if Path(request["path"]).suffix == ".p4" else MEMORY_BYTES
    resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))
    said = ""
    try:
        said, errors = process.communicate(json.dumps({**request, "names": writing}), timeout=SECONDS_MAX)
        if process.returncode == 0:
            return CheckResult.read(json.loads(said))
        last = (errors.strip().splitlines() or ["no message"])[-1]
        if last.startswith("MemoryError"):
            return f"the check needed more than the {most >> 20} MiB of memory that it may have"
        return f"the check ended with status {process.returncode}: {last}"
    except subprocess.TimeoutExpired:
        return f"the check took more than {SECONDS_MAX:g} s"
    except (ValueError, KeyError, TypeError, RecursionError):
        return f"the check must answer with a result (got {said[:80]!r}); this is a defect of the lab"
    finally:
        end(process)
        telling.join()


def tell_names(reading: int, tell: Callable[[str], None]) -> None:
    """Tell of each name that a worker writes, until it has ended."""
    with open(reading) as names:
        for name in names:
            tell(name.strip())


def end(process: subprocess.Popen[str]) -> None:
    """End a worker and the boxes that it has started: they are in one session."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
