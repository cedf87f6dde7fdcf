"""Collects the operations of a file, one at a time, in columns of machine integers: 40 bytes per operation.

A file of 100 MB has some million operations; as Python objects they would take gigabytes.
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
        kind, line = column(self._kind, np.uint8), column(self._line)
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
        sends, receives = np.flatnonzero(kind == operation.SEND), np.flatnonzero(kind == operation.RECV)
        sends = sends[np.lexsort((sends, tag[sends], peer[sends], rank[sends]))]
        receives = receives[np.lexsort((receives, tag[receives], rank[receives], peer[receives]))]
        send_keys = np.stack([rank[sends], peer[sends], tag[sends]], axis=1)
        receive_keys = np.stack([peer[receives], rank[receives], tag[receives]], axis=1)
        shorter = min(len(sends), len(receives))
        differ = np.flatnonzero((send_keys[:shorter] != receive_keys[:shorter]).any(axis=1))
        if len(differ) or len(sends) != len(receives):
            first = int(differ[0]) if len(differ) else shorter
            raise self._unmatched(send_keys, receive_keys, first, line[sends], line[receives])
        wrong = np.flatnonzero(amount[sends] != amount[receives])
        if len(wrong):
            send, receive = int(sends[wrong[0]]), int(receives[wrong[0]])
            raise at(
                self.source,
                int(line[receive]),
                f"a recv must have the size of its send: it has {amount[receive]} bytes, and the send in line"
                f" {line[send]} has {amount[send]}",
            )
        message = np.full(len(kind), -1, dtype=np.int64)
        message[sends] = numbered(rank[sends] * RANKS_MAX + peer[sends], sends)
        message[receives] = message[sends]
        if len(message) and int(message.max()) >= MESSAGES_MAX:
            raise at(self.source, 0, f"one rank must send another at most {MESSAGES_MAX} messages")
        return message

    def _unmatched(self, sends: Ints, receives: Ints, first: int, send_lines: Ints, receive_lines: Ints) -> ValueError:
        """The error for the first key that only one side has."""
        send = tuple(sends[first].tolist()) if first < len(sends) else None
        receive = tuple(receives[first].tolist()) if first < len(receives) else None
        if receive is None or (send is not None and send < receive):
            assert send is not None
            source, target, tag = send
            what = f"the send from rank {source} to rank {target} with tag {tag} must have a recv there, and has none"
            return at(self.source, int(send_lines[first]), what)
        source, target, tag = receive
        what = f"the recv of rank {target} from rank {source} with tag {tag} must have a send there, and has none"
        return at(self.source, int(receive_lines[first]), what)


def column(values: array[int], dtype: type = np.int64) -> Ints:
    """A column as numpy computes with it."""
    return np.array(values, dtype=dtype)


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
