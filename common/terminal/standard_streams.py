"""Standard output and error whose reader may leave early, such as `| head -1`: the command goes on without it."""

import errno
import io
import os
import re
import select
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from common.terminal.printable import printable_text

__all__ = ["PROGRAM", "named", "write_error", "write_out"]

PROGRAM = "./lab" if (Path(__file__).parents[2] / "lab").is_file() else "mrclab"
"""The command that a user types: a clone has the script `lab`, an installed wheel the command `mrclab`."""

_AS_WRITTEN = re.compile(r"\./lab(?![\w./-])")


def write_out(text: str, stream: IO[str] | None = None) -> None:
    """Write to standard output, or to `stream`, at once. Without a reader the text is dropped, and the command goes on.

    Commands whose exit status is a verdict write this way. A command that never ends by itself, such as one that
    prints counters each second, writes plainly: BrokenPipeError ends it.
    """
    chosen = sys.stdout if stream is None else stream
    try:
        chosen.write(text)
        chosen.flush()
    except OSError as error:
        if not lost_reader(error, chosen):
            raise
        silence(chosen)


def lost_reader(error: OSError, stream: IO[str]) -> bool:
    """Whether a stream could not be written because its reader has gone: that of a pipe, or a terminal's window."""
    if error.errno == errno.EIO:  # of a disk as well
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    return isinstance(error, BrokenPipeError)


def write_error(message: str) -> None:
    """Write a message to standard error. A terminal obeys nothing of it. Further lines are indented, so that a name of
    another party that holds a line break does not pass for a message."""
    write_out(printable_text(message).replace("\n", "\n  ") + "\n", sys.stderr)


def open_all() -> None:
    """Have all three standard streams open: the next file would take the number of one that is closed, and have what is
    written to the stream. ValueError where standard output was closed: its words there would be lost."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, and inherited
            os.set_inheritable(number, True)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    if sys.stdout is None:
        raise ValueError("standard output must be open (it is closed): >/dev/null drops what is written there")


def bear_all_texts() -> None:
    """Have the standard streams write what their encoding lacks as `\\u2192`, and not end the command. They write
    `./lab` as PROGRAM, so that texts of all rooms name the command that the user has."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
            if PROGRAM != "./lab":
                stream.write = partial(_write_named, stream.write)  # type: ignore[method-assign]


def named(text: str) -> str:
    """A text that speaks of `./lab`, with PROGRAM in its place."""
    return _AS_WRITTEN.sub(PROGRAM, text)


def _write_named(write: Callable[[str], int], text: str) -> int:
    write(named(text))
    return len(text)


def silence(stream: IO[str]) -> None:
    """Lead a stream to nowhere for the rest of the process, with the text that it still holds."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def drop_unread() -> bool:
    """Silence the standard streams that have lost their reader; whether one has.

    The interpreter flushes them when it ends. A broken pipe would change the exit status there.
    """
    lost = [_lost_its_reader(stream) for stream in (sys.stdout, sys.stderr)]
    return any(lost)


def _lost_its_reader(stream: IO[str] | None) -> bool:
    if stream is None or stream.closed:
        return False
    with suppress(OSError):  # such as a full disk: the interpreter reports it when it ends
        stream.flush()
    with suppress(OSError):  # a stream in memory has no descriptor
        events = select.poll()
        events.register(stream.fileno(), 0)  # no event but that the other end has gone
        if events.poll(0):
            silence(stream)
            return True
    return False
