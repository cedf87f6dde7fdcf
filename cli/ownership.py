"""Under sudo, files that root has created are given to the user at the end: exactly these, and no others."""

import argparse
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from common.giving import Made, Receiver, give, give_all, opened_folder, sudo_caller
from common.plain_file import followed

HIDDEN = "."
"""Begins the names of files that are written beside their place and then moved there."""
WRITTEN = ("output", "export", "picture", "csv", "keep", "journal", "journals", "folder")
"""Options that name what a command writes. Folders of runs are not among them: commands know which runs are theirs."""


def hand_over(*made: Path | Made, environment: Mapping[str, str] = os.environ) -> None:
    """Give what this command created to the user who called sudo. Does nothing without sudo.

    A folder among `made` is handed over with all in it that is root's, so it must be one that the command itself
    created. Links are handed over, never followed. Other commands may use the same folder of runs: scratch folders of
    theirs keep their owner, and an entry that they remove meanwhile is passed over.
    """
    user = sudo_caller(environment)
    for path in made if user else ():
        assert user is not None
        give_all(user, *((path.path, None, path) if isinstance(path, Made) else (path,)))


def hand_over_below(folder: int, *names: str, environment: Mapping[str, str] = os.environ) -> None:
    """Give files of these names, which this command has made in an open folder, to the user who called sudo."""
    user = sudo_caller(environment)
    for name in names if user else ():
        assert user is not None
        with suppress(FileNotFoundError, NotADirectoryError), ExitStack() as stack:
            below = folder
            for part in Path(name).parts[:-1]:
                below = stack.enter_context(opened_folder(part, below))
            give(user, Path(name).name, below)


@contextmanager
def handing_over(*places: Path, environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Hand over files and folders of these names that are made or replaced meanwhile, and what appears in the folders.

    Files that were there before keep their owner. A folder is looked at one level deep: an entry that was
    there is not entered. Hidden entries are passed over: they are files of other commands that soon get their name.
    The folders that are there are opened now: a folder that takes the place of one of them meanwhile is not looked at.
    """
    user = sudo_caller(environment)
    if user is None:
        yield
        return
    with ExitStack() as stack:
        looked_at = [_Place(place, stack) for place in places]
        try:
            yield
        finally:
            for place in looked_at:
                place.give(user)


def named_places(namespace: argparse.Namespace) -> list[Path]:
    """The files and folders of a command line that its command writes."""
    return [place for name, place in vars(namespace).items() if name in WRITTEN and isinstance(place, Path)]


class _Place:
    """A file or folder that a command may make or change: the deepest folder above it that is there, and the rest."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        rest: list[str] = []
        place = followed(place.parent) / place.name
        while True:
            try:
                self._folder = stack.enter_context(opened_folder(place))
                break
            except (FileNotFoundError, NotADirectoryError):
                rest.insert(0, place.name)
                place = place.parent
        self._rest = rest
        self._before = self._inode(rest[0]) if rest else _entries(self._folder)

    def give(self, user: Receiver) -> None:
        """Give what was made or replaced."""
        if not self._rest:
            for name, _ in sorted(_entries(self._folder) - set(self._before)):
                give_all(user, name, self._folder)
        elif self._inode(self._rest[0]) != self._before:
            self._give_rest(user, self._rest, self._folder)

    def _give_rest(self, user: Receiver, rest: list[str], folder: int) -> None:
        """Give an entry, and below it the rest of the path; of the last folder all that is in it."""
        give(user, rest[0], folder)
        with suppress(FileNotFoundError, NotADirectoryError), opened_folder(rest[0], folder) as below:
            if rest[1:]:
                self._give_rest(user, rest[1:], below)
            else:
                for name, _ in sorted(_entries(below)):
                    give_all(user, name, below)

    def _inode(self, name: str) -> set[tuple[str, int]]:
        """The regular file or folder of this name, with its inode: a file that was replaced is a new one."""
        with suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                return {(name, status.st_ino)}
        return set()


def _entries(folder: int) -> set[tuple[str, int]]:
    """The entries of an open folder, with their inodes."""
    with os.scandir(folder) as entries:
        return {(entry.name, entry.inode()) for entry in entries if not entry.name.startswith(HIDDEN)}
