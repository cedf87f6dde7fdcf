"""The traffic manager: ports with eight strict-priority queues each, in virtual time."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace

from switch.engine import PRIORITIES, PortConfig, PortCounters
from switch.reference.packet import Packet
from switch.reference.rng import SplitMix64

_SECOND_NS = 1_000_000_000


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(slots=True)
class Queue:
    packets: deque[Packet] = field(default_factory=deque)
    bytes: int = 0
    next_ns: int = 0  # its own rate lets nothing out before


class Port:
    def __init__(self, number: int) -> None:
        self.number = number
        self.config: PortConfig | None = None  # None: never configured
        self.counts = SimpleNamespace(**asdict(PortCounters()))  # the same, changing
        self.queues = [Queue() for _ in range(PRIORITIES)]
        self.waiting = 0
        self.waiting_bytes = 0
        self.waiting_max = 0
        self.free_ns = 0  # the wire is busy until then
        self._loss = SplitMix64(0)

    # --- configuration ---

    def configure(self, config: PortConfig, now_ns: int) -> None:
        """From now on, and not before, waiting packets are served by the new rules."""
        self.free_ns = max(self.free_ns, now_ns)
        old = self.config
        if old is None or (old.loss, old.loss_seed) != (config.loss, config.loss_seed):
            self._loss = SplitMix64(config.loss_seed)
        self.config = config
        if not config.up:
            self.counts.drop_port_down += self.flush()

    def flush(self) -> int:
        """Forget what waits; how many packets that was."""
        count = self.waiting
        for queue in self.queues:
            queue.packets.clear()
            queue.bytes = 0
        self.waiting = self.waiting_bytes = 0
        return count

    # --- queues ---

    def refusal(self, priority: int, size_bytes: int) -> str | None:
        """Why a packet cannot be queued, after counting it as dropped; None when it can."""
        if self.config is None:
            return f"port {self.number} is not configured"
        if not self.config.up:
            self.counts.drop_port_down += 1
            return f"port {self.number} is down"
        if priority >= PRIORITIES:
            self.counts.drop_queue_full += 1
            return f"port {self.number} has priorities 0 to {PRIORITIES - 1}, not {priority}"
        queue, limits = self.queues[priority], self.config.queues[priority]
        if limits.depth_packets and len(queue.packets) >= limits.depth_packets:
            self.counts.drop_queue_full += 1
            return f"port {self.number} priority {priority} is full at {limits.depth_packets} packets"
        if limits.depth_bytes and queue.bytes + size_bytes > limits.depth_bytes:
            self.counts.drop_queue_full += 1
            return f"port {self.number} priority {priority} is full at {limits.depth_bytes} bytes"
        return None

    def push(self, packet: Packet, priority: int) -> None:
        queue = self.queues[priority]
        queue.packets.append(packet)
        queue.bytes += packet.queue_bytes
        self.waiting += 1
        self.waiting_bytes += packet.queue_bytes
        self.waiting_max = max(self.waiting_max, self.waiting)

    def service_ns(self) -> int | None:
        """When the next packet can leave; None when none waits."""
        ready = [max(q.next_ns, q.packets[0].enqueued_ns) for q in self.queues if q.packets]
        return max(self.free_ns, min(ready)) if ready else None

    def pop(self, now_ns: int) -> tuple[Packet, int]:
        """The first packet of the highest priority whose rate allows it now, and that priority."""
        assert self.config is not None
        for priority in reversed(range(PRIORITIES)):
            queue = self.queues[priority]
            if queue.packets and queue.next_ns <= now_ns:
                packet = queue.packets.popleft()
                queue.bytes -= packet.queue_bytes
                self.waiting -= 1
                self.waiting_bytes -= packet.queue_bytes
                rate = self.config.queues[priority].rate_pps
                if rate:
                    queue.next_ns = now_ns + _ceil_div(_SECOND_NS, rate)
                return packet, priority
        raise AssertionError("pop before service_ns")

    # --- the wire ---

    def transmit(self, size_bytes: int, now_ns: int) -> tuple[int, bool]:
        """Occupy the wire with a frame; when it arrives, and whether it does (seeded loss)."""
        config = self.config
        assert config is not None
        busy_ns = 0
        if config.rate_bps:
            busy_ns = _ceil_div((size_bytes + config.overhead_bytes) * 8 * _SECOND_NS, config.rate_bps)
        if config.rate_pps:
            busy_ns = max(busy_ns, _ceil_div(_SECOND_NS, config.rate_pps))
        self.free_ns = now_ns + busy_ns
        self.counts.tx_packets += 1
        self.counts.tx_bytes += size_bytes
        lost = config.loss > 0 and self._loss.chance(config.loss)
        if lost:
            self.counts.drop_loss += 1
        return self.free_ns + config.delay_ns, not lost

    def counters(self) -> PortCounters:
        queues = {
            "queue_packets": self.waiting,
            "queue_bytes": self.waiting_bytes,
            "queue_packets_max": self.waiting_max,
        }
        return PortCounters(**vars(self.counts) | queues)
