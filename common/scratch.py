"""Scratch folders that never outlive their owner for long: killed owners' folders are removed by the next one.

The owner holds a lock (`flock`) on a file in the folder. The kernel gives the lock up when the owner ends, however it
ends, and on whichever machine or in whichever container it ran, so a folder is a leftover when its lock can be had. A
process number says nothing of the kind: another container or machine that shares the folder counts its own processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

LOCK = ".owner"
UNLOCKED_S = 3600.0
"""A folder without a lock file may be in the making; after so long its maker was killed in between."""


class Scratch:
    """A new folder `PREFIX…` that only this user may enter; a context manager that gives its path."""

    def __init__(self, prefix: str, folder: Path | None = None) -> None:
        """In `folder`, or among the temporary files. Leftovers of the same prefix there are removed first."""
        place = Path(tempfile.gettempdir()) if folder is None else folder
        place.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place, prefix)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if os.fstat(self._lock).st_nlink:
                return
            # Another process found the lock file before it was locked, and removed the folder as a leftover.
            os.close(self._lock)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder, and give the lock up afterwards."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove the folders `PREFIX…` of owners that have ended; those of other users only as root, who runs the lab."""
    for path in folder.glob(f"{prefix}*"):
        remove_if_abandoned(path)


def remove_if_abandoned(path: Path) -> bool:
    """Remove a scratch folder unless its owner lives; whether it was removed."""
    with contextlib.suppress(OSError), _Abandoned(path) as abandoned:
        if abandoned:
            _remove(path)
            return True
    return False


def _remove(path: Path) -> None:
    """Remove a folder, its lock file last: a folder that loses only its lock file would count as one in the making.

    OSError if a process that has outlived its owner still writes there; the lock file stays in that case.
    """
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != LOCK:
            entry.unlink(missing_ok=True)
    shutil.rmtree(path)


class _Abandoned:
    """Whether a folder's lock can be had; it is held meanwhile, so that of two who look one removes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = -1

    def __enter__(self) -> bool:
        status = self._path.lstat()
        if not stat.S_ISDIR(status.st_mode) or os.geteuid() not in (0, status.st_uid):
            return False
        try:
            self._lock = os.open(self._path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return time.time() - status.st_mtime > UNLOCKED_S
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        if self._lock >= 0:
            os.close(self._lock)
