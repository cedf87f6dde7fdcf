"""A check from outside: the worker's process, its limits, and the result that it leaves."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

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


def check(
    lab: Exercise, path: Path, source: str, student: Student, folder: Path, seed: int | None = None
) -> CheckResult:
    """Check the text of the file at `path`. A check that could not be run says so in its result."""
    folder.mkdir(parents=True, exist_ok=True)
    number = student.seed(lab.number) if seed is None else seed
    request = {
        "lab": lab.number,
        "path": str(path.resolve()),
        "source": source,
        "student": student.name,
        "seed": number,
        "folder": str(folder.resolve()),
        "parent": os.getpid(),
    }
    process = subprocess.Popen(
        python("-m", "course.worker"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,
        text=True,
    )
    most = P4_MEMORY_BYTES if Path(lab.file).suffix == ".p4" else MEMORY_BYTES
    resource.prlimit(process.pid, resource.RLIMIT_AS, (most, most))
    said, trouble = "", ""
    try:
        said, errors = process.communicate(json.dumps(request), timeout=SECONDS_MAX)
        if process.returncode == 0:
            return CheckResult.read(json.loads(said))
        last = (errors.strip().splitlines() or ["no message"])[-1]
        trouble = f"the check ended with status {process.returncode}: {last}"
        if last.startswith("MemoryError"):
            trouble = f"the check needed more than the {most >> 20} MiB of memory that it may have"
    except subprocess.TimeoutExpired:
        trouble = f"the check took more than {SECONDS_MAX:g} s"
    except (ValueError, KeyError, TypeError, RecursionError):
        trouble = f"the check must answer with a result (got {said[:80]!r}); this is a defect of the lab"
    finally:
        end(process)
    return not_run(lab, student, number, trouble)


def end(process: subprocess.Popen[str]) -> None:
    """End a worker and the boxes that it has started: they are in one session."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
