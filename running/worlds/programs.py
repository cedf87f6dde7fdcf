"""Processes of programs in the simulated world: real ones, which virtual time waits for (`endpoint.uverbs.stepped`)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from common import uverbs
from endpoint.uverbs.stepped import SteppedProgram, SteppedUverbs

END_S = 30.0
"""Real time that a process may take to end, once it has closed its NIC or was asked to end."""


class SteppedProcess:
    """`running.worlds.world.Process`. Its output goes to a file."""

    def __init__(self, host: str, argv: Sequence[str], log: Path, entrance: SteppedUverbs, settle: Callable[[], None]):
        """`settle` serves the programs that run, before anything is said of them. OSError if it cannot be started."""
        self._settle = settle
        self._place, theirs = entrance.admit(log.stem)
        # The kernel ends the process with this one, however this one ends.
        words = ["setpriv", "--pdeathsig", "TERM", "--", *argv]
        environment = {**os.environ, uverbs.STEPPED: f"{theirs.fileno()}:{host}"}
        with theirs, log.open("wb") as output:
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
        """Its exit status; None while it runs. One that has closed its NIC needs no more virtual time to end."""
        self._settle()
        return self._process.wait(END_S) if self._place.gone else None

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
