"""Locks among processes (`flock`): files that only their owner may open, and waits that name the holder and end.

The kernel lets every user who can open a file lock it, for reading as well. So a lock file has the mode 0600.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from common.plain_file import NotPlainError
from common.terminal.standard_streams import write_error

__all__ = ["OWNER", "TELL_S", "LockedError", "close_to_others", "held", "holder", "opened", "take", "tell"]

OWNER = ".owner"
"""The lock file in a scratch folder, which the process that made the folder holds."""
TELL_S = 2.0
"""After so long a wait is said to be one."""
LIMIT_S = 120.0
_POLL_S = 0.02
_MODE = 0o600
_COMMAND_LETTERS = 80


class LockedError(RuntimeError):
    """Another process has held the lock for too long; the message names it."""


def opened(path: Path | str, folder: int | None = None) -> int:
    """A descriptor of a lock file, made if it is missing. An existing file that other users may open is closed to them.

    `folder` is a descriptor that `path` is relative to. Raises FileNotFoundError when the folder is missing,
    NotPlainError for a link or anything else that is no regular file.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        try:
            lock = os.open(path, flags, dir_fd=folder)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another process was quicker
                return os.open(path, flags | os.O_CREAT | os.O_EXCL, _MODE, dir_fd=folder)
            continue
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise NotPlainError(path, "must be a regular file (it is a symbolic link)") from None
            raise
        status = os.fstat(lock)
        if not stat.S_ISREG(status.st_mode):
            os.close(lock)
            raise NotPlainError(path, "must be a regular file")
        if stat.S_IMODE(status.st_mode) & ~_MODE:
            with suppress(PermissionError):  # another user's
                os.fchmod(lock, _MODE)
        return lock


def close_to_others(path: Path) -> None:
    """Make a file if it is missing, and let only its owner open it: for files that a library locks.

    The file is not opened for reading or writing: closing it would give up locks of `fcntl` that this process has.
    Raises NotPlainError for a link or a folder.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE))
    file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise NotPlainError(path, "must be a regular file")
        if stat.S_IMODE(status.st_mode) & ~_MODE:
            with suppress(PermissionError):  # another user's
                os.chmod(f"/proc/self/fd/{file}", _MODE)
    finally:
        os.close(file)


def tell(message: str) -> None:
    """One line on standard error."""
    write_error(f"mrclab: {message}")


def take(lock: int, what: str, limit_s: float = LIMIT_S, tell: Callable[[str], None] = tell) -> None:
    """Take the lock of an open file, or of an open folder. `what` is its name in messages, such as "the lab's lock".

    A wait is told after `TELL_S`, with the holder. Raises LockedError after `limit_s`.
    """
    begin_s, told = time.monotonic(), False
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        waited_s = time.monotonic() - begin_s
        if waited_s >= limit_s:
            raise LockedError(f"{what} is still held by {holder(lock)} after {limit_s:g} s: end it, or try again later")
        if not told and waited_s >= TELL_S:
            told = True
            tell(f"waiting for {what}, at most {limit_s - waited_s:.0f} s more: {holder(lock)} holds it")
        time.sleep(_POLL_S)


@contextmanager
def held(path: Path | str, what: str, limit_s: float = LIMIT_S, tell: Callable[[str], None] = tell) -> Iterator[None]:
    """Hold the lock of this file meanwhile; `opened` and `take` say what is raised."""
    lock = opened(path)
    try:
        take(lock, what, limit_s, tell)
        yield
    finally:
        os.close(lock)


def holder(lock: int | Path) -> str:
    """The process that holds a file's lock, for people to read; as far as this user may know it."""
    for process in _holding(lock):
        with suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if len(words) > _COMMAND_LETTERS:
                words = words[: _COMMAND_LETTERS - 1] + "…"
            return f"process {process} of user {os.stat(f'/proc/{process}').st_uid} ({words})"
    return "another process"


def _holding(lock: int | Path) -> Iterator[int]:
    """Processes with the lock: those that have it open, which may have inherited it; then the one that took it."""
    status = os.stat(lock)
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # another user's, or it ended meanwhile
                for descriptor in (entry / "fd").iterdir():
                    there = descriptor.stat()
                    same = (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino)
                    if same and "lock:" in (entry / "fdinfo" / descriptor.name).read_text():
                        yield int(entry.name)
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()  # 1: FLOCK ADVISORY WRITE 4711 00:1a:8105 0 EOF
        if fields[1:2] in (["FLOCK"], ["POSIX"]) and fields[5].rpartition(":")[2] == str(status.st_ino):
            yield int(fields[4])
