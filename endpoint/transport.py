"""The interface of a transport for the NIC driver and the workloads: the seam around `endpoint.mrc` and the baseline.

A transport does no I/O: frames, port states and `now_ns` are arguments, frames to send, the next timer and events
are results. One transport object is one host's NIC with all its ports and queue pairs. The MRC core
(`endpoint.mrc`) and the RoCE baseline (`endpoint.roce`) both satisfy it, so the driver, the agent and every
workload run unchanged on either. Ports are 1-based, as in the port status mask of the endpoint operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.states import QPState as QPState
from endpoint.completion import Completion as Completion
from endpoint.completion import CompletionStatus as CompletionStatus
from endpoint.region import MemoryRegion as MemoryRegion


class QueueFull(Exception):  # noqa: N818 (a state that the caller waits out, not a fault)
    """There is no room for another request or queue pair; poll completions or destroy something, then try again."""


@dataclass(frozen=True, slots=True)
class QPInfo:
    """The values that two ends exchange out of band before RTR (JSON-safe)."""

    host: str
    qpn: int
    psn: int
    mpr: int  # in units of 128 PSN
    max_write_imm: int
    trim_nack: bool = True  # this end wants NACKs for its packets that arrive trimmed
    pmtu: int | None = None  # payload bytes of this end's full packets; None: not said, so as the other end's
    dialect: str | None = None  # how this end reads the specification (`endpoint.nic.dialect`); None: not said
    dynamic_mpr: bool = False  # this end may change its mpr while the QP runs, and heeds the peer's changes


@dataclass(frozen=True, slots=True)
class Event:
    """Something to journal or to act on: `kind` and `fields` are those of the journal table in docs/contracts.md."""

    t_ns: int
    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class CompletionQueue(Protocol):
    """Completions of the QPs that were made with it, oldest first. It never overflows: posting fails before."""

    def poll(self, limit: int = 16) -> list[Completion]:
        """Take up to `limit` completions; an empty list when there are none."""


class QueuePair(Protocol):
    """One end of a reliable connection. Writes only; a verb that the rules do not allow raises ValueError."""

    @property
    def qpn(self) -> int:
        """The QP number, 24 bits, unique in its host."""

    @property
    def state(self) -> QPState: ...
    @property
    def cause(self) -> str:
        """Why it is in ERROR; empty in every other state."""

    def info(self) -> QPInfo:
        """What the peer's `connect` needs; known before this end is connected."""

    def connect(self, peer: QPInfo, now_ns: int) -> None:
        """INIT → RTR → RTS with the peer's attributes, as nearly every user wants. Raises ValueError."""

    @property
    def refusal(self) -> int:
        """The syndrome with which this end has refused a request of the peer, and gone to ERROR; 0: it has not."""

    @property
    def drained(self) -> bool:
        """In SQD: whether all writes that were posted before are done."""

    @property
    def forgiven(self) -> int:
        """Packets of the peer that were taken although a stricter NIC would have refused them."""

    @property
    def values(self) -> Mapping[str, int]:
        """The attributes of now, by the names that `modify` takes."""

    @property
    def silenced(self) -> int:
        """Unsignaled writes that are done, since the QP was in RESET."""

    def modify(
        self,
        state: QPState | None,
        now_ns: int,
        peer: QPInfo | None = None,
        *,
        cur_state: QPState | None = None,
        **attributes: Any,
    ) -> None:
        """One step of the state machine, or none, with attributes to set on the way; RTR needs the peer's attributes.
        Raises ValueError."""

    def post_write(
        self,
        wr_id: int,
        region: MemoryRegion | None,
        offset: int,
        length: int,
        remote_va: int,
        rkey: int,
        immediate: int | None = None,
        *,
        signaled: bool = True,
        solicited: bool = False,
    ) -> None:
        """Write `length` bytes of `region` from byte `offset` to `remote_va` under `rkey`, in RTS only. A write of no
        bytes has no memory at either end, so that none of these is checked.

        An immediate (32 bits) takes one of the peer's receives, in order of posting. Raises ValueError for bytes
        outside of the region and the like, and QueueFull when completions must be polled first.
        """

    def post_recv(self, wr_id: int) -> None:
        """Accept one write with immediate. Raises ValueError in ERROR, and QueueFull as `post_write` does."""

    def counters(self) -> Mapping[str, Any]:
        """The `qps` fields of the journal's `sample` lines: totals since the QP was made."""

    def paths(self) -> Mapping[int, int]:
        """Packets sent per EV: the `paths` field of `sample` lines."""


class Transport(Protocol):
    """One host's NIC. Every `now_ns` is one clock's, and never goes back."""

    @property
    def counted(self) -> bool:
        """Whether payload is counted and not carried: frames leave it out, and memory has no bytes."""

    @property
    def linked(self) -> bool:
        """Whether a port is up."""

    # verbs
    def register_memory(
        self,
        buffer: bytearray | memoryview,
        *,
        remote_write: bool = True,
        va: int | None = None,
        sink: Callable[[int, memoryview], bool] | None = None,
        domain: int = 0,
    ) -> MemoryRegion:
        """Let writes come from `buffer`, and with `remote_write` into it, or into `sink`, by queue pairs of the same
        `domain`. Peers know its first byte by the address `va`; None: the NIC's choice. Raises ValueError if the buffer
        is read-only."""

    def register_counted(self, length: int, *, remote_write: bool = True) -> MemoryRegion:
        """The same for `length` bytes of which none is kept. Raises ValueError where payload is carried."""

    def deregister_memory(self, region: MemoryRegion) -> None:
        """Refuse later packets to the region. Raises ValueError for one that is not registered here."""

    def create_cq(self, capacity: int) -> CompletionQueue:
        """A queue for at most `capacity` requests that are posted and not yet polled."""

    def create_qp(self, cq: Any, **attributes: Any) -> QueuePair:
        """A QP in RESET. Raises ValueError for an attribute that the transport does not have or that is out of
        range, naming the valid ones, and QueueFull when the NIC has all the QPs that it can have."""

    def destroy_qp(self, qp: Any, now_ns: int) -> None:
        """Forget a QP that this NIC made; what is posted on it disappears without completions. Raises ValueError."""

    # wire and clock
    def receive(self, port: int, frames: Sequence[bytes | memoryview], now_ns: int) -> bool:
        """Frames in order of arrival on one port; views need to stay valid during the call only.

        True: they ask for nothing. Nothing has completed or happened, `next_timer_ns` is what it was, and until then
        `packets_to_send` would send nothing and change nothing. False: perhaps there is something to do.

        Hostile bytes are counted and dropped, never raised. Hand over everything that has arrived before asking
        `handle_timer`: a timer must not fire for want of an answer that lies in a socket.
        """

    def port_changed(self, port: int, up: bool, now_ns: int) -> None:
        """The carrier of a port came or went; ports are up at first."""

    def enable_port(self, number: int, enabled: bool, now_ns: int) -> None:
        """Switch a port off or on, with or without carrier. Raises ValueError for a port that does not exist."""

    def port_enabled(self, number: int) -> bool:
        """Raises ValueError for a port that there is not."""

    def denied(self) -> Set[tuple[str, int]]:
        """The denylist: (destination host, EV)."""

    def set_denied(self, denied: Set[tuple[str, int]], now_ns: int) -> None:
        """Replace the denylist, for present and future QPs."""

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """The host itself did not run in the last `late_ns`: packets that arrive now are late, not lost.

        To be said before what has arrived meanwhile is handed over and before `handle_timer`.
        """

    def handle_timer(self, now_ns: int) -> None:
        """Do what time alone asks for: retransmit, probe, give up. Too early a call does no harm."""

    def next_timer_ns(self) -> int | None:
        """When `handle_timer` or, for pacing, `packets_to_send` next has something to do."""

    def timers_ns(self) -> tuple[int, int]:
        """The same, one time for each of both; `endpoint.nic.config.NEVER` for never."""

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        """Up to `limit` whole Ethernet frames as (port, frame) that their ports' pacing lets go at `now_ns`."""

    def events_waiting(self) -> bool:
        """Whether there is an event to take."""

    def next_event(self) -> Event | None:
        """Take the oldest event; None when there is none."""

    def counters(self) -> Mapping[str, Any]:
        """The `ports` and totals of the journal's `sample` lines."""
