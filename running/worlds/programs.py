"""Processes of programs in the simulated world: real ones, which virtual time waits for (`endpoint.uverbs.stepped`)."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from common import uverbs
from common.files import open_growing
from endpoint.uverbs import ProgramStuckError, SteppedProgram, SteppedUverbs

END_S = 30.0
"""Real time that a process may take to end, once it was asked to."""
QUIET_S = 60.0
COMPUTING = 0.01
"""A process without a NIC that uses less than this share of a processor for `QUIET_S` of real time hangs."""


class SteppedProcess:
    """`running.worlds.world.Process`. Its output goes to a file."""

    def __init__(self, host: str, argv: Sequence[str], log: Path, entrance: SteppedUverbs, settle: Callable[[], None]):
        """`settle` serves the programs that run, before anything is said of them. OSError if it cannot be started."""
        self._settle = settle
        self._place, theirs = entrance.admit(log.stem)
        # The kernel ends the process with this one, however this one ends.
        words = ["setpriv", "--pdeathsig", "TERM", "--", *argv]
        environment = {**os.environ, uverbs.STEPPED: f"{theirs.fileno()}:{host}"}
        with theirs, os.fdopen(open_growing(log, emptied=True), "wb") as output:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                pass_fds=[theirs.fileno()],
            )

    @property
    def place(self) -> SteppedProgram:
        return self._place

    def poll(self) -> int | None:
        """Its exit status; None while it runs. One that has closed its NIC needs no more virtual time to end, and is
        waited for as long as it computes. ProgramStuckError when it does not."""
        self._settle()
        while self._place.gone:
            before_s = computed_s(self._process.pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(QUIET_S)
            if computed_s(self._process.pid) - before_s < COMPUTING * QUIET_S:
                raise ProgramStuckError(
                    f"program {self._place.name} has no NIC any more, and neither ended nor computed for {QUIET_S:g} s:"
                    " virtual time cannot go on (docs/uverbs.md)"
                )
        return None

    def terminate(self) -> None:
        self._process.terminate()

    def end(self) -> None:
        """Make sure that it is gone."""
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def computed_s(pid: int) -> float:
    """Processor time of a process, its children, and so on; those that have ended count as well (proc(5))."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return 0.0
    own_s = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own_s + sum(computed_s(int(child)) for child in " ".join(lists).split())
