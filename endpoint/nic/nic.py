"""The parts of a NIC under any transport: memory, ports, queue pairs in turns, events, counters.

`endpoint.mrc.endpoint` (MRC) and `endpoint.roce.endpoint` (the baseline) build on this; together they are an
`endpoint.transport.Transport`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from random import Random
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mypy_extensions import mypyc_attr

from endpoint.nic import check
from endpoint.nic.attributes import VerbError
from endpoint.nic.config import NEVER
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.events import EventLog
from endpoint.nic.memory import MemoryTable
from endpoint.nic.port import Port, PortSet
from endpoint.nic.scheduler import Scheduler
from endpoint.nic.verbs import VerbQueuePair
from endpoint.transport import Event, MemoryRegion, QueueFull

if TYPE_CHECKING:
    from endpoint.profile import NicProfile
    from endpoint.transport import Event


@mypyc_attr(allow_interpreted_subclasses=True)
class Turns:
    """A part of `endpoint.transport.Transport`, which says what each call does.

    A base class and no protocol, so that compiled code calls it directly and hands numbers over as they are.
    """

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> bool:
        raise NotImplementedError

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        raise NotImplementedError

    def next_timer_ns(self) -> int | None:
        raise NotImplementedError

    def timers_ns(self) -> tuple[int, int]:
        raise NotImplementedError

    def handle_timer(self, now_ns: int) -> None:
        raise NotImplementedError

    def events_waiting(self) -> bool:
        raise NotImplementedError

    def next_event(self) -> Event | None:
        raise NotImplementedError


QPN_FIRST = 0x100
QPN_MAX = 0xFFFFFF
QPS_MAX = 4096
"""Queue pairs of one NIC: the bound of its memory, at about 300 KB each."""

Q = TypeVar("Q", bound=VerbQueuePair)


class Nic(Turns, Generic[Q]):
    """`rng` is the only source of chance."""

    def __init__(
        self, profile: NicProfile, rng: Random, now_ns: int, *, burst_ns: int, events_max: int, control_max: int
    ) -> None:
        self.counted = False
        """Whether frames leave payload out and memory has no bytes; set before memory is registered."""
        self.left_out = 0
        """Bytes of payload that the frame at hand leaves out."""
        self.client_check = False
        """Whether frames travel with MRC-Client's integrity check, and are translated at this NIC's edge."""
        self.profile = profile
        self.host = profile.host
        self.rng = rng
        self.memory = MemoryTable(rng)
        self.ports = PortSet(profile.ports, control_max)
        self.scheduler = Scheduler(self.ports, burst_ns, now_ns)
        self.log = EventLog(events_max)
        self.address: bytes = profile.address.packed
        self.arrivals = {self.address} | {port.row.usid_address.packed for port in self.ports}
        """Outermost destination addresses of frames for this host."""
        self.arrivals |= {port.row.address.packed for port in self.ports}
        self.qps: dict[int, Q] = {}
        self._next_qpn = QPN_FIRST

    # --- memory and queues -------------------------------------------------------------------------------------

    def register_memory(
        self,
        buffer: bytearray | memoryview,
        *,
        remote_write: bool = True,
        va: int | None = None,
        sink: Callable[[int, memoryview], bool] | None = None,
        domain: int = 0,
    ) -> MemoryRegion:
        return self.memory.register(buffer, remote_write, va, sink, domain)

    def note_left_out(self, arrival: Port, count: int) -> None:
        """The frame at hand leaves out `count` bytes of payload, which have come by the port like its other bytes."""
        self.left_out = count
        arrival.rx_bytes += count

    def register_counted(self, length: int, *, remote_write: bool = True) -> MemoryRegion:
        if not self.counted:
            raise ValueError(f"{self.host} carries payload: memory without bytes cannot be registered")
        return self.memory.register_counted(length, remote_write)

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
        self.scheduler.now_ns = now_ns
        del self.qps[qp.qpn]
        qp.close()

    # --- packets out and timers --------------------------------------------------------------------------------

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        """Up to `limit` frames, each with the number of its port, as the ports' pacing lets them go."""
        frames = self.scheduler.packets_to_send(now_ns, limit)
        return [(port, check.with_client_check(frame)) for port, frame in frames] if self.client_check else frames

    def next_timer_ns(self) -> int | None:
        due_ns = min(self.timers_ns())
        return None if due_ns >= NEVER else due_ns

    def timers_ns(self) -> tuple[int, int]:
        """When `handle_timer` and when, for pacing, `packets_to_send` next have something to do; NEVER for never."""
        scheduler = self.scheduler
        if not scheduler.deadline_settled:
            due_ns = NEVER
            for qp in self.qps.values():
                deadline_ns = qp.agenda.deadline_ns
                if deadline_ns < due_ns:
                    due_ns = deadline_ns
            scheduler.deadline_ns = due_ns
            scheduler.deadline_settled = True
        return scheduler.deadline_ns, scheduler.pacing_ns

    def handle_timer(self, now_ns: int) -> None:
        self.scheduler.now_ns = now_ns
        for qp in list(self.qps.values()):
            if qp.agenda.deadline_ns <= now_ns:
                qp.handle_timer(now_ns)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        self.scheduler.now_ns = now_ns
        for qp in self.qps.values():
            qp.host_was_late(late_ns, now_ns)

    @property
    def linked(self) -> bool:
        return self.ports.up != 0

    # --- ports and what happened -------------------------------------------------------------------------------

    def port_changed(self, port: int, up: bool, now_ns: int) -> None:
        """Carrier came or went."""
        self.scheduler.now_ns = now_ns
        self._port_set(self.ports.set_carrier(port, up, now_ns), "carrier", now_ns)

    def enable_port(self, number: int, enabled: bool, now_ns: int) -> None:
        """Switch a port off or on, with carrier or not (`mrc_ctl_modify_port`). A port that is off neither sends nor
        receives, and is down for all peers. Raises `VerbError` for a port that this NIC does not have."""
        self.port_enabled(number)
        self.scheduler.now_ns = now_ns
        self._port_set(self.ports.set_enabled(number, enabled, now_ns), "admin", now_ns)

    def port_enabled(self, number: int) -> bool:
        """Raises `VerbError` for a port that this NIC does not have."""
        port = self.ports.by_number.get(number)
        if port is None:
            valid = ", ".join(map(str, self.ports.by_number))
            raise VerbError(f"{self.host} has no port {number}; valid: {valid}")
        return port.enabled

    def _port_set(self, port: Port | None, cause: str, now_ns: int) -> None:
        if port is not None:
            self.log.plane_event(now_ns, port, "local", None, port.up, cause)
            self._ports_settled(now_ns, port.up)

    def _ports_settled(self, now_ns: int, up: bool) -> None:
        """A port went `up` or down: for a transport to act on."""
        raise NotImplementedError

    def events_waiting(self) -> bool:
        return len(self.log) > 0

    def next_event(self) -> Event | None:
        return self.log.take()

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
            "drops": dict(self.log.drops),
        }

    def denied(self) -> Set[tuple[str, int]]:
        return frozenset()
