"""Scratch folders that never outlive their owner for long: killed owners' folders are removed by the next one.

The owner holds a lock (`flock`) on a file in the folder. The kernel gives the lock up when the owner ends, however it
ends, and on whichever machine or in whichever container it ran, so a folder is a leftover when its lock can be had. A
process number says nothing of the kind: another container or machine that shares the folder counts its own processes.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from common import locks
from common.cache import open_to_others
from common.plain_file import NotPlainError

__all__ = ["Scratch", "remove_if_abandoned", "remove_leftovers", "remove_tree"]

USUAL = "/tmp"
UNLOCKED_S = 3600.0
"""A folder without a lock file may be in the making; after so long its maker was killed in between."""


class Scratch:
    """A new folder `PREFIX…` that only this user may enter; a context manager that gives its path."""

    def __init__(self, prefix: str, folder: Path | None = None) -> None:
        """In `folder`, or among the temporary files. Leftovers of the same prefix there are removed first."""
        place = _temporary() if folder is None else folder
        place.mkdir(parents=True, exist_ok=True)
        remove_leftovers(place, prefix)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            self._lock = _new_lock(self.path)
            locks.take(self._lock, f"the lock of {self.path}")
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
        with contextlib.suppress(OSError):
            remove_tree(self.path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _temporary() -> Path:
    """The folder of temporary files, without links, in which no other user can put another folder in the place of
    one's own: programs import and obey what is in some.

    Where that is possible in TMPDIR, as after `sudo -E`, it is /tmp for this process and its children, which is said
    once. Without room in /tmp, Python itself takes the current folder, which may be another user's. NotPlainError if
    /tmp is not safe either.
    """
    place = os.path.realpath(tempfile.gettempdir())
    if where := open_to_others(os.path.join(place, locks.OWNER)):
        rule = f"must be a folder in which no other user can rename yours ({where})"
        if open_to_others(os.path.join(USUAL, locks.OWNER)):
            raise NotPlainError(place, f"{rule}: name another one by TMPDIR")
        locks.tell(f"{place} {rule}: temporary files are kept in {USUAL}")
        place = tempfile.tempdir = os.environ["TMPDIR"] = USUAL
    return Path(place)


def _new_lock(path: Path) -> int:
    """A descriptor of the lock file in a folder that this process has just made.

    OSError if the folder was replaced meanwhile: where root makes it in a user's folder, the user may put a link there,
    and root must make no file behind a link.
    """
    with _opened(path) as folder:
        return os.open(locks.OWNER, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)


def remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove the folders `PREFIX…` of owners that have ended, if this user made them.

    Root leaves what other users have made: they may have made it so large or so deep that its removal never ends.
    """
    for path in folder.glob(f"{prefix}*"):
        remove_if_abandoned(path)


def remove_if_abandoned(path: Path) -> bool:
    """Remove a scratch folder unless its owner lives; whether it was removed.

    The folder is opened once, and everything in it is reached from there. A user who renames the folder meanwhile and
    puts a link in its place cannot lead root into another folder.
    """
    with contextlib.suppress(OSError), _opened(path) as folder, _Abandoned(folder) as abandoned:
        if abandoned:
            _remove(path, folder)
            return True
    return False


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A descriptor of a folder. OSError for a link, for a file, and for a folder that was replaced meanwhile."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _check_in_place(path, folder)
        yield folder
    finally:
        os.close(folder)


def _check_in_place(path: Path, folder: int) -> None:
    """OSError unless the open folder is still the one at this path, of the same user."""
    here, opened = path.lstat(), os.fstat(folder)
    if (here.st_dev, here.st_ino, here.st_uid) != (opened.st_dev, opened.st_ino, opened.st_uid):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)


def _remove(path: Path, folder: int) -> None:
    """Remove a folder, its lock file last: a folder that loses only its lock file would count as one in the making.

    OSError if a process that has outlived its owner still writes there; the lock file stays in that case.
    """
    for name in os.listdir(folder):
        if name != locks.OWNER:
            remove_tree(name, folder)
    if set(os.listdir(folder)) - {locks.OWNER}:
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
    _check_in_place(path, folder)
    remove_tree(locks.OWNER, folder)
    path.rmdir()


def remove_tree(path: Path | str, folder: int | None = None) -> None:
    """Remove a file, a link, or a folder with all in it, below an open `folder` if there is one; it may be gone. A user
    may have nested folders deeper than Python recurses, or has descriptors for."""
    try:
        if stat.S_ISDIR(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(path, dir_fd=folder)
        else:
            os.unlink(path, dir_fd=folder)
    except FileNotFoundError:
        return
    except (RecursionError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EMFILE:
            raise
        place = None if folder is None else f"/proc/self/fd/{folder}"
        if subprocess.run(["rm", "-rf", "--", path], cwd=place, stderr=subprocess.DEVNULL, check=False).returncode:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path)) from error


class _Abandoned:
    """Whether an open folder's lock can be had; it is held meanwhile, so that of two who look one removes."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._lock = -1

    def __enter__(self) -> bool:
        status, user = os.fstat(self._folder), os.geteuid()
        if user not in (0, status.st_uid):
            return False
        try:
            self._lock = os.open(locks.OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        except FileNotFoundError:
            return status.st_uid == user and time.time() - status.st_mtime > UNLOCKED_S
        # Root gives folders to other users, but never their lock files.
        lock = os.fstat(self._lock)
        if lock.st_uid != user or lock.st_nlink > 1:
            return False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        if self._lock >= 0:
            os.close(self._lock)
