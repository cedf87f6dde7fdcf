"""A process that owns workers, each of which writes files for ever: `python -m tests.helpers.owner NUMBER SCRATCH`."""

import itertools
import os
import sys
from pathlib import Path

from running.workers import Workers


def write_for_ever(scratch: str) -> None:
    """Folders and files below a folder of this process."""
    for number in itertools.count():
        path = Path(scratch, str(os.getpid()), str(number))
        path.mkdir(parents=True)
        (path / "file").touch()


def living(group: int) -> list[int]:
    """The processes of a process group that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def main() -> None:
    """Give each worker its endless task, and wait."""
    number, scratch = int(sys.argv[1]), Path(sys.argv[2])
    workers = Workers(number, scratch)
    for future in [workers.submit(write_for_ever, str(scratch)) for _ in range(number)]:
        future.result()


if __name__ == "__main__":
    main()
