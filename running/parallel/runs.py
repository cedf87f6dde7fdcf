"""A run on several processes: `mpiexec` and what it starts, from the side of the process that asked for it.

Each process makes the same run and carries out its part of it (`world.py`). The first one tells how far the run is, in
lines of JSON objects.
"""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from common import files, plain_file
from common.interpreter import python
from common.journal import Journal
from common.scratch import Scratch, remove_leftovers
from running.directory import RunDirectory
from running.document import spec_of, written
from running.parallel.communicator import PATIENCE_S, Ranks, world
from running.parallel.one_machine import OneMachine, end_with_parent
from running.parallel.world import PartWorld
from running.runner import PreparedRun, prepare
from running.spec import RunSpec
from running.worlds.simulated import collecting

__all__ = ["PROCESSES_MAX", "PartLostError", "journal_end", "make", "mpiexec", "with_mpiexec"]

OWN_MPIEXEC = Path(sys.executable).with_name("mpiexec")
"""Where mpich is a package of this Python's environment; its processes speak PMI 1.1 with `OneMachine`."""
MACHINES = "HYDRA_HOST_FILE"
"""The variable that names a list of several machines to `mpiexec`."""
PROCESSES_MAX = 256
SCRATCH = "mrclab-part-"
"""Begins the names of the processes' folders, which those that are killed leave."""
SPEC = "run.json"
"""The run as JSON, in its folder while the processes begin."""
BEAT_S = 0.25
WORDS_KEPT = 20


class PartsError(RuntimeError):
    """The processes of a run have ended early; the message has the reason."""


class PartLostError(PartsError):
    """A process of a run was killed, or ended without a reason; the message names it."""


def mpiexec() -> str:
    """The program that starts the processes: of this Python's environment, or of the system. ValueError without."""
    if importlib.util.find_spec("mpi4py") is not None:
        path = str(OWN_MPIEXEC) if OWN_MPIEXEC.exists() else shutil.which("mpiexec")
        if path is not None:
            return path
    raise ValueError("--processes needs mpi4py and mpich: use ./lab, or pip install --editable '.[parallel]'")


def with_mpiexec() -> bool:
    """Whether `mpiexec` starts the processes: on several machines, or with an MPI of the system. OSError for a list of
    machines that is no regular file: `mpiexec` would wait for the writer of a FIFO."""
    if machines := os.environ.get(MACHINES):
        plain_file.read_named(machines)
    return bool(machines) or not OWN_MPIEXEC.exists()


def make(spec: RunSpec, directory: RunDirectory, processes: int, told: Callable[[dict[str, Any]], None]) -> None:
    """Have so many processes make a run in its folder; `told` gets what the first one tells.

    Raises PartsError when any of them ends early, PartLostError if it gave no reason. All of them end with this
    call, also when it is interrupted.
    """
    files.write_json(directory.path / SPEC, written(spec))
    try:
        carried_out_by(python("-m", "running.parallel", str(directory.path)), processes, told)
    finally:
        (directory.path / SPEC).unlink(missing_ok=True)


def carried_out_by(command: Sequence[str], processes: int, told: Callable[[dict[str, Any]], None]) -> None:
    """Have so many processes run `command`, as `make` does."""
    starter = Mpiexec(command, processes) if with_mpiexec() else OneMachine(command, processes)
    said: deque[str] = deque(maxlen=WORDS_KEPT)
    reason = ""
    try:
        for line in starter:
            message = message_of(line)
            if message is None:
                said.append(line.strip())
            elif "reason" in message:
                reason = reason or str(message["reason"])
            else:
                told(message)
        failure = starter.failure()
    finally:
        starter.end()
        remove_leftovers(Path(tempfile.gettempdir()), SCRATCH)
    if failure and reason:
        raise PartsError(reason)
    if failure:
        raise PartLostError(f"a process of the run has ended ({failure}): {words_of(said)}".removesuffix(": "))


class Mpiexec:
    """The processes of one run, started by `mpiexec`. Iterating gives the lines that they print."""

    def __init__(self, command: Sequence[str], count: int) -> None:
        self._starter = subprocess.Popen(
            [mpiexec(), "-n", str(count), *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
            preexec_fn=partial(end_with_parent, signal.SIGTERM),
        )  # fmt: skip

    def __iter__(self) -> Iterator[str]:
        assert self._starter.stdout is not None
        return iter(self._starter.stdout)

    def failure(self) -> str:
        """Wait for all processes. Returns the exit status; "" when none failed."""
        status = self._starter.wait()
        return str(status) if status else ""

    def end(self) -> None:
        """SIGTERM has `mpiexec` end what it started; when it does not, the kernel does (`end_with_parent`)."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._starter.poll() is None:
                os.killpg(self._starter.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._starter.wait(PATIENCE_S)
        if self._starter.stdout is not None:
            self._starter.stdout.close()


def words_of(said: Iterable[str]) -> str:
    """The reason that `mpiexec` gives, or the last lines before it, without its banner."""
    lines = [line for line in said if line and not set(line) <= {"="} and not line.startswith("=  ")]
    named = [line.partition("EXIT STRING: ")[2] for line in lines if "EXIT STRING: " in line]
    return named[0] if named else " · ".join(lines[-3:])


def message_of(line: str) -> dict[str, Any] | None:
    """A line that a process has told, and not merely printed."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def journal_end(directory: RunDirectory, t_ns: int, error: BaseException) -> None:
    """Write down that a run was broken off, where its first process has not."""
    file = directory.journal("runner")
    if file.exists() and b'"kind":"error"' in file.read_bytes() and b'"fatal":true' in file.read_bytes():
        return
    journal = Journal(directory.journal("runner"), "runner", lambda: t_ns)
    journal.write("error", message=f"{type(error).__name__}: {error}", fatal=True)
    journal.close()


class Teller:
    """Speaks for the first process; the others say nothing."""

    def __init__(self, ranks: Ranks) -> None:
        self._first = ranks.rank == 0
        self._beaten_s = 0.0
        self.seconds: Callable[[], float | None] = lambda: None

    def tell(self, event: str) -> None:
        self._write(event=event)

    def beat(self, now_ns: int) -> None:
        """Tell the time in the run, a few times a second."""
        now_s = time.monotonic()
        if self._first and now_s - self._beaten_s > BEAT_S:
            self._beaten_s = now_s
            self._write(now_ns=now_ns)

    def _write(self, **fields: Any) -> None:
        if self._first:
            tell(seconds=self.seconds(), **fields)


def tell(**fields: Any) -> None:
    """A line for the process that asked for the run."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def part(folder: Path) -> int:
    """This process's part of the run in a folder, called in all of its processes. The exit status."""
    end_with_parent()
    ranks = Ranks(world())
    teller = Teller(ranks)
    with Scratch(SCRATCH) as scratch:
        try:
            spec = spec_of(plain_file.parse_json(plain_file.read_bytes(folder / SPEC)))
            carry_out(prepare(spec), RunDirectory(folder), scratch, ranks, teller)
        except BaseException as error:
            tell(reason=f"{type(error).__name__}: {error}")
            if not ranks.meet(PATIENCE_S):  # the others know nothing of it
                ranks.abort()
            return 1
        ranks.meet(None)
    return 0


def carry_out(prepared: PreparedRun, shared: RunDirectory, scratch: Path, ranks: Ranks, teller: Teller) -> None:
    (scratch / "journal").mkdir()
    own = shared if ranks.rank == 0 else RunDirectory(scratch)  # the runner's files are written once
    runner = prepared.runner(own, teller.tell)
    teller.seconds = runner.seconds
    spec = prepared.spec
    given = ranks, teller.beat, spec.plan, spec.choices.transport, spec.seed, shared, teller.tell
    with collecting():
        runner.run(partial(PartWorld, *given))
