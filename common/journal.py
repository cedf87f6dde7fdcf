"""A process's own journal file: one JSON object a line, one write a line (docs/contracts.md, "Journal").

A reader may open the file at any moment, also after the writer was killed. `judging/journal.py` reads.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Journal:
    """Appends lines to a file; without a path it writes nothing. Threads may share a journal.

    `clock` gives the nanoseconds of lines written without a time: CLOCK_MONOTONIC, which all hosts of a lab share.
    """

    def __init__(self, path: str | Path | None, node: str, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """Raises OSError when the file cannot be opened or made."""
        self.node = node
        self._clock = clock
        self._path = path
        self._fd = -1 if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._torn = False

    @property
    def enabled(self) -> bool:
        """Whether there is a file to write to."""
        return self._fd >= 0

    def write(self, kind: str, *, t_ns: int | None = None, node: str | None = None, **fields: Any) -> None:
        """Append a line, at `t_ns` or now. Fields must be JSON.

        Raises OSError, which names the file, when the file cannot take the line. A line that was taken in part is ended
        before the next one, so that only the torn line is lost.
        """
        if self._fd >= 0:
            t_ns = self._clock() if t_ns is None else t_ns
            line = {"t_ns": t_ns, "node": node or self.node, "kind": kind, **fields}
            self._append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def _append(self, data: bytes) -> None:
        if self._torn:
            data = b"\n" + data
        try:
            taken = os.write(self._fd, data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        self._torn = taken < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def write_at(self, t_ns: int, kind: str, fields: Mapping[str, Any]) -> None:
        """`write` for a line in the form in which hosts hand out theirs: time, kind, fields."""
        self.write(kind, t_ns=t_ns, **fields)

    def write_process(self, role: str, *, pid: int | None = None, realtime_ns: int | None = None) -> None:
        """The first line of every process: who writes, with which release, and the wall clock at that moment.

        A node in virtual time gives its own process id and wall clock, so that a seed repeats this line too.
        """
        pid = os.getpid() if pid is None else pid
        realtime_ns = time.time_ns() if realtime_ns is None else realtime_ns
        self.write("process", role=role, pid=pid, version=_release(), realtime_ns=realtime_ns)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@cache
def _release() -> str:
    try:
        return version("mrclab")
    except PackageNotFoundError:
        return "source"
