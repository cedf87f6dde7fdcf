"""Files that root has made are given to another user: entry by entry, through descriptors, none of a third user.

A name may come to mean another file between a look and a `chown`. So an entry is opened, looked at, and then given.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from common import locks
from common.linux.rights import sudo_id
from common.outcome import carry_out
from common.plain_file import open_at

__all__ = ["Made", "Receiver", "give", "give_all", "opened_folder", "sudo_caller"]


class Receiver(NamedTuple):
    """The user to whom entries are given."""

    user: int
    group: int


def sudo_caller(environment: Mapping[str, str] = os.environ) -> Receiver | None:
    """The user who called sudo; None without sudo. ValueError names what is wrong with its environment."""
    user, group = sudo_id("SUDO_UID", environment), sudo_id("SUDO_GID", environment)
    return None if user is None or group is None else Receiver(user, group)


class Made(NamedTuple):
    """An entry that this process has made. Another one that has come to its path is not given."""

    path: Path
    device: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Made:
        """The entry that is there now."""
        status = path.lstat()
        return cls(path, status.st_dev, status.st_ino)


def give(receiver: Receiver, name: Path | str, folder: int | None = None) -> bool:
    """Give one entry, below an open `folder` if there is one, to a user; whether it was given.

    A link is given, not followed. An entry that another user owns stays, and so does a file that has a second name
    elsewhere. An entry that is gone is passed over.
    """
    try:
        with _entry(name, folder) as entry:
            return _give_opened(receiver, entry)
    except (FileNotFoundError, NotADirectoryError):
        return False


def give_all(receiver: Receiver, name: Path | str, folder: int | None = None, made: Made | None = None) -> None:
    """Give an entry and, if it is a folder that was given, all in it; nothing if it is another one than `made`.

    Scratch folders of other commands stay.
    """
    with suppress(FileNotFoundError, NotADirectoryError), _entry(name, folder) as entry:
        status = os.fstat(entry)
        if made is not None and (made.device, made.inode) != (status.st_dev, status.st_ino):
            return
        if _is_scratch(".", entry) or not _give_opened(receiver, entry) or not stat.S_ISDIR(status.st_mode):
            return
        _give_below(receiver, ".", entry)


def _give_below(receiver: Receiver, name: Path | str, folder: int | None = None) -> None:
    """Give all that is in a folder."""
    with opened_folder(name, folder) as top:
        for _, inner, files, below in os.fwalk(".", dir_fd=top):
            inner[:] = [each for each in inner if not _is_scratch(each, below)]
            for each in (*inner, *files):
                give(receiver, each, below)


@contextmanager
def _entry(name: Path | str, folder: int | None) -> Iterator[int]:
    """A descriptor of an entry, also of a link."""
    entry = open_at(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, folder)
    try:
        yield entry
    finally:
        os.close(entry)


def _give_opened(receiver: Receiver, entry: int) -> bool:
    status = os.fstat(entry)
    if status.st_uid != os.geteuid() or (status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)):
        return False
    os.chown(f"/proc/self/fd/{entry}", *receiver)
    return True


@contextmanager
def opened_folder(name: Path | str, folder: int | None = None) -> Iterator[int]:
    """A descriptor of a folder, below an open one if there is one. NotADirectoryError for a link or a file."""
    opened = open_at(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, folder)
    try:
        yield opened
    finally:
        os.close(opened)


def _is_scratch(name: Path | str, folder: int | None) -> bool:
    """Whether this is a scratch folder, which has a lock file; the folder of a command that still runs."""
    try:
        os.stat(os.path.join(name, locks.OWNER), dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def main(places: Sequence[str]) -> int:
    """Give what root has made in these places to the user who called sudo, also below folders of that user (`lab`)."""
    if (receiver := sudo_caller()) is not None:
        for place in places:
            give(receiver, place)
            with suppress(FileNotFoundError, NotADirectoryError):
                _give_below(receiver, place)
    return 0


if __name__ == "__main__":
    sys.exit(carry_out("lab", lambda: main(sys.argv[1:])))
