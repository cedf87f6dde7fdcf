"""An opened device: the NIC of the host that this process runs in."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from common import uverbs
from mrclab.connection import NO_DESCRIPTOR, Connection
from mrclab.control import Control, EvEventCQ
from mrclab.cq import CQ, WC, ArmedQueue
from mrclab.errors import DeviceGoneError, RefusedError
from mrclab.memory import MR
from mrclab.qp import QP


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


@dataclass(frozen=True, slots=True)
class PortAttr:
    """A port of the NIC: its number from 1, its plane, its rate in bit/s of frame bytes, whether it has carrier."""

    port: int
    plane: int
    rate_bps: int
    up: bool


@dataclass(frozen=True, slots=True)
class DeviceAttr:
    """A NIC: its host, its transport (mrc or roce), payload bytes per packet, the round trip through empty queues."""

    host: str
    transport: str
    pmtu: int
    base_rtt_ns: int
    ports: tuple[PortAttr, ...]


class Context(Control):
    """Opens the NIC of this network namespace, or the one of the host `name`, for this program.

    Everything that is made with it goes when it is closed, and when the process ends however it ends. A context and
    what was made with it are for one thread at a time. All of it is in one protection domain.

    Raises `DeviceGoneError` when there is no NIC; every call does when the agent ends.
    """

    def __init__(self, name: str | None = None, *, program: str | None = None) -> None:
        """`program` is the name that the lab's journal and counters show; by default the name of the script."""
        self._cqs: dict[int, CQ] = {}
        self._queues: dict[int, ArmedQueue] = {}
        self._channels: set[CompChannel] = set()
        self._qps: dict[int, QP] = {}
        self._connection = Connection(name, self._completed)
        try:
            called = program or os.path.basename(sys.argv[0]) or "python"
            about = self._connection.call("open", version=uverbs.VERSION, program=called)
        except BaseException:
            self._connection.close()
            raise
        self.name: str = about["host"]
        self.limits = uverbs.ProgramLimits(**about["limits"])
        """What this program may have at a time."""

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def query_device(self) -> DeviceAttr:
        """The NIC, and its ports as they are now."""
        about = self._connection.call("query_device")
        ports = tuple(PortAttr(**row) for row in about["ports"])
        return DeviceAttr(about["host"], about["transport"], about["pmtu"], about["base_rtt_ns"], ports)

    def reg_mr(self, length: int, *, remote_write: bool = True) -> MR:
        """New memory of so many bytes that writes come from and, with `remote_write`, that peers may write to."""
        return MR(self._connection, length, remote_write=remote_write)

    def create_comp_channel(self) -> CompChannel:
        """A channel with its own descriptor, for queues that are made with it."""
        channel = CompChannel(self._connection, self._queues)
        self._channels.add(channel)
        channel.closed = lambda: self._channels.discard(channel)
        return channel

    def create_cq(self, cqe: int, channel: CompChannel | None = None) -> CQ:
        """A completion queue with places for `cqe` requests, which may have a channel for its events."""
        cq = CQ(self._connection, cqe, None if channel is None else channel.number)
        cq.polled = self._polled
        self._cqs[cq.number] = self._queues[cq.number] = cq

        def closed() -> None:
            del self._cqs[cq.number], self._queues[cq.number]

        cq.closed = closed
        return cq

    def create_ev_event_cq(self, cqe: int, channel: CompChannel | None = None) -> EvEventCQ:
        """A queue that tells of EVs which turn GOOD or ASSUMED_BAD, in any queue pair of the NIC."""
        queue = EvEventCQ(self._connection, cqe, None if channel is None else channel.number)
        self._queues[queue.number] = queue
        queue.closed = lambda: self._queues.pop(queue.number)
        return queue

    def create_qp(self, cq: CQ, **attributes: Any) -> QP:
        """A queue pair whose sends and receives complete in `cq`.

        Attributes: `max_send_wr` and `max_recv_wr` (128 each), and those of the transport, such as `mpr` and
        `max_write_imm` of MRC. Raises `RefusedError` with the valid ones.
        """
        qp = QP(self._connection, cq, attributes)
        self._qps[qp.qp_num] = qp
        qp.closed = lambda: self._qps.pop(qp.qp_num)
        return qp

    def now_ns(self) -> int:
        """The lab's time, which its journals have: CLOCK_MONOTONIC, or in a simulated run virtual time."""
        return self._connection.now_ns()

    @property
    def stepped(self) -> bool:
        """Whether this program runs in virtual time, which stands still while the program does anything but wait."""
        return self._connection.stepped

    def sleep(self, seconds: float) -> None:
        """Let the lab's time pass. Completions of that time wait in their queues."""
        deadline_ns = self.now_ns() + round(seconds * 1e9)
        while (left_ns := deadline_ns - self.now_ns()) > 0:
            if self.stepped:
                self._connection.wait(left_ns / 1e9)
            else:
                time.sleep(left_ns / 1e9)

    def fileno(self) -> int:
        """Readable when completions may have come: for `select` and its like. Poll every CQ until it is empty then."""
        return self._connection.fileno()

    def close(self) -> None:
        """Give everything back."""
        self._connection.close()
        for channel in self._channels:
            channel.drop()

    def _completed(self, row: uverbs.CompletionRow) -> None:
        cq = self._cqs.get(row.cq)
        if cq is None:
            return
        if row.opcode != uverbs.WC_SILENT:
            cq.push(row)
        elif (qp := self._qps.get(row.qpn)) is not None:
            qp.silenced(row.byte_len)

    def _polled(self, completion: WC) -> None:
        qp = self._qps.get(completion.qp_num)
        if qp is not None:
            qp.completed(completion)
