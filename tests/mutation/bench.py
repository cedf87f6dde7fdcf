"""A copy of the tree in which mutants are planted one after the other, and the tests that judge each."""

import ctypes
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from tests.mutation.covering import MODULES, RESULT, Covering
from tests.mutation.mutants import Mutant
from tests.mutation.quick import CHOSEN

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

    def __init__(self, root: Path, place: Path, path: Sequence[Path] = (), ring: str = "1") -> None:
        """`path` is searched for modules after the copy. Tests of ring 0 or of rings 0 and 1 judge."""
        self.place, self._ring = place, ("--ring", "0") if ring == "0" else ()
        self._path = os.pathsep.join(map(str, (place, *path)))
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
        text = hashlib.sha256()
        for name in sorted(listed.decode().split("\0")):
            if name and (root / name).is_file():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / name, place / name)
                text.update(name.encode() + (place / name).read_bytes())
        text.update(ring.encode())
        self.digest = text.hexdigest()
        self.log = place / "last-mutant.log"

    def run(self, tests: Sequence[str], without: Sequence[str], limit_s: float) -> Fate:
        """Whether the tests fail in the copy as it is now. A test's name with `::` stands for this test alone."""
        files = sorted({test.split("::")[0] for test in tests})
        if files == sorted(tests):
            return self._pytest([*(f"--ignore={name}" for name in without), *tests], {}, limit_s)
        chosen = self.place / "chosen-tests"
        chosen.write_text("\n".join(tests))
        return self._pytest(files, {CHOSEN: str(chosen)}, limit_s)

    def measure(
        self, modules: Sequence[Path], tests: Sequence[str], without: Sequence[str], result: Path, limit_s: float
    ) -> Covering | Fate:
        """Which tests run which lines of the modules, kept in a file; or the fate, if the tests do not pass."""
        kept = result.with_name(f"{result.name}.{self.digest[:16]}.json")
        if not kept.exists():
            here = {MODULES: os.pathsep.join(map(str, modules)), RESULT: str(result)}
            words = ["-p", "tests.mutation.covering", *(f"--ignore={name}" for name in without), *tests]
            fate = self._pytest(words, here, limit_s)
            if fate is not Fate.SURVIVED:
                return fate
            result.rename(kept)
        return Covering.read(kept)

    def _pytest(self, words: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Fate:
        command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutation.quick", "-m", "not root and not slow", *self._ring, *words]
        # The copy comes before the installed tree, in children too; a compiled endpoint would hide what is planted.
        here = {"PYTHONPATH": self._path, "PYTHONDONTWRITEBYTECODE": "1", "MRCLAB_COMPILED": "off", **environment}
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.place, env={**os.environ, **here}, stdout=log, stderr=log, preexec_fn=_limited,
                start_new_session=True,
            )  # fmt: skip
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
