"""Under sudo, files that root has created are given to the user at the end: exactly these, and no others."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from common.scratch import LOCK

HIDDEN = "."
"""Begins the names of files that are written beside their place and then moved there."""
WRITTEN = ("output", "export", "picture", "markdown", "csv", "keep", "journal", "journals", "folder")
"""Options that name what a command writes. Folders of runs are not among them: commands know which runs are theirs."""


def hand_over(*made: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Give what this command created to the user who called sudo. Does nothing without sudo.

    A folder among `made` is handed over with all in it, so it must be one that the command itself created. Links are
    handed over, never followed. Other commands may use the same folder of runs: scratch folders of theirs keep their
    owner, and an entry that they remove meanwhile is passed over.
    """
    uid, gid = environment.get("SUDO_UID"), environment.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    for path in made:
        _give(path, int(uid), int(gid))


@contextmanager
def handing_over(*places: Path, environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Hand over files and folders of these names that are made or replaced meanwhile, and what appears in the folders.

    Files that were there before keep their owner. A folder is looked at one level deep: an entry that was
    there is not entered. Hidden entries are passed over: they are files of other commands that soon get their name.
    """
    if os.geteuid() != 0 or "SUDO_UID" not in environment or "SUDO_GID" not in environment:
        yield
        return
    missing = [parent for place in places for parent in (place, *place.parents) if not os.path.lexists(parent)]
    before = {place: _entries(place) for place in places}
    try:
        yield
    finally:
        for folder in dict.fromkeys(missing):
            if folder.is_dir() and not folder.is_symlink():
                _chown(folder, int(environment["SUDO_UID"]), int(environment["SUDO_GID"]))
        for place, old in before.items():
            hand_over(*sorted(path for path, _ in _entries(place) - old), environment=environment)


def named_places(namespace: argparse.Namespace) -> list[Path]:
    """The files and folders of a command line that its command writes."""
    return [place for name, place in vars(namespace).items() if name in WRITTEN and isinstance(place, Path)]


def _entries(place: Path) -> set[tuple[Path, int]]:
    """A file, or what is in a folder, with inodes: a file that was replaced is a new one."""
    with suppress(FileNotFoundError, NotADirectoryError):
        status = place.lstat()
        if stat.S_ISREG(status.st_mode):
            return {(place, status.st_ino)}
        if stat.S_ISDIR(status.st_mode):
            entries = [entry for entry in os.scandir(place) if not entry.name.startswith(HIDDEN)]
            return {(place / entry.name, entry.inode()) for entry in entries}
    return set()


def _give(path: Path, uid: int, gid: int) -> None:
    """Change the owner of a path and of all in it, except scratch folders."""
    if _is_scratch(path):
        return
    _chown(path, uid, gid)
    if not path.is_dir() or path.is_symlink():
        return
    with suppress(FileNotFoundError):  # the folder went; one below it that goes is passed over by fwalk
        for _, inner, files, folder in os.fwalk(path):
            inner[:] = [name for name in inner if not _is_scratch(name, folder)]
            for name in (*inner, *files):
                _chown(name, uid, gid, folder)


def _chown(path: Path | str, uid: int, gid: int, folder: int | None = None) -> None:
    """Change an owner, unless another command has removed the entry."""
    with suppress(FileNotFoundError):
        os.chown(path, uid, gid, dir_fd=folder, follow_symlinks=False)


def _is_scratch(path: Path | str, folder: int | None = None) -> bool:
    """Whether this is a scratch folder, which has a lock file; the folder of a command that still runs."""
    try:
        os.stat(os.path.join(path, LOCK), dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
