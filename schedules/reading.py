"""Reads a schedule file by the ending of its name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from common.linux import memory
from common.terminal.standard_streams import write_error
from schedules import goal, matrix
from schedules.errors import ScheduleError, unreadable
from schedules.lines import lines, opened
from schedules.schedule import Schedule

READERS: dict[str, Callable[[str], goal.GoalReader | matrix.MatrixReader]] = {
    ".cm": matrix.MatrixReader,
    ".goal": goal.GoalReader,
}
SUFFIXES = tuple(READERS)
MEMORY_PER_BYTE = 2.5
SECONDS_PER_BYTE = 0.3e-6
"""Of a file's length, at most: `benchmarks.workload_files` measured 0.7 to 2.3, and 0.18 to 0.28 µs."""
TOLD_BYTES = 30 << 20
"""Longer files take ten seconds to read, and are told of before."""


def read(path: Path) -> Schedule:
    """The schedule of a file. ScheduleError names the file, the line, the rule and the choices."""
    reader = READERS.get(path.suffix)
    if reader is None:
        raise ScheduleError(f"{path}: the name of a schedule must end in {' or '.join(SUFFIXES)}")
    _check_memory(path)
    return reader(path.name).read(lines(path))


def _check_memory(path: Path) -> None:
    """ScheduleError where a file's columns would not fit into memory, with the estimate of memory and time."""
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise unreadable(path, error) from error
    needed, spare = round(MEMORY_PER_BYTE * size), memory.available()
    takes = f"about {needed / 1e9:.1f} GB of memory and {size * SECONDS_PER_BYTE / 60:.0f} min to read"
    if needed > memory.SHARE_MAX * spare:
        raise ScheduleError(
            f"{path}: this file of {size / 1e9:.1f} GB takes {takes}; {spare / 1e9:.1f} GB are to spare"
        )
    if size > TOLD_BYTES:
        write_error(f"mrclab: {path.name} ({size / 1e6:.0f} MB) takes {takes}")


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
