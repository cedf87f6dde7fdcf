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
from pathlib import Path
from typing import Any

from common.files import open_growing

__all__ = ["Journal", "Line"]

Line = dict[str, Any]


class Journal:
    """Appends lines to a file; without a path it writes nothing. Threads may share a journal.

    `clock` gives the nanoseconds of lines written without a time: CLOCK_MONOTONIC, which all hosts of a lab share.
    With `bytes_max` the file is one of two: before it grows beyond, it becomes `PATH.1`, in place of the one before.
    The new file begins with the same `process` line. A `lossy` journal counts lines that the disk does not take, and
    says so in a line `lost` when there is room again; otherwise such a line raises OSError.
    """

    def __init__(
        self,
        path: str | Path | None,
        node: str,
        clock: Callable[[], int] = time.monotonic_ns,
        *,
        bytes_max: int = 0,
        lossy: bool = False,
    ) -> None:
        """Raises OSError when the file cannot be opened or made, and when it is a link."""
        self.node = node
        self.lost = 0
        """Lines that a lossy journal could not write."""
        self._clock = clock
        self._path = path
        self._bytes_max = bytes_max
        self._lossy = lossy
        self._told_lost = 0
        self._head = b""
        self._torn = False
        self._fd = -1 if path is None else open_growing(path)
        self._bytes = os.fstat(self._fd).st_size if self._fd >= 0 and bytes_max else 0

    @property
    def enabled(self) -> bool:
        """Whether there is a file to write to."""
        return self._fd >= 0

    def write(self, kind: str, *, t_ns: int | None = None, node: str | None = None, **fields: Any) -> None:
        """Append a line, at `t_ns` or now. Fields must be JSON.

        Raises OSError, which names the file, when the file cannot take the line. A line that was taken in part is ended
        before the next one, so that only the torn line is lost.
        """
        if self._fd < 0:
            return
        line = {"t_ns": self._clock() if t_ns is None else t_ns, "node": node or self.node, "kind": kind, **fields}
        data = _encoded(line)
        if kind == "process" and not self._head:
            self._head = data
        if not self._lossy:
            self._append(data)
            return
        try:
            if self.lost > self._told_lost:
                told = {"t_ns": line["t_ns"], "node": self.node, "kind": "lost", "lines": self.lost}
                self._append(_encoded(told))
                self._told_lost = self.lost
            self._append(data)
        except OSError:
            self.lost += 1

    def _append(self, data: bytes) -> None:
        if self._bytes_max and self._bytes + len(data) > self._bytes_max:
            self._turn_over()
        if self._torn:
            data = b"\n" + data
        try:
            taken = os.write(self._fd, data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        self._bytes += taken
        self._torn = taken < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def _turn_over(self) -> None:
        """Go on in a new file; the one so far is `PATH.1`, and what was that is gone."""
        assert self._path is not None
        fd = open_growing(f"{self._path}.new", emptied=True)  # first: if there is no room, nothing has changed
        os.replace(self._path, f"{self._path}.1")
        os.replace(f"{self._path}.new", self._path)
        os.close(self._fd)
        self._fd, self._torn = fd, False
        self._bytes = os.write(fd, self._head) if self._head else 0

    def write_at(self, t_ns: int, kind: str, fields: Mapping[str, Any]) -> None:
        """`write` for a line in the form in which hosts hand out theirs: time, kind, fields."""
        self.write(kind, t_ns=t_ns, **fields)

    def write_process(self, role: str, *, pid: int | None = None, realtime_ns: int | None = None) -> None:
        """The first line of every process: the writer, its release, and the wall clock at that moment.

        A node in virtual time gives its own process id and wall clock, so that a seed repeats this line too.
        """
        pid = os.getpid() if pid is None else pid
        realtime_ns = time.time_ns() if realtime_ns is None else realtime_ns
        self.write("process", role=role, pid=pid, version=_release(), realtime_ns=realtime_ns)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


_ENCODER = json.JSONEncoder(separators=(",", ":"))


def _encoded(line: Line) -> bytes:
    return _ENCODER.encode(line).encode() + b"\n"


@cache
def _release() -> str:
    from importlib.metadata import PackageNotFoundError, version  # takes a while, and most commands write no journal

    try:
        return version("mrclab")
    except PackageNotFoundError:
        return "source"
