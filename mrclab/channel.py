"""Completion channels: sleep until one of several queues has a completion; each has a descriptor to wait on."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Mapping

from common import uverbs
from mrclab.connection import NO_DESCRIPTOR, Connection
from mrclab.cq import ArmedQueue
from mrclab.errors import DeviceGoneError, RefusedError


class CompChannel:
    """Made by `Context.create_comp_channel`; given to queues when they are made.

    As with verbs: `cq.req_notify()` arms a queue, its next completion is one event, `get_cq_event` takes the event, and
    the queue is to be armed again *before* it is polled until it is empty. Nothing is missed in that order.
    """

    def __init__(self, connection: Connection, queues: Mapping[int, ArmedQueue]) -> None:
        made, descriptor = connection.call_for_descriptor("create_comp_channel")
        if descriptor is None:
            connection.call("destroy_comp_channel", channel=made["channel"])
            raise RefusedError(f"create_comp_channel: {NO_DESCRIPTOR}")
        self.number: int = made["channel"]
        self.closed: Callable[[], object] = lambda: None
        """Called when the channel is destroyed."""
        self._connection = connection
        self._queues = queues
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Readable when there is an event: for `select` and its like."""
        return self._socket.fileno()

    def get_cq_event(self, timeout_s: float | None = None) -> ArmedQueue | None:
        """The queue that has an event; sleeps until there is one, None after `timeout_s` seconds without.

        Each event is to be acknowledged some time, by the queue's `ack_events`. Raises `DeviceGoneError`.
        """
        connection = self._connection
        deadline_ns = None if timeout_s is None else connection.now_ns() + round(timeout_s * 1e9)
        while True:
            try:
                message = self._socket.recv(64)
            except BlockingIOError:
                left_ns = None if deadline_ns is None else deadline_ns - connection.now_ns()
                if left_ns is not None and left_ns <= 0:
                    return None
                self._sleep(None if left_ns is None else left_ns / 1e9)
                continue
            if not message:
                raise DeviceGoneError(f"the agent of {connection.host} has ended")
            queue = self._queues.get(uverbs.unpack_event(message))
            if queue is not None:  # else of a queue that was closed since
                queue.unacknowledged += 1
                return queue

    def _sleep(self, timeout_s: float | None) -> None:
        """Until there may be an event. In virtual time a program waits in one place, for anything."""
        if self._connection.stepped:
            self._connection.wait(timeout_s)
        else:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1e3)

    def close(self) -> None:
        """Destroy the channel. Raises `RefusedError` while a queue has it."""
        self._connection.call("destroy_comp_channel", channel=self.number)
        self._socket.close()
        self.closed()

    def drop(self) -> None:
        """The context was closed."""
        self._socket.close()
