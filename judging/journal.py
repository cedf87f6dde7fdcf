"""Reads the journal: events as lines that a person can open (docs/contracts.md, "Journal").

Running and judging meet only here. Every process has written its own file with `common/journal.py`.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from common import files as whole_files
from common import plain_file
from common.journal import Line
from judging.shape import fault_of

__all__ = ["checked", "read_file", "scan"]

JOURNAL_BYTES_MAX = 1 << 30
"""Of one process's journal: a file that other people send may claim any size."""

READER = "reader"
"""The node of `error` lines that replace lines that cannot be read."""


def read_file(path: Path) -> list[Line]:
    """Every whole line of one file, in the file's order.

    A line that is not a journal line becomes an `error` line, so that the rest of the file still counts; a torn last
    line is skipped, because its writer was killed in the middle of it.
    """
    return [line for _, _, line in scan(plain_file.read_bytes(path, JOURNAL_BYTES_MAX), path.name)]


def scan(text: bytes | mmap.mmap, name: str) -> Iterator[tuple[int, int, Line]]:
    """First byte, length and content of each line that `read_file` tells of; the length of a made-up one is 0."""
    start = t_ns = number = 0
    while start < len(text):
        number += 1
        stop = text.find(b"\n", start)
        length = (stop if stop >= 0 else len(text)) - start
        if length:
            try:
                line = checked(json.loads(text[start : start + length]))
                t_ns = line["t_ns"]
                yield start, length, line
            except (ValueError, RecursionError) as error:
                if stop >= 0:
                    message = f"{name}:{number}: unreadable: {error}"
                    yield 0, 0, {"t_ns": t_ns, "node": READER, "kind": "error", "message": message, "fatal": False}
        start += length + 1


def checked(line: Any) -> Line:
    """The line itself, if it has what every line must have; ValueError otherwise."""
    if wrong := fault_of(line):
        raise ValueError(wrong)
    whole: Line = line
    return whole


def merge(files: Iterable[Path]) -> list[Line]:
    """The lines of all files by time; lines of the same instant keep the order of files and of lines."""
    lines = [line for path in files for line in read_file(path)]
    lines.sort(key=lambda line: int(line["t_ns"]))
    return lines


def write_merged(lines: Iterable[Line], path: Path) -> None:
    """One `journal.jsonl` of a whole run, replaced at once."""
    whole_files.write(path, (json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines))
