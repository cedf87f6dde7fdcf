"""What a NIC has whatever transport runs on it: memory, ports with pacing, queue pairs in turns, events, counters.

`endpoint.core.endpoint` (MRC) and `endpoint.roce.endpoint` (the baseline) build on this; together they are an
`endpoint.transport.Transport`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from random import Random
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from endpoint.core.config import NEVER
from endpoint.core.cq import CompletionQueue
from endpoint.core.memory import MemoryTable
from endpoint.core.port import Port
from endpoint.transport import Event, MemoryRegion, QueueFull

if TYPE_CHECKING:
    from endpoint.core.verbs import VerbQueuePair
    from endpoint.profile import NicProfile

QPN_FIRST = 0x100
QPN_MAX = 0xFFFFFF
QPS_MAX = 4096
"""Queue pairs of one NIC: the bound of its memory, at some 300 KB each."""
QUANTUM = 8
"""Packets that one QP may send before the next one's turn."""


class Sender(Protocol):
    """The sending half of a queue pair."""

    def transmit(self, now_ns: int, out: list[tuple[int, bytes]], budget: int) -> bool:
        """Append up to `budget` frames. True: there is more, but the budget, the ports or the QP's rate is used up."""


Q = TypeVar("Q", bound="VerbQueuePair")


class Nic(Generic[Q]):
    """`rng` is the only source of chance."""

    def __init__(
        self, profile: NicProfile, rng: Random, now_ns: int, *, burst_ns: int, events_max: int, control_max: int
    ) -> None:
        self.profile = profile
        self.host = profile.host
        self.rng = rng
        self.now_ns = now_ns
        self.memory = MemoryTable(rng)
        self.ports = [Port(row, control_max) for row in profile.ports]
        self._by_number = {port.number: port for port in self.ports}
        self.ports_up = sum(port.bit for port in self.ports)
        self._burst_ns = burst_ns
        self.address: bytes = profile.address.packed
        self.arrivals = {self.address} | {port.row.usid_address.packed for port in self.ports}
        """Outermost destination addresses of frames for this host."""
        self.arrivals |= {port.row.address.packed for port in self.ports}
        self.qps: dict[int, Q] = {}
        self._next_qpn = QPN_FIRST
        self.ready: deque[Q] = deque()
        """QPs that may have something to send, in the order of their turns."""
        self.usable = 0
        """Ports that may send data now; kept by `packets_to_send` and the requesters."""
        self.horizon_ns = 0
        self.rate_due_ns = NEVER
        """When the first QP that is held back by its own rate may go on; requesters lower it."""
        self._pacing_ns = NEVER
        self._events: deque[Event] = deque(maxlen=events_max)
        self._drops: dict[str, int] = {}

    # --- memory and queues -------------------------------------------------------------------------------------

    def register_memory(self, buffer: bytearray | memoryview, *, remote_write: bool = True) -> MemoryRegion:
        return self.memory.register(buffer, remote_write)

    def deregister_memory(self, region: MemoryRegion) -> None:
        self.memory.deregister(region)

    def create_cq(self, capacity: int) -> CompletionQueue:
        return CompletionQueue(capacity)

    def next_qpn(self) -> int:
        """A QP number that is not in use, and was not for as long as possible. Raises `QueueFull`."""
        if len(self.qps) >= QPS_MAX:
            raise QueueFull(f"{self.host} has {QPS_MAX} queue pairs; destroy one first")
        while self._next_qpn in self.qps:
            self._next_qpn = self._next_qpn + 1 if self._next_qpn < QPN_MAX else QPN_FIRST
        qpn = self._next_qpn
        self._next_qpn = qpn + 1 if qpn < QPN_MAX else QPN_FIRST
        return qpn

    def destroy_qp(self, qp: Q, now_ns: int) -> None:
        """Raises `ValueError` if the QP is not one of this endpoint's."""
        if self.qps.get(qp.qpn) is not qp:
            raise ValueError(f"QP {qp.qpn} is not of this endpoint, or was destroyed before")
        self.now_ns = now_ns
        del self.qps[qp.qpn]
        qp.close()

    # --- packets out and timers --------------------------------------------------------------------------------

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        """Control frames first, then data, one QP after the other in turns of a few packets."""
        self.now_ns = now_ns
        out: list[tuple[int, bytes]] = []
        usable = 0
        horizon_ns = self.horizon_ns = now_ns + self._burst_ns
        for port in self.ports:
            if port.up:
                control = port.control
                while control and len(out) < limit:
                    frame = control.popleft()
                    port.charge(len(frame), now_ns)
                    out.append((port.number, frame))
                if port.free_ns <= horizon_ns:
                    usable |= port.bit
        self.usable = usable
        self.rate_due_ns = NEVER
        ready = self.ready
        blocked = 0  # QPs in a row that could send nothing for want of a port or of their own rate
        while ready and len(out) < limit and blocked < len(ready) and self.usable:
            qp = ready[0]
            before = len(out)
            if qp.sending and qp.sender.transmit(now_ns, out, min(QUANTUM, limit - before)):
                blocked = blocked + 1 if len(out) == before else 0
                ready.rotate(-1)
            else:
                ready.popleft()
                qp.active = False
        self._pacing_ns = NEVER
        if len(out) >= limit:
            self._pacing_ns = now_ns
        elif ready:
            busy = [port.free_ns for port in self.ports if port.up and not port.bit & self.usable]
            self._pacing_ns = min(self.rate_due_ns, min(busy, default=NEVER) - self._burst_ns)
        return out

    def next_timer_ns(self) -> int | None:
        due_ns = self._pacing_ns
        for qp in self.qps.values():
            if qp.deadline_ns < due_ns:
                due_ns = qp.deadline_ns
        return None if due_ns >= NEVER else due_ns

    def handle_timer(self, now_ns: int) -> None:
        self.now_ns = now_ns
        for qp in list(self.qps.values()):
            if qp.deadline_ns <= now_ns:
                qp.handle_timer(now_ns)

    # --- ports -------------------------------------------------------------------------------------------------

    def set_port(self, number: int, up: bool, now_ns: int) -> Port | None:
        """Note a change of carrier, forget what was queued on the port; None if nothing changed."""
        self.now_ns = now_ns
        port = self._by_number[number]
        if port.up == up:
            return None
        port.up = up
        port.control.clear()
        port.free_ns = now_ns
        self.ports_up ^= port.bit
        self.plane_event(now_ns, port, "local", None, up, "carrier")
        return port

    # --- what happened -----------------------------------------------------------------------------------------

    def next_event(self) -> Event | None:
        return self._events.popleft() if self._events else None

    def emit(self, t_ns: int, kind: str, **fields: Any) -> None:
        """Keep an event for `next_event`; the oldest go when nobody takes them."""
        self._events.append(Event(t_ns, kind, fields))

    def plane_event(self, t_ns: int, port: Port, side: str, peer: str | None, up: bool, cause: str) -> None:
        """A `plane` line of the journal: `side` is local or peer."""
        self.emit(t_ns, "plane", plane=port.plane, side=side, peer=peer, state="up" if up else "down", cause=cause)

    def count(self, reason: str) -> None:
        """A packet was dropped, or a field of it ignored."""
        self._drops[reason] = self._drops.get(reason, 0) + 1

    def counters(self) -> dict[str, Any]:
        return {
            "ports": [
                {
                    "port": port.number,
                    "plane": port.plane,
                    "up": port.up,
                    "tx_packets": port.tx_packets,
                    "tx_bytes": port.tx_bytes,
                    "rx_packets": port.rx_packets,
                    "rx_bytes": port.rx_bytes,
                    "drop_control": port.control_dropped,
                }
                for port in self.ports
            ],
            "drops": dict(self._drops),
        }

    def denied(self) -> Set[tuple[str, int]]:
        return frozenset()
