"""The error of every format: which line of which file breaks which rule."""

from pathlib import Path

from common import plain_file


class ScheduleError(ValueError):
    """A schedule that cannot be read or cannot run. The message names file, line, rule and what was given."""


def at(source: str, line: int, what: str) -> ScheduleError:
    """The error for a line, numbered from 1; line 0 is the file as a whole."""
    return ScheduleError(f"{source}:{line}: {what}" if line else f"{source}: {what}")


def unreadable(path: Path, error: OSError) -> ScheduleError:
    """A file that cannot be read."""
    return ScheduleError(f"{path}: {plain_file.why(error)}")
