"""The log of transmissions that loss rules judge by: numbers in two rings, since a tuple per packet would cost more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

ROOM: Final = 16
"""Entries that a new log has room for; a power of two, as every ring's."""


class SentLog:
    """(PSN, time sent) of every transmission, oldest first: a deque of pairs. A rule takes out what it has judged."""

    def __init__(self) -> None:
        self._psns = [0] * ROOM
        self._sent_ns = [0] * ROOM
        self._mask = ROOM - 1
        self._first = self._count = 0
        """The place of the oldest, and how many there are."""

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> tuple[int, int]:
        """Entry 0 is the oldest, -1 the newest. Raises `IndexError`."""
        if not -self._count <= place < self._count:
            raise IndexError(f"the log has {self._count} transmissions, and no entry {place}")
        at = self._first + (place if place >= 0 else self._count + place) & self._mask
        return self._psns[at], self._sent_ns[at]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter([self[place] for place in range(self._count)])

    def append(self, entry: tuple[int, int]) -> None:
        if self._count > self._mask:
            self._grow()
        at = self._first + self._count & self._mask
        self._psns[at] = entry[0]
        self._sent_ns[at] = entry[1]
        self._count += 1

    def extend(self, entries: Iterable[tuple[int, int]]) -> None:
        for entry in entries:
            self.append(entry)

    def popleft(self) -> tuple[int, int]:
        """Take the oldest out. Raises `IndexError` if there is none."""
        oldest = self[0]
        self._first = self._first + 1 & self._mask
        self._count -= 1
        return oldest

    def clear(self) -> None:
        self._first = self._count = 0

    def _grow(self) -> None:
        """Twice the room; the ring is full."""
        first = self._first
        room = [0] * (self._mask + 1)
        self._psns = [*self._psns[first:], *self._psns[:first], *room]
        self._sent_ns = [*self._sent_ns[first:], *self._sent_ns[:first], *room]
        self._first, self._mask = 0, 2 * self._mask + 1
