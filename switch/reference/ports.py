"""The traffic manager: ports with eight strict-priority queues each, in virtual time."""

from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace

from switch.engine import PRIORITIES, PortConfig, PortCounters
from switch.reference.packet import Packet
from switch.reference.pfc import Pause, PortPfc, pfc_times, quanta_ns
from switch.reference.rng import SplitMix64

_SECOND_NS = 1_000_000_000


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(slots=True)
class Queue:
    packets: deque[Packet] = field(default_factory=deque)
    bytes: int = 0
    next_ns: int = 0  # its own rate lets nothing out before


class ReferencePort:
    def __init__(self, number: int) -> None:
        self.number = number
        self.config: PortConfig | None = None  # None: never configured
        self.counts = SimpleNamespace(**PortCounters()._asdict())  # the same, changing
        self.queues = [Queue() for _ in range(PRIORITIES)]
        self.waiting = 0
        self.waiting_bytes = 0
        self.waiting_max = 0
        self.free_ns = 0  # the wire is busy until then
        self.pfc = PortPfc()
        self._loss = SplitMix64(0)

    # --- configuration ---

    def configure(self, config: PortConfig, now_ns: int) -> None:
        """From now on, and not before, waiting packets are served by the new rules."""
        self.free_ns = max(self.free_ns, now_ns)
        old = self.config
        if old is None or (old.loss, old.loss_seed) != (config.loss, config.loss_seed):
            self._loss = SplitMix64(config.loss_seed)
        self.config = config
        for priority in range(PRIORITIES):
            if not config.up or not config.pfc_classes >> priority & 1:
                self._let_go(priority, now_ns)
        self.pfc.configured(config, now_ns)

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
        """When the next packet, or a PFC frame, can leave; None when there is none."""
        ready = [max(q.next_ns, q.packets[0].enqueued_ns) for q in self.queues if q.packets]
        if self.pfc.due_ns is not None:
            ready.append(self.pfc.due_ns)
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
        """Occupy the wire with a packet; when it arrives, and whether it does (seeded loss)."""
        self.counts.tx_packets += 1
        self.counts.tx_bytes += size_bytes
        return self.occupy(size_bytes, now_ns)

    def occupy(self, size_bytes: int, now_ns: int) -> tuple[int, bool]:
        """The same for a frame of the port's own MAC, which the counters of packets do not know."""
        config = self.config
        assert config is not None
        busy_ns = 0
        if config.rate_bps:
            busy_ns = _ceil_div((size_bytes + config.overhead_bytes) * 8 * _SECOND_NS, config.rate_bps)
        if config.rate_pps:
            busy_ns = max(busy_ns, _ceil_div(_SECOND_NS, config.rate_pps))
        self.free_ns = now_ns + busy_ns
        lost = config.loss > 0 and self._loss.chance(config.loss)
        if lost:
            self.counts.drop_loss += 1
        return self.free_ns + config.delay_ns, not lost

    # --- flow control (IEEE 802.1Qbb) ---

    def lossless(self, priority: int) -> bool:
        return self.config is not None and bool(self.config.pfc_classes >> priority & 1)

    def admits(self, priority: int, size_bytes: int) -> bool:
        """Whether a packet that came by this port has room in its lossless priority; counts it as dropped if not."""
        config = self.config
        assert config is not None
        if self.pfc.held[priority] + size_bytes <= config.pfc_xoff_bytes + config.pfc_headroom_bytes:
            return True
        self.counts.drop_headroom += 1
        return False

    def charge(self, packet: Packet, now_ns: int) -> None:
        """Charge a packet that came by this port and was queued somewhere in this switch."""
        assert self.config is not None
        packet.charged = True
        self.pfc.charge(self.config, packet.priority, packet.queue_bytes, now_ns)
        self.counts.held_bytes_max = max(self.counts.held_bytes_max, self.pfc.held[packet.priority])

    def release(self, packet: Packet, now_ns: int) -> None:
        """Release a packet that came by this port, as it leaves or is dropped."""
        assert self.config is not None
        packet.charged = False
        self.pfc.release(self.config, packet.priority, packet.queue_bytes, now_ns)

    def speak(self, now_ns: int) -> bytes:
        """The PFC frame that is due."""
        assert self.config is not None
        frame = self.pfc.frame(self.config, now_ns)
        if self.pfc.want:
            self.counts.pause_sent += 1
        else:
            self.counts.resume_sent += 1
        return frame

    def obey(self, frame: bytes, now_ns: int) -> None:
        """Hold back and let go what a MAC control frame is about."""
        config = self.config
        assert config is not None
        times = {priority: quanta for priority, quanta in pfc_times(frame).items() if self.lossless(priority)}
        for priority, quanta in times.items():
            if quanta:
                self._hold(priority, now_ns, now_ns + quanta_ns(config, quanta))
            else:
                self._let_go(priority, now_ns)
        if not times:
            self.counts.pause_ignored += 1
        elif any(times.values()):
            self.counts.pause_received += 1
        else:
            self.counts.resume_received += 1

    def forget_pauses(self, now_ns: int) -> None:
        """As after a power cycle: nothing is held, said or heard."""
        for priority in range(PRIORITIES):
            self._let_go(priority, now_ns)
        self.pfc.forget()

    def settle_pauses(self, now_ns: int) -> None:
        """Count pauses up to `now_ns`."""
        for pause in self.pfc.pauses:
            self._settle(pause, now_ns)

    def _settle(self, pause: Pause, now_ns: int) -> None:
        if pause.since_ns is None:
            return
        watchdog_ns = self.config.pfc_watchdog_ns if self.config is not None else 0
        end_ns = min(now_ns, pause.until_ns)
        if end_ns > pause.since_ns:
            self.counts.paused_ns += end_ns - pause.since_ns
            pause.since_ns = end_ns
        if watchdog_ns and not pause.watched and end_ns - pause.began_ns > watchdog_ns:
            pause.watched = True
            self.counts.pause_watchdog += 1
        if now_ns >= pause.until_ns:
            pause.since_ns = None

    def _hold(self, priority: int, now_ns: int, until_ns: int) -> None:
        pause, queue = self.pfc.pauses[priority], self.queues[priority]
        self._settle(pause, now_ns)
        if pause.since_ns is None:
            pause.since_ns = pause.began_ns = now_ns
            pause.rate_ns = queue.next_ns
            pause.watched = False
        pause.until_ns = until_ns
        queue.next_ns = max(pause.rate_ns, until_ns)

    def _let_go(self, priority: int, now_ns: int) -> None:
        pause = self.pfc.pauses[priority]
        self._settle(pause, now_ns)
        if pause.since_ns is not None:
            pause.since_ns = None
            self.queues[priority].next_ns = max(pause.rate_ns, now_ns)

    def counters(self) -> PortCounters:
        queues = {
            "queue_packets": self.waiting,
            "queue_bytes": self.waiting_bytes,
            "queue_packets_max": self.waiting_max,
        }
        return PortCounters(**vars(self.counts) | queues)
