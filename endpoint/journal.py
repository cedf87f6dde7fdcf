"""Appends lines to a process's own journal file, as `docs/contracts.md` has them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


class JournalFile:
    """One JSON object a line, a line a write: a reader may open the file at any moment."""

    def __init__(self, path: str, node: str) -> None:
        self._node = node
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, t_ns: int, kind: str, fields: Mapping[str, Any]) -> None:
        """Append one line; fields must be JSON. Raises OSError when the file cannot take it."""
        line = json.dumps({"t_ns": t_ns, "node": self._node, "kind": kind, **fields}, separators=(",", ":"))
        os.write(self._descriptor, line.encode() + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)
