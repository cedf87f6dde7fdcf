"""The lines of a file, read as they are needed, and the numbers in them."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

from common import plain_file
from schedules.errors import at, unreadable

LINE_CHARACTERS_MAX = 65_536
FILE_BYTES_MAX = 8 << 30


def opened(path: Path) -> io.BufferedReader:
    """A workload file, open. OSError; TooLongError above `FILE_BYTES_MAX`."""
    file = plain_file.open_named(path)
    try:
        plain_file.checked_size(file, path, FILE_BYTES_MAX)
    except OSError:
        file.close()
        raise
    return file


Follow = Callable[[Iterator[str], Callable[[], int]], Iterator[str]]
"""Passes lines on, and may tell how far the file is read, in bytes."""


def unwatched(path: Path) -> Follow:
    return lambda read, _: read


def lines(path: Path, watch: Callable[[Path], Follow] = unwatched) -> Iterator[str]:
    """The lines of a UTF-8 text file, without their ends and a byte order mark. `watch` looks at a file that is not too
    large before it is read, and may refuse it.

    ScheduleError when it cannot be read or is no text.
    """
    number = 0
    try:
        with opened(path) as plain, io.TextIOWrapper(plain, encoding="utf-8-sig", newline=None) as file:
            read = iter(lambda: file.readline(LINE_CHARACTERS_MAX), "")
            for line in watch(path)(read, plain.tell):
                number += 1
                if len(line) >= LINE_CHARACTERS_MAX:
                    raise at(str(path), number, f"a line must have fewer than {LINE_CHARACTERS_MAX} characters")
                yield line.rstrip("\n")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise at(str(path), number + 1, f"the file must be UTF-8 text ({error.reason})") from error


def whole_number(text: str, what: str, low: int, high: int) -> int:
    """A whole number in its range. ValueError names `what`, the range and the text."""
    if text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high:
        return int(text)
    raise ValueError(f"{what} must be a whole number from {low} to {high} (got {text!r})")
