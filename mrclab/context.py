"""An opened device: the NIC of the host that this process runs in."""

from __future__ import annotations

import enum
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common import uverbs
from common.states import EvEvent as EvEvent
from mrclab.connection import NO_DESCRIPTOR, Connection
from mrclab.cq import CQ, WC, ArmedQueue
from mrclab.errors import DeviceGoneError, RefusedError
from mrclab.memory import MR
from mrclab.qp import QP

# What a program may set and ask of the NIC beside its own queues: hints, EV events, EV probes, ports, profiles.
PROBES_TOGETHER = 128
ROWS_TOGETHER = 256


class EvState(enum.IntFlag):
    """The states of an EV that the API knows (`mrc_ctl_ev_state`)."""

    GOOD = 1
    ASSUMED_BAD = 2
    DENIED = 4


@dataclass(frozen=True, slots=True)
class EpResponse:
    """The answer to an EV probe: the port that it came by, and the round trip in ns. `adj_svc_time` is always 0: the
    responder's service time is not known."""

    req_id: int
    port: int
    rtt: int
    adj_svc_time: int


@dataclass(frozen=True, slots=True)
class EvProfile:
    """An EV profile as `query_ev_profile` finds it. `evs` are (EV, port, state)."""

    profile_state: str
    ev_mode: str
    ev_count: int
    ev_min_active: int
    ev_event_mask: int
    fields: tuple[tuple[int, ...], ...]
    evs: tuple[tuple[int, int, int], ...]


class QPHint:
    """How many queue pairs send at the same time (`mrc_qp_hint`); made by `Context.create_qp_hint`."""

    def __init__(self, connection: Connection, attributes: Mapping[str, int]) -> None:
        self.number: int = connection.call("create_qp_hint", attributes=dict(attributes))["hint"]
        self._connection = connection

    def modify(self, **attributes: int) -> None:
        """Change some of it, for QPs that reach RTS from now on. Raises `RefusedError`."""
        self._connection.call("modify_qp_hint", hint=self.number, attributes=attributes)

    def query(self) -> dict[str, int]:
        """`num_qps_per_peer`, `num_send_peers`, `num_remote_recv_peers`."""
        limits: dict[str, int] = self._connection.call("query_qp_hint", hint=self.number)
        return limits

    def close(self) -> None:
        """Raises `RefusedError` while a QP has it."""
        self._connection.call("destroy_qp_hint", hint=self.number)


class EvEventCQ(ArmedQueue):
    """A queue of EV events, of at most `cqe`; made by `Context.create_ev_event_cq`."""

    def __init__(self, connection: Connection, cqe: int, channel: int | None) -> None:
        super().__init__(connection, "create_ev_event_cq", cqe, channel)

    def poll(self, num_entries: int = 16) -> list[EvEvent]:
        """Take up to so many events (64 at a time), the oldest first."""
        reply = self._connection.call("poll_ev_event", cq=self.number, num_entries=num_entries)
        return [EvEvent(**row) for row in reply["events"]]

    def req_notify(self, solicited_only: bool = False) -> None:
        """The next event is to be one on the queue's channel; so is any that was not polled."""
        self._connection.arm(uverbs.Arm(self.number, 0, solicited_only))


class Control:
    """The NIC's part of `Context`. Changes for all programs need root, or the user that runs the agent."""

    _connection: Connection

    def create_qp_hint(self, **attributes: int) -> QPHint:
        """`num_qps_per_peer`, `num_send_peers`, `num_remote_recv_peers`; give its `number` to QPs as `qp_hint`."""
        return QPHint(self._connection, attributes)

    def query_port(self, port_num: int) -> bool:
        """Whether the port is enabled by its administrator; `query_device` says whether it is up."""
        return bool(self._connection.call("query_port", port_num=port_num)["port_admin_state"])

    def modify_port(self, port_num: int, *, enabled: bool) -> None:
        """Switch a port off or on, for all programs; peers are told. Raises `RefusedError`."""
        self._connection.call("modify_port", port_num=port_num, port_admin_state=int(enabled))

    def query_ev_profile(self, profile_id: int = 0) -> EvProfile:
        """Raises `RefusedError`."""
        evs: list[tuple[int, int, int]] = []
        while True:
            reply = self._connection.call("query_ev_profile", profile=profile_id, first=len(evs))
            evs += [(row[0], row[1], row[2]) for row in reply["evs"]]
            if not reply["evs"] or len(evs) >= reply["evs_present"]:
                break
        return EvProfile(
            reply["profile_state"],
            reply["ev_mode"],
            reply["ev_count"],
            reply["ev_min_active"],
            reply["ev_event_mask"],
            tuple(tuple(row) for row in reply["fields"]),
            tuple(evs),
        )

    def modify_ev_profile(self, profile_id: int, **attributes: Any) -> None:
        """Set attributes of an EV profile and take a step of its states, for all programs: `profile_state` (init,
        offline, online), `ev_mode` (auto, explicit, generated), `ev_count`, `ev_min_active`, `ev_event_mask`, `fields`,
        `replace_ev`, `modify_ev_state`. docs/uverbs.md has examples. Raises `RefusedError`."""
        self._connection.call("modify_ev_profile", profile=profile_id, attributes=attributes)

    def make_explicit_ev_profile(self, profile_id: int, evs: Sequence[tuple[int, int]], **attributes: Any) -> None:
        """From INIT to ONLINE with these (EV, port), any number of them. Raises `RefusedError`."""
        self.modify_ev_profile(profile_id, profile_state="offline", ev_mode="explicit", ev_count=len(evs), **attributes)
        for first in range(0, len(evs), ROWS_TOGETHER):
            rows = [[0, 0, ev, port] for ev, port in evs[first : first + ROWS_TOGETHER]]
            self.modify_ev_profile(profile_id, replace_ev=rows)
        self.modify_ev_profile(profile_id, profile_state="online")

    def query_cc_profile(self, profile_id: int = 0) -> dict[str, Any]:
        """`algorithm` and `config`, where None follows from the NIC. Raises `RefusedError`."""
        reply: dict[str, Any] = self._connection.call("query_cc_profile", profile=profile_id)
        return reply

    def modify_cc_profile(self, profile_id: int, algorithm: str | None, **config: float) -> None:
        """Make or replace a congestion-control profile, for all programs: "uet-1.0-nscc" with NSCC's parameters by the
        API's names, or None for no congestion control. Raises `RefusedError`."""
        self._connection.call("modify_cc_profile", profile=profile_id, algorithm=algorithm, config=config)

    def ep_batch_send_wait(
        self, requests: Iterable[tuple[str, int, int]], timeout_s: float = 1.0, *, op_type: str = "ev_probe"
    ) -> list[EpResponse]:
        """Probe (host, EV, port) there and back, and wait for the answers: those that came, in order of arrival.
        `req_id` is the place of the request. Raises `RefusedError`."""
        rows = [[number, host, ev, port] for number, (host, ev, port) in enumerate(requests)]
        responses: list[EpResponse] = []
        timeout_ns = min(max(int(timeout_s * 1e9), 1000), 0xFFFFFFFF)
        for first in range(0, len(rows), PROBES_TOGETHER):
            together = rows[first : first + PROBES_TOGETHER]
            answer = self._connection.call_and_wait(
                "ep_batch_send_wait", op_type=op_type, requests=together, rsp_timeout=timeout_ns
            )
            responses += [EpResponse(**row) for row in answer["responses"]]
        return responses


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
        """The most that this program may have at a time."""

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
