"""Reads the journal: events as lines that a person can open (docs/contracts.md, "Journal").

Running and judging meet only here. Every process has written its own file with `common/journal.py`.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from common import files as whole_files
from common import plain_file
from common.journal import Line

__all__ = ["checked", "read_file", "scan"]

JOURNAL_BYTES_MAX = 1 << 30
"""Of one process's journal: a file that other people send may claim any size."""

READER = "reader"
"""The node of `error` lines that replace lines that cannot be read."""

# Fields that lines of each kind must have; more are allowed (docs/contracts.md, "Journal").
LINE: Mapping[str, type] = {"t_ns": int, "node": str, "kind": str}
BY_KIND: Mapping[str, Mapping[str, type]] = {
    "ev": {"ev": int, "new": str},
    "fault": {"verb": str, "target": str, "state": str},
    "message": {"state": str, "peer": str, "message": int, "end_ns": int},
    "phase": {"name": str, "state": str},
    "transfer": {"peer": str, "bytes": int},
}
SAMPLES: Mapping[str, str] = {"qps": "qp", "ports": "port"}
"""Of a `sample` line: its lists, and the integer that each of their objects holds."""


def fault_of(line: Any) -> str:
    """Describe the error in a line; "" if the line is valid."""
    if not isinstance(line, dict):
        return f"a journal line must be an object (got {type(line).__name__})"
    wrong = _missing(line, LINE) or _missing(line, BY_KIND.get(line["kind"], {}))
    if wrong or line["kind"] != "sample":
        return wrong
    for name, key in SAMPLES.items():
        parts = line.get(name, [])
        if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
            return f"'{name}' must be a list of objects"
        if not all(isinstance(part.get(key), int) for part in parts):
            return f"in '{name}', {next(wrong for part in parts if (wrong := _missing(part, {key: int})))}"
    return ""


def _missing(line: Mapping[str, Any], fields: Mapping[str, type]) -> str:
    for key, kind in fields.items():
        if not isinstance(line.get(key), kind):
            return f"'{key}' must be of type {kind.__name__} (got {line.get(key)!r:.40})"
    return ""


def read_file(path: Path) -> list[Line]:
    """Every whole line of one file, in the file's order.

    A line that is not a journal line becomes an `error` line, so that the rest of the file still counts; a torn last
    line is skipped, because its writer was killed in the middle of it.
    """
    return [line for _, _, line in scan(plain_file.read_bytes(path, JOURNAL_BYTES_MAX), path)]


def scan(text: bytes | mmap.mmap, path: Path) -> Iterator[tuple[int, int, Line]]:
    """First byte, length and content of each line that `read_file` tells of; the length of a made-up one is 0.

    TooLongLineError for a line above `plain_file.LINE_BYTES_MAX`.
    """
    start = t_ns = number = 0
    while start < len(text):
        number += 1
        stop = text.find(b"\n", start, start + plain_file.LINE_BYTES_MAX)
        length = (stop if stop >= 0 else len(text)) - start
        if length >= plain_file.LINE_BYTES_MAX:
            raise plain_file.TooLongLineError(path, number)
        if length:
            try:
                line = checked(plain_file.parse_json(text[start : start + length]))
                t_ns = line["t_ns"]
                yield start, length, line
            except (ValueError, RecursionError) as error:
                if stop >= 0:
                    message = f"{path.name}:{number}: unreadable: {error}"
                    yield 0, 0, {"t_ns": t_ns, "node": READER, "kind": "error", "message": message, "fatal": False}
        start += length + 1


def checked(line: Any) -> Line:
    """The line itself, if it has what every line must have; ValueError otherwise."""
    if wrong := fault_of(line):
        raise ValueError(wrong)
    whole: Line = line
    return whole


def merge(files: Iterable[Path]) -> tuple[list[Line], list[bytes]]:
    """The lines of all files by time, and each as its file has it; lines of the same instant keep the order of
    files and of lines."""
    lines: list[tuple[Line, bytes]] = []
    for path in files:
        text = plain_file.read_bytes(path, JOURNAL_BYTES_MAX)
        lines += [(line, text[start : start + length] or encoded(line)) for start, length, line in scan(text, path)]
    lines.sort(key=lambda pair: int(pair[0]["t_ns"]))
    return [line for line, _ in lines], [text for _, text in lines]


def encoded(line: Line) -> bytes:
    """A line that is in no file, as one."""
    return json.dumps(line, separators=(",", ":")).encode()


def write_merged(texts: Iterable[bytes], path: Path) -> None:
    """One `journal.jsonl` of a whole run, replaced at once."""
    whole_files.write(path, (text + b"\n" for text in texts))
