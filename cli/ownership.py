"""Under sudo, files that root has created are given to the user at the end: exactly these, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def hand_over(*made: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Give what this command created to the user who called sudo. Does nothing without sudo.

    A folder among `made` is handed over with all in it, so it must be one that the command itself created. Links are
    handed over, never followed.
    """
    uid, gid = environment.get("SUDO_UID"), environment.get("SUDO_GID")
    if os.geteuid() != 0 or uid is None or gid is None:
        return
    for path in made:
        for entry in _with_all_in_it(path):
            os.chown(entry, int(uid), int(gid), follow_symlinks=False)


@contextmanager
def handing_over(*folders: Path, environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Hand over what appears in these folders meanwhile, and the folders themselves where they were not there.

    Files that were there before keep their owner. A folder is looked at one level deep: an entry that was
    there is not entered.
    """
    if os.geteuid() != 0 or "SUDO_UID" not in environment or "SUDO_GID" not in environment:
        yield
        return
    missing = [parent for folder in folders for parent in (folder, *folder.parents) if not os.path.lexists(parent)]
    before = {folder: _entries(folder) for folder in folders}
    try:
        yield
    finally:
        for folder in dict.fromkeys(missing):
            if folder.is_dir() and not folder.is_symlink():
                os.chown(folder, int(environment["SUDO_UID"]), int(environment["SUDO_GID"]), follow_symlinks=False)
        for folder, old in before.items():
            hand_over(*sorted(path for path, _ in _entries(folder) - old), environment=environment)


def _entries(folder: Path) -> set[tuple[Path, int]]:
    """What is in a folder, with inodes: a file that was replaced is a new one."""
    if not folder.is_dir() or folder.is_symlink():
        return set()
    return {(folder / entry.name, entry.inode()) for entry in os.scandir(folder)}


def _with_all_in_it(path: Path) -> Iterator[Path]:
    if not os.path.lexists(path):
        return
    yield path
    if path.is_dir() and not path.is_symlink():
        for folder, inner, files in os.walk(path, followlinks=False):
            yield from (Path(folder, name) for name in (*inner, *files))
