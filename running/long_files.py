"""Workload files that take much of this machine's memory or time: told of, refused, followed."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from common.terminal.progress import with_progress
from common.terminal.standard_streams import write_error
from running.estimate import MEMORY_SHARE_MAX, available_memory
from schedules import ScheduleError

__all__ = ["watch"]

MEMORY_PER_BYTE = 2.5
SECONDS_PER_BYTE = 0.3e-6
"""Of a file's length, at most: `benchmarks.workload_files` measured 0.7 to 2.3, and 0.18 to 0.28 µs."""
TOLD_BYTES = 30 << 20
"""Longer files take ten seconds to read, and are told of before."""


def watch(path: Path) -> Callable[[Iterator[str], Callable[[], int]], Iterator[str]]:
    """The follower of a file's lines. ScheduleError where its columns would not fit into memory, with the estimate."""
    size = path.stat().st_size if path.is_file() else 0
    needed, spare = round(MEMORY_PER_BYTE * size), available_memory()
    takes = f"about {needed / 1e9:.1f} GB of memory and {size * SECONDS_PER_BYTE / 60:.0f} min to read"
    if needed > MEMORY_SHARE_MAX * spare:
        there = f"{spare / 1e9:.1f} GB are to spare"
        raise ScheduleError(f"{path}: this file of {size / 1e9:.1f} GB takes {takes}; {there}")
    if size > TOLD_BYTES:
        write_error(f"mrclab: {path.name} ({size / 1e6:.0f} MB) takes {takes}")
    return partial(_follow, path, size)


def _follow(path: Path, size: int, lines: Iterator[str], tell: Callable[[], int]) -> Iterator[str]:
    return with_progress(lines, size >> 20, f"MB of {path.name} read", lambda: tell() >> 20)
