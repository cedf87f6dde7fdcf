"""The processes that a process has started, and those that they have."""

from contextlib import suppress
from pathlib import Path


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    left = [pid]
    while left:
        with suppress(FileNotFoundError):  # it may end meanwhile
            for child in Path(f"/proc/{left.pop()}/task").glob("*/children"):
                new = {int(word) for word in child.read_text().split()} - found
                found |= new
                left += new
    return found
