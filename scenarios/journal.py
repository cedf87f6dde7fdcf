"""The journal: what happened, as lines that a person can open (docs/contracts.md, "Journal").

Running and judging meet only here. Each process appends to a file of its own, one `write` a line, so that a reader may
open it at any moment, also after the writer was killed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Journal:
    """Appends lines to one file. `clock` returns CLOCK_MONOTONIC nanoseconds, which all hosts of a lab share."""

    def __init__(self, path: Path, node: str, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.path = path
        self.node = node
        self._clock = clock
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, kind: str, *, t_ns: int | None = None, **fields: Any) -> Line:
        """Append a line, at `t_ns` or now; the line itself."""
        line: Line = {"t_ns": self._clock() if t_ns is None else t_ns, "node": self.node, "kind": kind, **fields}
        os.write(self._fd, json.dumps(line, separators=(",", ":")).encode() + b"\n")
        return line

    def close(self) -> None:
        os.close(self._fd)


def read_file(path: Path) -> list[Line]:
    """Every whole line of one file, in the file's order.

    A line that is not a journal line becomes an `error` line, so that the rest of the file still counts; a torn last
    line is skipped, because its writer was killed in the middle of it.
    """
    lines: list[Line] = []
    parts = path.read_bytes().split(b"\n")
    for number, part in enumerate(parts, start=1):
        if not part:
            continue
        try:
            lines.append(checked(json.loads(part)))
        except ValueError as error:
            if number < len(parts):
                t_ns = lines[-1]["t_ns"] if lines else 0
                message = f"{path.name}:{number}: unreadable: {error}"
                lines.append({"t_ns": t_ns, "node": "reader", "kind": "error", "message": message, "fatal": False})
    return lines


def checked(line: Any) -> Line:
    """The line itself, if it has what every line must have; ValueError otherwise."""
    if not isinstance(line, dict):
        raise ValueError(f"a journal line is an object, not {type(line).__name__}")
    for key, kind in (("t_ns", int), ("node", str), ("kind", str)):
        if not isinstance(line.get(key), kind):
            raise ValueError(f"'{key}' must be of type {kind.__name__}, got {line.get(key)!r}")
    return line


def merge(files: Iterable[Path]) -> list[Line]:
    """The lines of all files by time; lines of the same instant keep the order of files and of lines."""
    lines = [line for path in files for line in read_file(path)]
    lines.sort(key=lambda line: int(line["t_ns"]))
    return lines


def write_merged(lines: Iterable[Line], path: Path) -> None:
    """One `journal.jsonl` of a whole run, replaced atomically."""
    partial = path.with_suffix(".partial")
    with partial.open("w") as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    partial.replace(path)
