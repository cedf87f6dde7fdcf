"""Files that are replaced whole: a reader finds the old content or the new one, also after a kill."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from common import cache

KEPT_S = 30 * 86400
"""A cached file that was neither made nor used for so long can go: it is made again when it is needed."""


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """Give errors of writing, such as a full disk, the name of the file: the system's own say only what happened."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def write(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Replace the file at once; text is UTF-8. Whatever is raised meanwhile leaves the file as it was.

    OSError names the file.
    """
    if isinstance(content, str):
        content = content.encode()
    handle, partial = beside(path)
    try:
        with named(path), os.fdopen(handle, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            os.fchmod(file.fileno(), 0o644)
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def write_named(path: Path, content: str | bytes | Iterable[bytes]) -> bool:
    """Write a file that a user has named; whether a file was made or replaced.

    A device, a FIFO and a link such as /dev/stdout are written to: replacing them would take them from other programs.
    """
    if not path.is_symlink() and (not path.exists() or path.is_file()):
        write(path, content)
        return True
    with named(path), path.open("wb") as file:
        content = content.encode() if isinstance(content, str) else content
        file.writelines([content] if isinstance(content, bytes) else content)
    return False


def write_new(path: Path, content: str) -> None:
    """Create a file at once, whole; FileExistsError where there is one, which stays as it is."""
    handle, partial = beside(path)
    try:
        with named(path), os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
        os.link(partial, path)
    finally:
        os.unlink(partial)


def beside(path: Path) -> tuple[int, str]:
    """A new, empty file in the same folder, open for writing, and its name. OSError names `path`."""
    try:
        return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        error.filename = str(path)
        raise


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file at once."""
    write(path, json.dumps(value, indent=1) + "\n")


def cache_directory() -> Path:
    """The folder of the user's cache of this program: `$XDG_CACHE_HOME/mrclab`, or `~/.cache/mrclab`."""
    return Path(cache.directory())


def in_use(path: Path) -> bool:
    """Whether a file of a cache is there; if so, it counts as used now."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:
        return path.exists()  # another user's
    return True


def drop_unused(directory: Path, pattern: str, now_s: float) -> None:
    """Remove the files of a cache that match, other than those that were made or used in the last `KEPT_S` seconds.
    `now_s` is in seconds since 1970, such as when the newest file was made: readers of this module know no clock."""
    oldest_s = now_s - KEPT_S
    for path in directory.glob(pattern):
        with suppress(OSError):  # another user's, or another process was quicker
            if path.stat().st_mtime < oldest_s:
                path.unlink()
