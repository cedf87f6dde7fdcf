"""Collects the operations of a file, one at a time, in columns of machine integers: 26 bytes per operation.

A file of 100 MB has some million operations; as Python objects they would take gigabytes. The schedule has the same
columns, not copies of them. Sorting goes in batches, because the indices of a sort take more than the columns sorted.
"""

from __future__ import annotations

from array import array

import numpy as np

from schedules import operation
from schedules.edges import Edges, Ints, batches, count, grouped
from schedules.errors import at
from schedules.schedule import Schedule

# Goes through all operations of a schedule once: does each one start, and how long is the longest chain?
NOMINAL_BPS = 100e9
NOMINAL_DELAY_NS = 5_000
"""For the length of the longest chain: the rate of a host and the delay of a message."""
CHAIN_NS_MAX = (1 << 63) - 1
GONE_THROUGH = -1


def walk(
    kind: array[int], amount: array[int], partner: array[int], need: array[int], successors: Edges, starts: Edges
) -> tuple[int, int]:
    """How many operations never start, and the end of the last one, ns, where each takes its nominal time.

    `need` is used up: it is above 0 for operations that never start, and `GONE_THROUGH` for the others. OverflowError
    for an end beyond `CHAIN_NS_MAX`.
    """
    next_at, following = indexed(successors.start), indexed(successors.after)
    start_at, starting = indexed(starts.start), indexed(starts.after)
    ready_ns = array("q", bytes(8 * len(kind)))
    turned: dict[int, int] = {}
    for number in range(len(kind)):
        if kind[number] == operation.RECV:
            need[number] += 1
    at_once = (number for number in range(len(kind)) if not need[number])  # no list: it may be all of them
    stack: list[int] = []
    seen = latest_ns = 0
    while True:
        number = stack.pop() if stack else next(at_once, -1)
        if number < 0:
            break
        need[number] = GONE_THROUGH
        seen += 1
        began_ns = ready_ns[number]
        cost_ns = amount[number] if kind[number] == operation.CALC else 0
        ended_ns = max(began_ns, amount[number]) if kind[number] == operation.WAIT else began_ns + cost_ns
        reached = [(after, began_ns) for after in starting[start_at[number] : start_at[number + 1]]]
        if kind[number] == operation.SEND:
            arrived_ns = began_ns + NOMINAL_DELAY_NS + round(amount[number] * 8e9 / NOMINAL_BPS)
            reached.append((partner[number], arrived_ns))
            ended_ns = arrived_ns + NOMINAL_DELAY_NS  # the acknowledgement is in
        latest_ns = max(latest_ns, ended_ns)
        reached += [(after, ended_ns) for after in following[next_at[number] : next_at[number + 1]]]
        for after, at_ns in reached:
            target = after
            if kind[after] == operation.TURN:
                place = next_at[after] + turned.get(after, 0)
                turned[after] = turned.get(after, 0) + 1
                need[after] -= 1
                if not need[after]:
                    need[after] = GONE_THROUGH
                    seen += 1
                if place >= next_at[after + 1]:
                    continue
                target = following[place]
            ready_ns[target] = max(ready_ns[target], at_ns)
            need[target] -= 1
            if not need[target]:
                stack.append(target)
    if latest_ns > CHAIN_NS_MAX:
        raise OverflowError
    return len(kind) - seen, latest_ns


def indexed(column: Ints) -> memoryview[int]:
    """A column whose items are Python's integers, without a copy."""
    return column.data


RANKS_MAX = 1 << 17
BYTES_MAX = 1 << 40
NS_MAX = 1 << 60
MESSAGES_MAX = 1 << 30
"""Messages from one rank to one other: a message's number travels in 30 bits of the immediate."""


class Builder:
    """The operations read so far. `source` names the file in errors."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._kind, self._processor = array("B"), array("B")
        self._rank, self._peer = array("i"), array("i")
        self._line, self._amount, self._tag = array("I"), array("I"), array("I")
        self._before, self._after = array("I"), array("I")
        self._starts_before, self._starts_after = array("I"), array("I")

    def __len__(self) -> int:
        return len(self._kind)

    def add(
        self, kind: int, rank: int, amount: int, line: int, *, peer: int = -1, tag: int = 0, processor: int = 0
    ) -> int:
        """Add an operation; returns its number. `line` 0 marks one that the reader made itself."""
        self._kind.append(kind)
        self._rank.append(rank)
        self._peer.append(peer)
        self._amount = appended(self._amount, amount)
        self._tag = appended(self._tag, tag)
        self._processor.append(processor)
        self._line.append(line)
        return len(self._kind) - 1

    def require(self, after: int, before: int) -> None:
        """Operation `after` starts when `before` has completed; both are of one rank."""
        self._before.append(before)
        self._after.append(after)

    def require_start(self, after: int, before: int) -> None:
        """Operation `after` starts when `before` has started; both are of one rank."""
        self._starts_before.append(before)
        self._starts_after.append(after)

    def rank_of(self, number: int) -> int:
        """The rank of an operation."""
        return self._rank[number]

    def finish(self, ranks: int) -> Schedule:
        """The schedule, which takes the builder's columns. ScheduleError when a send has no receive, an operation
        waits for itself, or a chain of operations takes longer than a clock can count.
        """
        kind, lines = column(self._kind), column(self._line)
        partner = array("i", [-1]) * len(kind)
        self._match(column(partner), ranks)
        self._tag = array("I")
        successors = grouped(column(self._before), column(self._after), len(kind))
        self._before = self._after = array("I")
        starts = grouped(column(self._starts_before), column(self._starts_after), len(kind))
        self._starts_before = self._starts_after = array("I")
        need = predecessors(len(kind), successors.after, starts.after)
        try:
            waiting, chain_ns = walk(self._kind, self._amount, partner, need, successors, starts)
        except OverflowError:
            most = f"at most {CHAIN_NS_MAX} ns together"
            raise at(self.source, 0, f"operations that wait for each other must take {most}") from None
        if waiting:
            raise self._circle(waiting, column(need), lines)
        del need
        self._number(column(partner), ranks)
        return Schedule(
            source=self.source,
            ranks=ranks,
            kind=kind,
            rank=column(self._rank),
            peer=column(self._peer),
            amount=column(self._amount),
            processor=column(self._processor),
            line=lines,
            need=column(predecessors(len(kind), successors.after, starts.after)),
            message=column(partner),
            successors=successors,
            starts=starts,
            chain_ns=chain_ns,
        )

    def _sources(self, ranks: int) -> Ints:
        """How many messages ranks below each rank send and are to send: where its own begin, if sorted by sender."""
        first = np.zeros(ranks + 1, dtype=np.uint32)
        kind = column(self._kind)
        count(column(self._rank)[kind == operation.SEND], first[1:])
        count(column(self._peer)[kind == operation.RECV], first[1:])
        return np.cumsum(first, out=first)

    def _match(self, partner: Ints, ranks: int) -> None:
        """Write to `partner` the receive of each send, and the send of each receive.

        The k-th send from a rank to another with a tag matches the k-th receive there with that tag, as in MPI.
        """
        kind, line = column(self._kind), column(self._line)
        rank, peer, tag, amount = (column(c) for c in (self._rank, self._peer, self._tag, self._amount))
        for low, high in batches(self._sources(ranks)):
            sends = matching_order(among(kind, operation.SEND, rank, low, high), rank, peer, tag)
            receives = matching_order(among(kind, operation.RECV, peer, low, high), peer, rank, tag)
            shorter = min(len(sends), len(receives))
            differ = np.zeros(shorter, dtype=bool)
            for there, here in ((rank, peer), (peer, rank), (tag, tag)):
                differ |= there[sends[:shorter]] != here[receives[:shorter]]
            if differ.any() or len(sends) != len(receives):
                first = int(differ.argmax()) if differ.any() else shorter
                raise self._unmatched(sends[first : first + 1], receives[first : first + 1])
            wrong = np.flatnonzero(amount[sends] != amount[receives])
            if len(wrong):
                send, receive = int(sends[wrong[0]]), int(receives[wrong[0]])
                raise at(
                    self.source,
                    int(line[receive]),
                    f"a recv must have the size of its send: it has {amount[receive]} bytes, and the send in line"
                    f" {line[send]} has {amount[send]}",
                )
            partner[sends], partner[receives] = receives, sends

    def _number(self, partner: Ints, ranks: int) -> None:
        """Replace each partner by the number of the message among those from one rank to the other."""
        kind, rank, peer = column(self._kind), column(self._rank), column(self._peer)
        for low, high in batches(self._sources(ranks)):
            sends = among(kind, operation.SEND, rank, low, high)
            numbers = numbered(rank[sends].astype(np.int64) * RANKS_MAX + peer[sends])
            if len(numbers) and int(numbers.max()) >= MESSAGES_MAX:
                raise at(self.source, 0, f"one rank must send another at most {MESSAGES_MAX} messages")
            partner[partner[sends]] = numbers
            partner[sends] = numbers

    def _unmatched(self, sends: Ints, receives: Ints) -> ValueError:
        """The error for the first key that only one side has: `sends` and `receives` are operations, one or none."""
        send = [(self._rank[n], self._peer[n], self._tag[n], self._line[n]) for n in sends.tolist()]
        receive = [(self._peer[n], self._rank[n], self._tag[n], self._line[n]) for n in receives.tolist()]
        if not receive or (send and send[0][:3] < receive[0][:3]):
            source, target, tag, number = send[0]
            what = f"the send from rank {source} to rank {target} with tag {tag} must have a recv there, and has none"
        else:
            source, target, tag, number = receive[0]
            what = f"the recv of rank {target} from rank {source} with tag {tag} must have a send there, and has none"
        return at(self.source, number, what)

    def _circle(self, waiting: int, need: Ints, line: Ints) -> ValueError:
        """The error for operations that wait for themselves: those that still need others."""
        numbers = np.flatnonzero(need > 0)
        first = int(numbers[np.argmin(line[numbers])])
        return at(
            self.source,
            self._line[first],
            f"an operation must not wait for itself: this {operation.NAMES[self._kind[first]]} of rank"
            f" {self._rank[first]} is one of {waiting} that can never start",
        )


def appended(values: array[int], value: int) -> array[int]:
    """The column with one number more: itself, or one of wider integers when the first needs more than 32 bits."""
    try:
        values.append(value)
        return values
    except OverflowError:
        wider = array("q", values)
        wider.append(value)
        return wider


def column(values: array[int]) -> Ints:
    """A column as numpy computes with it: the same memory, which does not grow from now on."""
    return np.frombuffer(values, dtype=values.typecode) if values else np.zeros(0, dtype=values.typecode)


def predecessors(operations: int, *after: Ints) -> array[int]:
    """Per operation how many others it waits for, from edges."""
    counts = array("i", bytes(4 * operations))
    for numbers in after:
        count(numbers, column(counts))
    return counts


def among(kind: Ints, wanted: int, ranks: Ints, low: int, high: int) -> Ints:
    """The operations of a kind whose rank in `ranks` is from `low` to below `high`, in the order of the file."""
    return np.flatnonzero((kind == wanted) & (ranks >= low) & (ranks < high))


def matching_order(numbers: Ints, source: Ints, target: Ints, tag: Ints) -> Ints:
    """Operations by source, target and tag, those of one key in the order of the file."""
    return numbers[np.lexsort((tag[numbers], target[numbers], source[numbers]))]


def numbered(keys: Ints) -> Ints:
    """Per entry how many with the same key come before it."""
    by_key = np.argsort(keys, kind="stable")
    ordered = keys[by_key]
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    positions = np.empty(len(keys), dtype=np.int64)
    positions[by_key] = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    return positions
