"""Shared memory that killed processes of mpich have left in /dev/shm, where nothing else would ever remove it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("/dev/shm")
PATTERNS = ("mpich_shm_*", "ucx_shm_posix_*")


def remove_leftovers(folder: Path = FOLDER, processes: Path = Path("/proc")) -> list[str]:
    """Remove this user's segments that no living process has open or mapped; returns their names.

    The segments are listed before the processes are looked through, and each process's open files before its memory.
    A process that makes a segment opens it, maps it and closes the file, in this order: it is seen at every moment.
    Processes of other users hide what they have mapped, but their segments are theirs and stay.
    """
    found = [path for pattern in PATTERNS for path in folder.glob(pattern) if _own(path)]
    if not found:
        return []
    used = set(_used(processes))
    left = [path for path in found if path.name not in used]
    for path in left:
        with contextlib.suppress(OSError):
            path.unlink()
    return sorted(path.name for path in left)


def _own(path: Path) -> bool:
    """Whether this is a file of this user, and no link to one."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    return False


def _used(processes: Path) -> Iterator[str]:
    """The names of the files that processes have open or mapped, without their folders, which differ in containers."""
    for place in processes.glob("[0-9]*"):
        try:
            for file in (place / "fd").iterdir():
                with contextlib.suppress(FileNotFoundError):
                    yield os.readlink(file).rpartition("/")[2]
            for line in (place / "maps").read_text(errors="replace").splitlines():
                yield line.rpartition("/")[2]
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
