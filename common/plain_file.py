"""Regular files of folders that may come from other people: links, FIFOs, devices and sockets are refused by name.

A run folder is data that people hand in and attach to mails. Reading it must neither follow a link out of it nor
wait for the writer of a FIFO. A file that the user names on the command line may be a link.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from common.linux.rights import is_trusted

__all__ = [
    "LINE_BYTES_MAX", "TooLongError", "TooLongLineError", "check_folder", "checked_size", "entered", "followed",
    "is_public", "lines", "open_at", "open_folder", "open_named", "open_plain", "opened_parent",
    "parse_json", "read_by_writers", "read_bytes", "read_named", "read_object", "read_up_to", "text_fault", "why",
]  # fmt: skip

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


TEXT_BYTES_MAX = 64 << 20
"""Of a text that is read whole: plans, options, verdicts, schedules."""
LINKS_MAX = 40
"""As many as the kernel follows on a way (path_resolution(7))."""
KERNELS = Path()
"""In place of the target of a link in /proc, such as /proc/self/fd/1, which may be no path."""
LINE_BYTES_MAX = 16 << 20
"""Of a line of a journal or packet log. A host has at most 4,096 queue pairs; a sample tells of each in 1,000 bytes."""

JSON_MARKS_MAX = 2_000_000
"""Of commas, colons and opening brackets in JSON: as many as there are values and keys, of up to 100 bytes each."""
_MARKS = (b",", b":", b"[", b"{")


class NotPlainError(OSError):
    """The path is no regular file; the message says what it is, and `strerror` says so without the path."""

    def __init__(self, path: str | Path, rule: str) -> None:
        super().__init__(f"{path} {rule}")
        self.strerror = rule


class TooLongError(NotPlainError):
    """The file has more bytes than its reader takes."""


class TooLongLineError(TooLongError):
    """A line of the file has more bytes than its reader takes."""

    def __init__(self, path: str | Path, number: int) -> None:
        super().__init__(f"{path}:{number}", f"must be a line of at most {LINE_BYTES_MAX} bytes")


def open_plain(path: str | Path, dir_fd: int | None = None) -> io.BufferedReader:
    """Open a regular file for reading, below an open folder if there is one. FileNotFoundError when it is missing,
    NotPlainError when it is anything else, or when its folder is a link of another user."""
    try:
        descriptor = open_at(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket, or a FIFO's other end
            raise _refused(path, os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode) from None
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise _refused(path, mode)
    return os.fdopen(descriptor, "rb")


def open_folder(name: str | Path, dir_fd: int | None = None) -> int:
    """A descriptor of a folder, below an open one if there is one. FileNotFoundError when it is missing, NotPlainError
    when it is a link or no folder."""
    try:
        return open_at(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd)
    except NotADirectoryError:
        raise _refused(name, os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode, "a directory") from None


def open_at(path: str | Path, flags: int, dir_fd: int | None = None) -> int:
    """`os.open` below an open folder if there is one, else behind no link of another user (`opened_parent`)."""
    if dir_fd is not None:
        return os.open(path, flags, 0o644, dir_fd=dir_fd)
    folder = opened_parent(Path(path).parent)
    try:
        return os.open(Path(path).name or ".", flags, 0o644, dir_fd=folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(folder)


def opened_parent(folder: Path, start: int | None = None) -> int:
    """A descriptor of the folder of a file that is opened next, below the open folder `start` if it is relative. On all
    of the way, only links of root, this user and the user who called sudo are followed; NotPlainError for another."""
    # Not the current folder where it is not needed: this user may have no right to enter it, as after `su`.
    opened = os.open(folder.anchor or ".", os.O_PATH | os.O_CLOEXEC, dir_fd=start)
    left, links = [*reversed(folder.parts)], 0
    try:
        while left:
            entry, target = entered(left.pop(), opened, folder)
            if target is None:
                os.close(opened)
                opened = entry
            else:
                left += reversed(target.parts)
                if (links := links + 1) > LINKS_MAX:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    except OSError as error:
        os.close(opened)
        raise error if isinstance(error, NotPlainError) else OSError(error.errno, error.strerror, str(folder)) from None
    return opened


def entered(name: str, folder: int, path: Path, *, last: bool = False) -> tuple[int, Path | None]:
    """A descriptor of the next entry on the way to `path`, or where it leads if it is a link; where only the kernel can
    follow it, as in /proc, the descriptor is of what it leads to, but for the `last` one: KERNELS. NotPlainError for a
    link of another user."""
    entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    status = os.fstat(entry)
    if not stat.S_ISLNK(status.st_mode):
        return entry, None
    try:
        if not is_trusted(status.st_uid):
            rule = "must be without links of other users"
            raise NotPlainError(path, f"{rule} ({name} is a symbolic link of user {status.st_uid})")
        if status.st_dev != os.stat("/proc").st_dev:
            return -1, Path(os.readlink("", dir_fd=entry))
    finally:
        os.close(entry)
    return (-1, KERNELS) if last else (os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=folder), None)


def followed(path: Path) -> Path:
    """A path without links, as `Path.resolve` finds it; NotPlainError for one of another user (`opened_parent`)."""
    missing: list[str] = []
    while True:
        try:
            entry = opened_parent(path)
            break
        except (FileNotFoundError, NotADirectoryError):
            missing.insert(0, path.name)
            path = path.parent
    try:
        return Path(os.readlink(f"/proc/self/fd/{entry}"), *missing)
    finally:
        os.close(entry)


def lines(file: IO[bytes], path: str | Path, number: int = 0) -> Iterator[bytes]:
    """The lines of an open file, with their ends; `number` of them were read before. TooLongLineError for one above
    LINE_BYTES_MAX: a file of a few bytes on a disk may claim to be one line of any length."""
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise TooLongLineError(path, number)
        yield line


def open_named(path: str | Path) -> io.BufferedReader:
    """Open a regular file that a user has named. A link is followed; everything else is as for `open_plain`. Errors
    have the name that was given."""
    try:
        return open_plain(Path(path).resolve())
    except NotPlainError as error:
        raise NotPlainError(path, str(error.strerror)) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def read_up_to(path: str | Path, bytes_max: int = TEXT_BYTES_MAX) -> bytes:
    """The content of a regular file that a user, or a file of his, has named. TooLongError above `bytes_max`."""
    with open_named(path) as file:
        return file.read(checked_size(file, path, bytes_max))


def checked_size(file: IO[bytes], path: str | Path, bytes_max: int) -> int:
    """How many bytes an open file has, for a reader that reads no more: some of /proc, which are regular files of 0
    bytes, make a reader wait for ever. TooLongError above `bytes_max`."""
    state = os.fstat(file.fileno())
    if not state.st_size and state.st_dev == os.stat("/proc").st_dev:
        raise NotPlainError(path, "must be a file of a disk (it is the kernel's)")
    if state.st_size > bytes_max:
        raise TooLongError(path, f"must have at most {bytes_max} bytes (got {state.st_size})")
    return state.st_size


def is_public(path: Path) -> bool:
    """Whether every user of the machine may read the file at an absolute path without links."""
    return bool(path.stat().st_mode & stat.S_IROTH) and all(p.stat().st_mode & stat.S_IXOTH for p in path.parents)


def read_by_writers(path: Path, folder: Path) -> bool:
    """Whether every user who may write a folder may read a file below it; both absolute and without links. Root
    may read everything."""
    writers = folder.stat()
    for place in (path, *(parent for parent in path.parents if parent.is_relative_to(folder) and parent != folder)):
        state = place.stat()
        user, group, others = (0o100, 0o010, 0o001) if stat.S_ISDIR(state.st_mode) else (0o400, 0o040, 0o004)
        if state.st_mode & others:
            continue
        own = writers.st_uid == 0 or (writers.st_uid == state.st_uid and state.st_mode & user)
        of_group = writers.st_gid == state.st_gid and state.st_mode & group
        if not own or (writers.st_mode & stat.S_IWGRP and not of_group) or writers.st_mode & stat.S_IWOTH:
            return False
    return True


def read_named(path: str | Path, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """The text of a regular file that a user has named, UTF-8 with any line ends. TooLongError above `bytes_max`."""
    with io.TextIOWrapper(io.BytesIO(read_up_to(path, bytes_max)), encoding="utf-8") as file:
        return file.read()


def read_bytes(path: str | Path, bytes_max: int = TEXT_BYTES_MAX) -> bytes:
    """The content of a regular file. TooLongError above `bytes_max`."""
    with open_plain(path) as file:
        return file.read(checked_size(file, path, bytes_max))


def parse_json(text: str | bytes, **how: Any) -> Any:
    """The value of a JSON text that others may have written. ValueError as `json.loads` raises it, which also takes
    `how`, and above JSON_MARKS_MAX: three bytes of such a text may become an object of a hundred."""
    if len(text) > JSON_MARKS_MAX:
        data = text if isinstance(text, bytes) else text.encode()
        if (marks := sum(map(data.count, _MARKS))) > JSON_MARKS_MAX:
            raise ValueError(f"at most {JSON_MARKS_MAX} commas, colons, [ and {{ are allowed (got {marks})")
    return json.loads(text, **how)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a regular file. ValueError names the file and what is wrong with it."""
    try:
        value = parse_json(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} must hold JSON ({text_fault(error)})") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object (got {type(value).__name__})")
    return value


def text_fault(error: Exception) -> str:
    """The fault of a text file, for a message that names the file and the format that it must have."""
    if isinstance(error, OSError):
        return why(error)
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    return str(error)


def why(error: OSError) -> str:
    """Why a file cannot be read, as the end of a message that begins with the file's name."""
    said = error.strerror or str(error)
    return said if isinstance(error, NotPlainError) else said.lower()


def check_folder(path: Path) -> None:
    """Refuse a folder that is a link or no folder; a missing one is fine."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(mode):
        raise _refused(path, mode, "a directory")


def _refused(path: str | Path, mode: int, wanted: str = "a regular file") -> NotPlainError:
    kind = next((name for test, name in _KINDS if test(mode)), "a regular file")
    return NotPlainError(path, f"must be {wanted} (it is {kind})")
