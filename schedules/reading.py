"""Reads a schedule file by the ending of its name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from schedules import goal, matrix
from schedules.errors import ScheduleError, unreadable
from schedules.lines import Follow, lines, opened, unwatched
from schedules.schedule import Schedule

READERS: dict[str, Callable[[str], goal.GoalReader | matrix.MatrixReader]] = {
    ".cm": matrix.MatrixReader,
    ".goal": goal.GoalReader,
}
SUFFIXES = tuple(READERS)


def read(path: Path) -> Schedule:
    """The schedule of a file. ScheduleError names the file, the line, the rule and the choices."""
    reader = READERS.get(path.suffix)
    if reader is None:
        raise ScheduleError(f"{path}: the name of a schedule must end in {' or '.join(SUFFIXES)}")
    return reader(path.name).read(lines(path, _watch))


def watch_with(watch: Callable[[Path], Follow]) -> None:
    """Have `watch` look at each file before it is read, refuse it or follow it: this room has no clock."""
    global _watch
    _watch = watch


_watch: Callable[[Path], Follow] = unwatched


def digest_of(path: Path) -> str:
    """SHA-256 of a file, 16 hexadecimal digits. ScheduleError when it cannot be read."""
    try:
        with opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise unreadable(path, error) from error


@lru_cache(maxsize=4)
def shared(path: Path, digest: str) -> Schedule:
    """The schedule of a file, read once per process: in virtual time all ranks are in one.

    ScheduleError when the file no longer has this digest; "" accepts any.
    """
    if digest and digest_of(path) != digest:
        raise ScheduleError(f"{path}: the file must stay as it is during a run, and has changed")
    return read(path)
