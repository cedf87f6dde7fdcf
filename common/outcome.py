"""Exit statuses of commands, and how an exception becomes one line and a status."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from common.terminal.printable import printable, printable_text
from common.terminal.standard_streams import bear_all_texts, drop_unread, open_all, write_error, write_out

__all__ = ["DEBUG", "INTERRUPTED", "NOT_DONE", "at_the_end", "carry_out", "error_line"]

TRUE: Final = 0
FALSE: Final = 1
NOT_DONE: Final = 2
"""The command could not be carried out: bad input, a missing file, a full disk, a defect."""
UNKNOWN: Final = 3
INTERRUPTED: Final = 130
UNREAD: Final = 141
"""The reader of the output left, such as `| head -1`, and the command ended there: 128 and the number of SIGPIPE."""

DEBUG = "MRCLAB_DEBUG"
"""Set to 1 in the environment, it shows the trace-back of an error beside its line."""
SAID_MAX = 4000
"""Characters of an error that are shown."""
_SAID = (OSError, ValueError, RuntimeError)
"""Exceptions whose message is written for the user."""


def carry_out(program: str, command: Callable[[], int]) -> int:
    """The status of `command`, which may raise anything: no exception may end with the status of a false verdict."""
    bear_all_texts()
    if os.geteuid() == 0:  # what root makes, such as profiles that its agents obey, others may not change
        os.umask(os.umask(0o077) | 0o022)
    try:
        open_all()
        return command()
    except KeyboardInterrupt:
        write_out(f"{program}: interrupted\n", sys.stderr)
        return INTERRUPTED
    except BrokenPipeError as error:
        # Another pipe or a socket may have broken as well, which is an error like any other.
        return UNREAD if drop_unread() else _not_done(program, error)
    except Exception as error:
        return _not_done(program, error)
    finally:
        drop_unread()


@contextmanager
def at_the_end(act: Callable[[], None]) -> Iterator[None]:
    """Carry out `act` at the end. After an exception, an error of `act` is a note to it and never takes its place: a
    full disk also keeps a run from being judged, and the file that is missing there is not the reason."""
    try:
        yield
    except BaseException as reason:
        try:
            act()
        except Exception as error:
            reason.add_note(f"and then: {error_line(error)}")
        raise
    act()


def _not_done(program: str, error: Exception) -> int:
    """The status of a command that an exception ended, after a line that says why."""
    trace = traceback.format_exc() if os.environ.get(DEBUG) == "1" else ""
    notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
    write_out(printable_text(trace), sys.stderr)
    write_error(f"{program}: {error_line(error)}{notes}")
    return NOT_DONE


def error_line(error: Exception) -> str:
    """An exception as one line, which loses its middle above SAID_MAX: it may quote a file of one line."""
    said = _said(error)
    return said if len(said) <= SAID_MAX else f"{said[: SAID_MAX // 2]} … {said[-SAID_MAX // 2 :]}"


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"the input is nested too deeply ({DEBUG}=1 shows where)"
    if isinstance(error, UnicodeDecodeError):
        return f"a file must be UTF-8 (byte {error.start} is {error.object[error.start]:#x}; {DEBUG}=1 shows which)"
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        # Files are written beside their place and moved there: the place is what the user knows.
        place = error.filename2 or error.filename
        why = error.strerror.lower() if error.strerror == os.strerror(error.errno) else error.strerror
        return why if place is None else f"{printable(str(place))}: {why}"
    if isinstance(error, _SAID) and str(error):
        return str(error)
    where = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" at {os.path.basename(where[0].filename)}:{where[0].lineno}" if where else ""
    return f"{type(error).__name__}: {error}{place}, which is a defect or a damaged file ({DEBUG}=1 shows more)"
