"""A schedule: operations of ranks with their dependencies, in columns, the same for all formats."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from schedules import operation
from schedules.errors import at

Ints = np.ndarray[Any, np.dtype[Any]]
NOMINAL_BPS = 100e9
NOMINAL_DELAY_NS = 5_000
"""For the length of the longest chain: the rate of a host and the delay of a message."""


class Edges(NamedTuple):
    """Which operations follow which: those after `n` are `after[start[n]:start[n + 1]]`, in the order of the file."""

    start: Ints
    after: Ints


def grouped(before: Ints, after: Ints, count: int) -> Edges:
    """Edges from pairs of operations."""
    counts = np.bincount(before, minlength=count) if len(before) else np.zeros(count, dtype=np.int64)
    return Edges(np.concatenate(([0], np.cumsum(counts))), after[np.argsort(before, kind="stable")])


class Part(NamedTuple):
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

    @cached_property
    def _by_rank(self) -> Edges:
        return grouped(self.rank, np.arange(len(self.rank)), self.ranks)

    def part(self, rank: int) -> Part:
        """The operations of one rank."""
        mine = self._by_rank.after[self._by_rank.start[rank] : self._by_rank.start[rank + 1]]
        columns = (self.kind, self.peer, self.amount, self.processor, self.line, self.message, self.need)
        following = [edge for edges in (self.successors, self.starts) for edge in own_edges(edges, mine)]
        return Part(*(as_array(values[mine]) for values in columns), *map(as_array, following))

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

    @cached_property
    def chain_ns(self) -> int:
        """The longest chain of operations that wait for each other, at 100 Gb/s and with 5 µs per message.

        Each operation takes as long as it would alone; a barrier's or a processor's queue does not count.
        """
        return self._walked[1]

    def check_order(self) -> None:
        """ScheduleError when an operation waits, over any number of others, for itself."""
        waiting, _ = self._walked
        if waiting:
            first = min(waiting, key=lambda number: int(self.line[number]))
            name = operation.NAMES[int(self.kind[first])]
            raise at(
                self.source,
                int(self.line[first]),
                f"an operation must not wait for itself: this {name} of rank {int(self.rank[first])} is one of"
                f" {len(waiting)} that can never start",
            )

    @cached_property
    def _walked(self) -> tuple[list[int], int]:
        """All operations gone through, each in its nominal time: those that never start, and the last end, ns."""
        kind, need = as_array(self.kind), as_array(self.need)
        amount, receive_of = as_array(self.amount), as_array(self._receives())
        next_at, following = map(as_array, self.successors)
        start_at, starting = map(as_array, self.starts)
        ready_ns, turned = array("q", bytes(8 * len(kind))), array("I", bytes(4 * len(kind)))
        for number in map(int, np.flatnonzero(self.kind == operation.RECV)):
            need[number] += 1
        at_once = (number for number, count in enumerate(need[:]) if not count)  # no list: it may be all of them
        stack: list[int] = []
        seen = latest_ns = 0
        while True:
            number = stack.pop() if stack else next(at_once, -1)
            if number < 0:
                break
            seen += 1
            began_ns = ready_ns[number]
            cost_ns = amount[number] if kind[number] == operation.CALC else 0
            ended_ns = max(began_ns, amount[number]) if kind[number] == operation.WAIT else began_ns + cost_ns
            reached = [(after, began_ns) for after in starting[start_at[number] : start_at[number + 1]]]
            if kind[number] == operation.SEND:
                arrived_ns = began_ns + NOMINAL_DELAY_NS + round(amount[number] * 8e9 / NOMINAL_BPS)
                reached.append((receive_of[number], arrived_ns))
                ended_ns = arrived_ns + NOMINAL_DELAY_NS  # the acknowledgement is in
            latest_ns = max(latest_ns, ended_ns)
            reached += [(after, ended_ns) for after in following[next_at[number] : next_at[number + 1]]]
            for after, at_ns in reached:
                target = after
                if kind[after] == operation.TURN:
                    place = next_at[after] + turned[after]
                    turned[after] += 1
                    need[after] -= 1
                    seen += not need[after]
                    if place >= next_at[after + 1]:
                        continue
                    target = following[place]
                ready_ns[target] = max(ready_ns[target], at_ns)
                need[target] -= 1
                if not need[target]:
                    stack.append(target)
        waiting = [number for number, count in enumerate(need) if count] if seen < len(kind) else []
        return waiting, latest_ns

    def _receives(self) -> Ints:
        """Per send its receive; 0 for other operations."""
        found = np.zeros(len(self.kind), dtype=np.int32)
        sends = np.flatnonzero(self.kind == operation.SEND)
        receives = np.flatnonzero(self.kind == operation.RECV)
        sends = sends[np.lexsort((self.message[sends], self.peer[sends], self.rank[sends]))]
        receives = receives[np.lexsort((self.message[receives], self.rank[receives], self.peer[receives]))]
        found[sends] = receives
        return found


def own_edges(edges: Edges, mine: Ints) -> tuple[Ints, Ints]:
    """The edges between a rank's operations, by their numbers within the rank. `mine` is sorted."""
    lengths = edges.start[mine + 1] - edges.start[mine]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    places = np.repeat(edges.start[mine] - starts[:-1], lengths) + np.arange(starts[-1])
    return starts, np.searchsorted(mine, edges.after[places])


def as_array(values: Ints) -> array[int]:
    """A column whose items are Python's integers, which cost less to read one by one than numpy's."""
    return array(values.dtype.char, values.tobytes())
