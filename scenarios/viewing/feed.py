"""One stream of a run's journal lines, from its files as they are or as they grow; every viewer reads the same list."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from scenarios.journal import checked

BATCH_LINES = 1000


class Feed:
    """The lines of a run in the order in which they were found; a viewer resumes by their number.

    What is there at the first look is in order of time. The folder stays open, so that a process which has given up
    its rights goes on reading.
    """

    def __init__(self, run: Path | None) -> None:
        """None: a plan, of which nothing is journalled. FileNotFoundError when the folder is no run."""
        self.epoch = secrets.token_hex(4)
        """A server that was started again reads in an order of its own: numbers of one epoch say nothing in another."""
        self.lines: list[bytes] = []
        self.told = run is None
        """Whether all that will ever come has been read."""
        self._offsets: dict[str, int] = {}
        self._folder = -1 if run is None else os.open(run, os.O_RDONLY | os.O_DIRECTORY)
        self._journals = -1
        self._whole = run is not None and not (run / "journal").is_dir()
        if run is not None and not self._whole:
            self._journals = os.open(run / "journal", os.O_RDONLY | os.O_DIRECTORY)
        elif run is not None and not (run / "journal.jsonl").exists():
            raise FileNotFoundError(f"{run} is not a run: it has neither journal/*.jsonl nor journal.jsonl")

    def over(self) -> bool:
        """Whether nothing can come any more: a run is judged when it has ended."""
        if self._folder < 0:
            return True
        try:
            os.stat("verdict.json", dir_fd=self._folder)
        except FileNotFoundError:
            return False
        return True

    def poll(self) -> int:
        """Read what was written since the last look; returns how many lines there are now."""
        if self._folder < 0:
            return 0
        found: list[tuple[int, bytes]] = []
        place = self._folder if self._whole else self._journals
        names = ["journal.jsonl"] if self._whole else sorted(n for n in os.listdir(place) if n.endswith(".jsonl"))
        for name in names:
            found += self._read(name, place)
        found.sort(key=lambda item: item[0])
        self.lines += [line for _, line in found]
        return len(self.lines)

    def _read(self, name: str, place: int) -> list[tuple[int, bytes]]:
        with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=place), "rb") as file:
            file.seek(self._offsets.get(name, 0))
            data = file.read()
        end = data.rfind(b"\n") + 1  # the last line may still be on its way
        self._offsets[name] = self._offsets.get(name, 0) + end
        found = []
        for part in data[:end].splitlines():
            try:
                found.append((int(checked(json.loads(part))["t_ns"]), part))
            except ValueError:
                continue  # judging reports a bad line
        return found

    def batch(self, start: int) -> bytes:
        """At most BATCH_LINES lines from number `start` on, as one JSON list."""
        return b"[" + b",".join(self.lines[start : start + BATCH_LINES]) + b"]"

    def resumed(self, last_id: str) -> int | None:
        """The number of the line after the one with this id (`EPOCH-NUMBER`); None when it is none of this epoch's."""
        epoch, _, number = last_id.partition("-")
        if epoch != self.epoch or not number.isascii() or not number.isdecimal() or len(number) > 12:
            return None
        return min(int(number), len(self.lines))

    def close(self) -> None:
        for descriptor in (self._folder, self._journals):
            if descriptor >= 0:
                os.close(descriptor)
        self._folder = self._journals = -1
