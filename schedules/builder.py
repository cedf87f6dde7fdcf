"""Collects the operations of a file, one at a time, in columns of machine integers: 33 bytes per operation.

A file of 100 MB has some million operations; as Python objects they would take gigabytes. The schedule has the same
columns, not copies of them, and what matches sends with receives keeps few others at a time.
"""

from __future__ import annotations

from array import array

import numpy as np

from schedules import operation
from schedules.errors import at
from schedules.schedule import Ints, Schedule, grouped

RANKS_MAX = 1 << 17
BYTES_MAX = 1 << 40
NS_MAX = 1 << 60
MESSAGES_MAX = 1 << 30
"""Messages from one rank to one other: a message's number travels in 30 bits of the immediate."""


class Builder:
    """The operations read so far. `source` names the file in errors."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._kind = array("B")
        self._rank, self._peer, self._line, self._processor = array("i"), array("i"), array("I"), array("i")
        self._amount, self._tag = array("q"), array("q")
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
        self._amount.append(amount)
        self._tag.append(tag)
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
        """The schedule. ScheduleError when a send has no receive, or an operation waits for itself."""
        kind, line = column(self._kind), column(self._line)
        need = np.zeros(len(kind), dtype=np.int32)
        before, after = column(self._before), column(self._after)
        starts_before, starts_after = column(self._starts_before), column(self._starts_after)
        np.add.at(need, after, 1)
        np.add.at(need, starts_after, 1)
        schedule = Schedule(
            source=self.source,
            ranks=ranks,
            kind=kind,
            rank=column(self._rank),
            peer=column(self._peer),
            amount=column(self._amount),
            processor=column(self._processor),
            line=line,
            need=need,
            message=self._matched(kind, line),
            successors=grouped(before, after, len(kind)),
            starts=grouped(starts_before, starts_after, len(kind)),
        )
        schedule.check_order()
        return schedule

    def _matched(self, kind: Ints, line: Ints) -> Ints:
        """Per send and receive the number of its message among those from one rank to the other; -1 for the others.

        The k-th send from a rank to another with a tag matches the k-th receive there with that tag, as in MPI.
        """
        rank, peer, tag, amount = (column(c) for c in (self._rank, self._peer, self._tag, self._amount))
        sends = matching_order(np.flatnonzero(kind == operation.SEND), rank, peer, tag)
        receives = matching_order(np.flatnonzero(kind == operation.RECV), peer, rank, tag)
        shorter = min(len(sends), len(receives))
        differ = np.zeros(shorter, dtype=bool)
        for there, here in ((rank, peer), (peer, rank), (tag, tag)):
            differ |= there[sends[:shorter]] != here[receives[:shorter]]
        if differ.any() or len(sends) != len(receives):
            first = int(differ.argmax()) if differ.any() else shorter
            send_keys, receive_keys = (c[first : first + 1] for c in (sends, receives))
            raise self._unmatched(send_keys, receive_keys, line)
        del differ
        wrong = np.flatnonzero(amount[sends] != amount[receives])
        if len(wrong):
            send, receive = int(sends[wrong[0]]), int(receives[wrong[0]])
            raise at(
                self.source,
                int(line[receive]),
                f"a recv must have the size of its send: it has {amount[receive]} bytes, and the send in line"
                f" {line[send]} has {amount[send]}",
            )
        numbers = numbered(rank[sends].astype(np.int64) * RANKS_MAX + peer[sends], sends)
        if len(numbers) and int(numbers.max()) >= MESSAGES_MAX:
            raise at(self.source, 0, f"one rank must send another at most {MESSAGES_MAX} messages")
        message = np.full(len(kind), -1, dtype=np.int32)
        message[sends] = message[receives] = numbers
        return message

    def _unmatched(self, sends: Ints, receives: Ints, line: Ints) -> ValueError:
        """The error for the first key that only one side has: `sends` and `receives` are operations, one or none."""
        send = [(self._rank[n], self._peer[n], self._tag[n], int(line[n])) for n in sends.tolist()]
        receive = [(self._peer[n], self._rank[n], self._tag[n], int(line[n])) for n in receives.tolist()]
        if not receive or (send and send[0][:3] < receive[0][:3]):
            source, target, tag, number = send[0]
            what = f"the send from rank {source} to rank {target} with tag {tag} must have a recv there, and has none"
        else:
            source, target, tag, number = receive[0]
            what = f"the recv of rank {target} from rank {source} with tag {tag} must have a send there, and has none"
        return at(self.source, number, what)


def column(values: array[int]) -> Ints:
    """A column as numpy computes with it: the same memory, which does not grow from now on."""
    return np.frombuffer(values, dtype=values.typecode) if values else np.zeros(0, dtype=values.typecode)


def matching_order(numbers: Ints, source: Ints, target: Ints, tag: Ints) -> Ints:
    """Operations by source, target and tag, those of one key in the order of the file."""
    return numbers[np.lexsort((tag[numbers], target[numbers], source[numbers]))]


def numbered(keys: Ints, order: Ints) -> Ints:
    """Per entry how many with the same key come before it in the file; `order` are positions in the file."""
    by_key = np.lexsort((order, keys))
    ordered = keys[by_key]
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    run = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    found = np.empty(len(keys), dtype=np.int64)
    found[by_key] = run
    return found
