"""Completion channels: a descriptor that becomes readable when a queue has what its program waits for.

The program gets one end of a socket pair, never a descriptor whose flags it could change for both: a full channel must
not block the agent. An event that does not fit waits here, and no queue has more than one on its way.
"""

import socket
from collections.abc import Callable, Iterator
from typing import Any

from common import uverbs
from common.fields import Fields
from endpoint.uverbs.refusal import RefusedError, has_room

CQ_ERR, QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR, SQ_DRAINED, PORT_ACTIVE, PORT_ERR = 0, 1, 2, 3, 5, 9, 10
"""Asynchronous events, by verbs' numbers (`ibv_event_type`)."""
EVENT_SHIFT = 24
"""An event of the asynchronous channel is its number above the queue pair's or queue's, which has 24 bits."""


class Channel:
    """The agent's end; `descriptor` is the program's, handed over once. `users` counts the queues that have it."""

    def __init__(self, notify: Callable[[bytes], bool], close: Callable[[], None]) -> None:
        """`notify` sends an event and is False when there is no room."""
        self._notify = notify
        self._close = close
        self._owed: list[int] = []
        self.sent = 0
        self.users = 0

    def fire(self, queue: int) -> None:
        """Tell the program of an event of this queue at the next `flush`, which follows what the event is about."""
        if queue not in self._owed:
            self._owed.append(queue)

    def flush(self) -> None:
        """Send the events that there is room for."""
        while self._owed and self._notify(uverbs.pack_event(self._owed[0])):
            del self._owed[0]
            self.sent += 1

    def close(self) -> None:
        self._close()


MakeChannel = Callable[[], tuple[int, Channel]]
"""A completion channel and the program's end of it. Raises OSError."""


_ASYNC = 0  # the number of the channel of asynchronous events; those of queues count from 1


class Channels:
    """A program's channels by number."""

    def __init__(self, limits: uverbs.ProgramLimits, make: MakeChannel) -> None:
        self._limits = limits
        self._make = make
        self._by_number: dict[int, Channel] = {}
        self._last = 0

    def __iter__(self) -> Iterator[Channel]:
        return iter(self._by_number.values())

    def create(self) -> tuple[int, int]:
        """The program's descriptor of a new channel, and its number."""
        has_room(self._limits, "channels", len(self._by_number.keys() - {_ASYNC}))
        descriptor, channel = self._make()
        self._last += 1
        self._by_number[self._last] = channel
        return descriptor, self._last

    def create_async(self) -> tuple[int, Channel]:
        """The program's descriptor of its channel of asynchronous events, which no queue can have, and the channel."""
        descriptor, self._by_number[_ASYNC] = self._make()
        return descriptor, self._by_number[_ASYNC]

    def destroy(self, request: Fields) -> dict[str, Any]:
        """Close a channel that no queue has."""
        number = self._number(request)
        if users := self._by_number[number].users:
            raise RefusedError(f"destroy_comp_channel.channel is {number}, which {users} queues still have")
        self._by_number.pop(number).close()
        return {}

    def named(self, request: Fields) -> Channel | None:
        """The channel that a request names; None where it names none."""
        return self._by_number[self._number(request)] if request.has("channel") else None

    def _number(self, request: Fields) -> int:
        number = request.integer("channel")
        known = sorted(self._by_number.keys() - {_ASYNC})
        return number if number in known else request.fail("channel", f"one of {known}")

    def close(self) -> None:
        """Close all."""
        for channel in self:
            channel.close()
        self._by_number.clear()


def make_channel() -> tuple[int, Channel]:
    """A descriptor for the program, to be closed once it is sent, and the agent's end. Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    ours.shutdown(socket.SHUT_RD)  # nothing is taken from there: no bytes, and no descriptors to close

    def notify(event: bytes) -> bool:
        try:
            ours.send(event)
        except BlockingIOError:
            return False
        except OSError:
            return True  # the program has closed its end and waits no more
        return True

    return theirs.detach(), Channel(notify, ours.close)
