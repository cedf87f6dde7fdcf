"""A copy of the tree in which mutants are planted one after the other, and the tests that judge each."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from tests.mutation.mutants import Mutant
from tests.mutation.quick import RECORD

MEMORY_BYTES_MAX = 8 << 30  # data of one process: a loop that no longer ends must not take the machine's
TESTS_FAILED = 1  # pytest's own: 2 to 5 say that it did not judge, such as a module that cannot be imported


_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"
    BROKEN = "broken"  # pytest did not judge: no kill


def _limited() -> None:
    """Before pytest begins: it gives way to other work, has bounds, and ends when the tool is killed."""
    os.nice(5)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))


class Bench:
    """The copy of a tree's tracked files in an empty folder. Nothing in the tree itself is changed."""

    def __init__(self, root: Path, place: Path, path: Sequence[Path] = ()) -> None:
        """`path` is searched for modules after the copy."""
        self.place = place
        self._path = os.pathsep.join(map(str, (place, *path)))
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
        for name in listed.decode().split("\0"):
            if name and (root / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / name, place / name)
        self.log = place / "last-mutant.log"

    def run(self, tests: Sequence[str], without: Sequence[str], limit_s: float) -> Fate:
        """Whether the tests fail in the copy as it is now."""
        words = [
            sys.executable,
            "-B",
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.mutation.quick",
        ]
        words += ["-m", "not root and not slow", *(f"--ignore={name}" for name in without), *tests]
        # The copy comes before the installed tree, in children too; a compiled endpoint would hide what is planted.
        environment = {
            **os.environ,
            "PYTHONPATH": self._path,
            "PYTHONDONTWRITEBYTECODE": "1",
            "MRCLAB_COMPILED": "off",
            RECORD: str(self.place / f"tests-{zlib.crc32(repr(tests).encode()):08x}.json"),
        }
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                words,
                cwd=self.place,
                env=environment,
                stdout=log,
                stderr=log,
                preexec_fn=_limited,
                start_new_session=True,
            )
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return Fate.TIMED_OUT
            finally:
                self._end(process)
        return {0: Fate.SURVIVED, TESTS_FAILED: Fate.KILLED}.get(status, Fate.BROKEN)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        """End what the tests have left running, also when a mutant keeps them from cleaning up."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def judge(self, mutant: Mutant, tests: Sequence[str], without: Sequence[str], limit_s: float) -> Fate:
        """The fate of a mutant; the copy is afterwards as it was."""
        path = self.place / mutant.path
        source = path.read_bytes()
        path.write_bytes(mutant.applied(source))
        try:
            return self.run(tests, without, limit_s)
        finally:
            path.write_bytes(source)
