"""A schedule: operations of ranks with their dependencies, in columns, the same for all formats."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from schedules import operation
from schedules.edges import Edges, Ints, grouped


class RankOperations(NamedTuple):
    """One rank's operations, numbered from 0; edges as in `Edges`. The items of columns are Python's integers."""

    kind: array[int]
    peer: array[int]
    amount: array[int]
    processor: array[int]
    line: array[int]
    message: array[int]
    need: array[int]
    """How many operations must complete, or start, before this one starts."""
    next_at: array[int]
    next: array[int]
    start_at: array[int]
    start: array[int]


@dataclass(frozen=True, eq=False)
class Schedule:
    """All operations of a file. Columns have one entry per operation; `line` is its place in the file."""

    source: str
    ranks: int
    kind: Ints
    rank: Ints
    peer: Ints
    amount: Ints
    processor: Ints
    line: Ints
    need: Ints
    message: Ints
    successors: Edges
    starts: Edges
    chain_ns: int
    """The longest chain of operations that wait for each other, at 100 Gb/s and with 5 µs per message.

    Each operation takes as long as it would alone; a barrier's or a processor's queue does not count.
    """

    @cached_property
    def _by_rank(self) -> Edges:
        return grouped(self.rank, np.arange(len(self.rank), dtype=np.uint32), self.ranks)

    def part(self, rank: int) -> RankOperations:
        """The operations of one rank."""
        mine = self._by_rank.after[self._by_rank.start[rank] : self._by_rank.start[rank + 1]]
        columns = (self.kind, self.peer, self.amount, self.processor, self.line, self.message, self.need)
        following = [edge for edges in (self.successors, self.starts) for edge in own_edges(edges, mine)]
        return RankOperations(*(as_array(values[mine]) for values in columns), *map(as_array, following))

    @property
    def messages(self) -> int:
        """Messages of the file; those that carry a trigger to another rank are not counted."""
        return int(np.count_nonzero((self.kind == operation.SEND) & (self.line > 0)))

    @property
    def bytes(self) -> int:
        """The bytes of all messages together."""
        return int(self.amount[(self.kind == operation.SEND) & (self.line > 0)].sum())

    @cached_property
    def pairs(self) -> int:
        """Ranks that send to a rank, counted by pairs."""
        sends = self.kind == operation.SEND
        return len(np.unique(self.rank[sends].astype(np.int64) * self.ranks + self.peer[sends]))

    def most_bytes(self) -> int:
        """The bytes that the most loaded rank sends or receives."""
        loads = [
            np.bincount(self.rank[self.kind == kind], self.amount[self.kind == kind], self.ranks)
            for kind in (operation.SEND, operation.RECV)
        ]
        return int(max((load.max() for load in loads if len(load)), default=0))


def own_edges(edges: Edges, mine: Ints) -> tuple[Ints, Ints]:
    """The edges between a rank's operations, by their numbers within the rank. `mine` is sorted."""
    first = edges.start[mine].astype(np.int64)
    lengths = edges.start[mine + 1] - first
    starts = np.concatenate(([0], np.cumsum(lengths)))
    places = np.repeat(first - starts[:-1], lengths) + np.arange(starts[-1])
    return starts, np.searchsorted(mine, edges.after[places])


def as_array(values: Ints) -> array[int]:
    """A column whose items are Python's integers, which cost less to read one by one than numpy's."""
    return array(values.dtype.char, values.tobytes())
