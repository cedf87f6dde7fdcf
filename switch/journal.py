"""The switch process's journal: JSON lines of docs/contracts.md, one write a line, appended."""

from __future__ import annotations

import json
import os
import time
from importlib.metadata import PackageNotFoundError, version


class Journal:
    """Appends `{t_ns, node, kind, …}` lines to a file; does nothing without one. Thread-safe: a line is one write."""

    def __init__(self, path: str | None, node: str = "switches") -> None:
        self._node = node
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if path else -1

    @property
    def enabled(self) -> bool:
        return self._fd >= 0

    def write(self, kind: str, *, node: str | None = None, **fields: object) -> None:
        """Append one line of this kind, now; nothing without a path."""
        if self._fd < 0:
            return
        line = {"t_ns": time.monotonic_ns(), "node": node or self._node, "kind": kind, **fields}
        os.write(self._fd, json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def write_process(self, role: str) -> None:
        """The first line: role, pid, version and the wall clock."""
        try:
            release = version("mrclab")
        except PackageNotFoundError:
            release = "source"
        self.write("process", role=role, pid=os.getpid(), version=release, realtime_ns=time.time_ns())

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
