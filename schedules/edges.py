"""Which operations follow which, in columns, and batches of columns, so that sorting takes little memory."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Ints = np.ndarray[Any, np.dtype[Any]]
BATCH = 1 << 19
"""Entries that are sorted at once: their indices and keys take about 40 bytes each."""


class Edges(NamedTuple):
    """Which operations follow which: those after `n` are `after[start[n]:start[n + 1]]`, in the order of the file."""

    start: Ints
    after: Ints


def grouped(before: Ints, after: Ints, operations: int) -> Edges:
    """Edges from pairs of operations."""
    if not len(before):
        return Edges(np.broadcast_to(np.uint32(0), operations + 1), after)  # one number in memory
    start = np.zeros(operations + 1, dtype=np.uint32)
    count(before, start[1:])
    np.cumsum(start, out=start)
    ordered = np.empty(len(after), dtype=np.uint32)
    for low, high in batches(start):
        own = np.flatnonzero((before >= low) & (before < high))
        ordered[start[low] : start[high]] = after[own[np.argsort(before[own], kind="stable")]]
    return Edges(start, ordered)


def count(numbers: Ints, into: Ints) -> None:
    """Add to `into` how often each number occurs."""
    for place in range(0, len(numbers), BATCH):
        np.add.at(into, numbers[place : place + BATCH], into.dtype.type(1))


def batches(start: Ints) -> Iterator[tuple[int, int]]:
    """Ranges of groups with at most `BATCH` entries together, or one group. `start` is where each group begins."""
    low, groups = 0, len(start) - 1
    while low < groups:
        most = min(int(start[low]) + BATCH, int(start[-1]))
        high = int(np.searchsorted(start, start.dtype.type(most), side="right")) - 1
        low, before = max(low + 1, min(high, groups)), low
        yield before, low
