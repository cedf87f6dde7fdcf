"""Files that are replaced whole: a reader finds the old content or the new one, also after a kill."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common import cache
from common.linux.rights import is_trusted
from common.plain_file import KERNELS, LINKS_MAX, NotPlainError, entered, followed, open_at, opened_parent, why

__all__ = [
    "beside", "cache_directory", "check_way", "drop_unused", "in_use", "make_cache", "make_folder", "named",
    "open_growing", "open_output", "write", "write_json", "write_named", "write_new",
]  # fmt: skip

KEPT_S = 30 * 86400
"""A cached file that was neither made nor used for so long can go: it is made again when it is needed."""

NAME_MAX = 48
"""Characters of a file's name in that of its unfinished copy, which must have at most 255 bytes as well."""


@contextmanager
def named(path: Path | str, *, below: bool = False) -> Iterator[None]:
    """Give errors of writing, such as a full disk, the name of the file: the system's own say only what happened, or,
    `below` an open folder, the name there."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename is not None and not below):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def make_folder(path: Path) -> None:
    """Make a folder that a user has named, and those above it. NotPlainError names the entry in the way.

    A link of another user on the way is refused, as on the way to a file: in a folder that others may write, it would
    decide where root's files go. One of sudo's caller, root's or this user's own is followed.
    """
    try:
        followed(path).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, FileNotFoundError) as error:
        check_way(path)
        raise NotPlainError(path, f"must be in a folder where others can be made ({why(error)})") from None


def check_way(path: Path) -> None:
    """NotPlainError for an entry on the way to a folder that is none, such as a link to nowhere."""
    for place in reversed([path, *path.parents]):
        if place.is_symlink() and not place.exists():
            raise NotPlainError(place, f"must be a folder (it is a link to {os.readlink(place)}, which is missing)")
        if place.exists() and not place.is_dir():
            raise NotPlainError(place, "must be a folder (it is none)")


def write(path: Path, content: str | bytes | Iterable[bytes], mode: int = 0o644) -> None:
    """Replace the file at once; text is UTF-8. Whatever is raised meanwhile leaves the file as it was.

    The user's umask takes its share of the mode. OSError names the file.
    """
    if isinstance(content, str):
        content = content.encode()
    with beside(path, mode) as (handle, partial, folder):
        with named(path), os.fdopen(handle, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        with named(path, below=True):
            os.replace(partial, path.name, src_dir_fd=folder, dst_dir_fd=folder)


def write_named(path: Path, content: str | bytes | Iterable[bytes]) -> bool:
    """Write a file that a user has named; whether a file was made or replaced.

    A device, a FIFO and a link such as /dev/stdout are written to: replacing them would take them from other programs.
    """
    if not path.is_symlink() and (not path.exists() or path.is_file()):
        write(path, content)
        return True
    with named(path), os.fdopen(open_output(path), "wb") as file:
        content = content.encode() if isinstance(content, str) else content
        file.writelines([content] if isinstance(content, bytes) else content)
    return False


def open_output(path: Path) -> int:
    """A descriptor that writes a file, a device or a FIFO that a user has named, from its beginning.

    NotPlainError for links and FIFOs of other users, which would decide where root's output goes and for how long
    root waits, and for a FIFO without a reader.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with named(path, below=True):
        folder, name = opened_parent(path.parent), path.name
    try:
        with named(path, below=True):
            for _ in range(LINKS_MAX):
                if (target := _link(name, folder, path)) is None:
                    break
                if target is KERNELS:
                    flags &= ~os.O_NOFOLLOW
                    break
                above, folder, name = folder, opened_parent(target.parent, folder), target.name
                os.close(above)
            opened = os.open(name or ".", flags, 0o644, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise NotPlainError(path, "must have a reader (it is a FIFO or a socket without one)") from None
        raise
    finally:
        os.close(folder)
    status = os.fstat(opened)
    if flags & os.O_NOFOLLOW and stat.S_ISFIFO(status.st_mode) and not is_trusted(status.st_uid):
        os.close(opened)
        raise NotPlainError(path, f"must be this user's (it is a FIFO of user {status.st_uid})")
    os.set_blocking(opened, True)
    if stat.S_ISREG(status.st_mode):
        os.ftruncate(opened, 0)
    return opened


def _link(name: str, folder: int, path: Path) -> Path | None:
    """Where an entry of an open folder leads if it is a link."""
    with suppress(FileNotFoundError):
        entry, target = entered(name, folder, path, last=True)
        if target is not None:
            return target
        os.close(entry)
    return None


def open_growing(path: Path | str, *, emptied: bool = False) -> int:
    """A descriptor that appends to a file, made if it is missing: for journals and logs. `emptied` begins anew.

    No link is followed in the file's place, nor a link of another user in its folder's: a process of root would write
    where they point. NotPlainError says so; the file may be a regular one or a device.
    """
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        opened = open_at(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPlainError(path, "must be a regular file (it is a symbolic link)") from None
        if error.errno == errno.ENXIO:
            raise NotPlainError(path, "must be a regular file (it is a FIFO or a socket)") from None
        raise
    mode = os.fstat(opened).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
        os.close(opened)
        raise NotPlainError(path, "must be a regular file (it is a FIFO)")
    os.set_blocking(opened, True)
    if emptied:
        os.ftruncate(opened, 0)
    return opened


def write_new(path: Path, content: str) -> None:
    """Create a file at once, whole; FileExistsError where there is one, which stays as it is."""
    with beside(path, 0o644) as (handle, partial, folder):
        with named(path), os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        with named(path, below=True):
            os.link(partial, path.name, src_dir_fd=folder, dst_dir_fd=folder)


@contextmanager
def beside(path: Path, mode: int = 0o600) -> Iterator[tuple[int, str, int]]:
    """A new, empty file in the same folder, open for writing, its name, and the open folder. At the end nothing of that
    name is there. OSError names `path`.

    It has the mode from the start, less the user's umask.
    """
    partial = f".{path.name[:NAME_MAX]}.{os.urandom(8).hex()}"
    with named(path, below=True):
        folder = opened_parent(path.parent)
    try:
        with named(path, below=True):
            handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
        try:
            yield handle, partial, folder
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial, dir_fd=folder)
    finally:
        os.close(folder)


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file at once."""
    write(path, json.dumps(value, indent=1) + "\n")


def cache_directory() -> Path:
    """The folder of the user's cache of this program: `$XDG_CACHE_HOME/mrclab`, or `~/.cache/mrclab`."""
    return Path(cache.directory())


def make_cache(folder: Path) -> Path:
    """Make the folder of a cache, to which no other user may write, under any umask; returns it."""
    for each in (folder.parent, folder):
        each.mkdir(mode=0o755, parents=True, exist_ok=True)
    return folder


def in_use(path: Path) -> bool:
    """Whether a file of a cache is there, and no other user can have written it; if so, it counts as used now."""
    try:
        own = cache.is_trusted(path.stat())
    except FileNotFoundError:
        return False
    with suppress(OSError):  # root's
        os.utime(path)
    return own


def drop_unused(directory: Path, pattern: str, now_s: float) -> None:
    """Remove the files of a cache that match, other than those that were made or used in the last `KEPT_S` seconds.
    `now_s` is in seconds since 1970, such as when the newest file was made: readers of this module know no clock."""
    oldest_s = now_s - KEPT_S
    for path in directory.glob(pattern):
        with suppress(OSError):  # another user's, or another process was quicker
            if path.stat().st_mtime < oldest_s:
                path.unlink()
