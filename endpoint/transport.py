"""What a transport offers to the NIC driver and the workloads: the seam around `endpoint.core` and the baseline.

A transport does no I/O: frames, port states and `now_ns` are arguments, frames to send, the next timer and events
are results. One transport object is one host's NIC with all its ports and queue pairs. The MRC core
(`endpoint.core`) and the RoCE baseline (`endpoint.roce`) both satisfy it, so the driver, the agent and every
workload run unchanged on either. Ports are 1-based, as in the port status mask of the endpoint operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol


class QPState(Enum):
    RESET = "reset"
    INIT = "init"
    RTR = "rtr"
    RTS = "rts"
    ERROR = "error"


class CompletionStatus(Enum):
    SUCCESS = "success"
    FLUSHED = "flushed"  # the QP went to ERROR before this request was done
    RETRY_EXCEEDED = "retry_exceeded"
    REMOTE_ACCESS_ERROR = "remote_access_error"
    REMOTE_OPERATION_ERROR = "remote_operation_error"
    LOCAL_PROTECTION_ERROR = "local_protection_error"


@dataclass(frozen=True, slots=True)
class Completion:
    wr_id: int
    qpn: int
    status: CompletionStatus
    opcode: str  # "write", "write_imm" (requester), "recv_imm" (responder)
    byte_len: int
    immediate: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """Registered memory: what a peer needs to write to it, and its owner's view."""

    va: int
    length: int
    lkey: int
    rkey: int
    buffer: memoryview


@dataclass(frozen=True, slots=True)
class QPInfo:
    """What two ends exchange out of band before RTR (JSON-safe)."""

    host: str
    qpn: int
    psn: int
    mpr: int  # in units of 128 PSN
    max_write_imm: int
    trim_nack: bool = True  # this end wants NACKs for packets of its own that arrive trimmed


@dataclass(frozen=True, slots=True)
class Event:
    """Something to journal or to act on: `kind` and `fields` are those of the journal table in docs/contracts.md."""

    t_ns: int
    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class CompletionQueue(Protocol):
    def poll(self, limit: int = 16) -> list[Completion]: ...


class QueuePair(Protocol):
    @property
    def qpn(self) -> int: ...
    @property
    def state(self) -> QPState: ...
    def info(self) -> QPInfo: ...
    def connect(self, peer: QPInfo, now_ns: int) -> None:
        """INIT → RTR → RTS with the peer's attributes: what nearly every user wants."""

    def post_write(
        self,
        wr_id: int,
        region: MemoryRegion,
        offset: int,
        length: int,
        remote_va: int,
        rkey: int,
        immediate: int | None = None,
    ) -> None: ...
    def post_recv(self, wr_id: int) -> None: ...
    def counters(self) -> Mapping[str, Any]:
        """The `qps` fields of the journal's `sample` lines: totals since the QP was made."""

    def paths(self) -> Mapping[int, int]:
        """Packets sent per EV: the `paths` field of `sample` lines."""


class Transport(Protocol):
    # verbs
    def register_memory(self, buffer: bytearray | memoryview, *, remote_write: bool = True) -> MemoryRegion: ...
    def deregister_memory(self, region: MemoryRegion) -> None: ...
    def create_cq(self, capacity: int) -> CompletionQueue: ...
    def create_qp(self, cq: CompletionQueue, **attributes: Any) -> QueuePair: ...
    def destroy_qp(self, qp: QueuePair, now_ns: int) -> None: ...

    # wire and clock
    def receive(self, port: int, frames: Sequence[bytes | memoryview], now_ns: int) -> None:
        """Frames in order of arrival on one port; views need to stay valid during the call only.

        Hostile bytes are counted and dropped, never raised. Hand over everything that has arrived before asking
        `handle_timer`: a timer must not fire for want of an answer that lies in a socket.
        """

    def port_changed(self, port: int, up: bool, now_ns: int) -> None: ...
    def denied(self) -> Set[tuple[str, int]]:
        """The denylist: (destination host, EV)."""

    def set_denied(self, denied: Set[tuple[str, int]], now_ns: int) -> None:
        """Replace the denylist, for present and future QPs."""

    def handle_timer(self, now_ns: int) -> None: ...
    def next_timer_ns(self) -> int | None:
        """When `handle_timer` or, for pacing, `packets_to_send` next has something to do."""

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        """Up to `limit` whole Ethernet frames as (port, frame) that their ports' pacing lets go at `now_ns`."""

    def next_event(self) -> Event | None: ...
    def counters(self) -> Mapping[str, Any]:
        """The `ports` and totals of the journal's `sample` lines."""
