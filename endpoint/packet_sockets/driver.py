"""The NIC driver: packet sockets, link state and the clock around a device that does no I/O.

One loop, no protocol: frames in, timers, frames out, then wait for the first of a frame, a link change, a registered
descriptor or the device's next deadline. `select` is the wait because its timeout has microseconds (`epoll`'s are
milliseconds). It takes no descriptor above 1023, so all but the ports' sockets, which are opened first, hang on one
epoll descriptor.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from common.bpf import Program
from endpoint import frame_filter
from endpoint.packet_sockets.carrier import CarrierWatch
from endpoint.packet_sockets.ring import PacketSocket, ProbeSocket
from endpoint.profile import ProfilePort

BATCH_FRAMES = 64
RING_BYTES = 4 << 20
# While frames keep coming the loop does not wait; other descriptors are then looked at this often.
_GLANCE_NS = 1_000_000
# So many turns with full batches may pass before timers are handled although more frames wait.
_LATE_TURNS_MAX = 32
STALL_NS = 10_000_000  # for a caller that does not know the round trip
_WAIT_MAX_NS = 3600 * 1_000_000_000  # `select` cannot express every deadline that a request may set


class FrameHandler(Protocol):
    """A device that the driver serves: `endpoint.host.HostNic`, or anything that sends and receives frames."""

    def receive(self, port: int, frames: Sequence[memoryview], now_ns: int) -> object:
        """The frames are views that are valid only during the call."""

    def receive_probes(self, port: int, frames: Sequence[bytes], now_ns: int) -> None: ...
    def port_changed(self, port: int, up: bool, now_ns: int) -> None: ...
    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """The host did not run for `late_ns`; called before the frames that came meanwhile are handed over."""

    def handle_timer(self, now_ns: int) -> None: ...
    def next_timer_ns(self) -> int | None: ...
    def packets_to_send(self, now_ns: int, limit: int) -> Sequence[tuple[int, bytes]]: ...


@dataclass(slots=True)
class PortCounts:
    """Counters of a port since the start of the driver."""

    tx_packets: int = 0
    tx_bytes: int = 0
    tx_refused: int = 0  # the interface was down, gone or full
    rx_packets: int = 0
    rx_bytes: int = 0
    drop_socket: int = 0  # the ring was full: lost by this host, not by the network


class _OpenPort:
    def __init__(self, port: ProfilePort, programs: tuple[Program, Program], mtu: int, ring_bytes: int) -> None:
        self.number = port.port
        self.up: bool | None = None
        self.counts = PortCounts()
        self.data = PacketSocket(port.interface, programs[0], mtu, ring_bytes)
        try:
            self.probes = ProbeSocket(port.interface, programs[1])
        except OSError:
            self.data.close()
            raise

    def close(self) -> None:
        self.data.close()
        self.probes.close()


class Driver:
    """Opens the profile's ports; `run` drives the device until `stop`.

    `moderation_ns` is what NICs call interrupt moderation: after a turn that moved frames the loop sleeps that long,
    any arrival, and then takes all of them at once. Waking a Python process costs tens of microseconds in cold
    caches, several times what a frame costs in a warm loop. After an idle turn the next frame wakes it at once.

    The loop knows when it wanted to run: at its deadline, or when a frame arrived while it slept. A device that is
    served `stall_ns` later than that is told so; `late_ns` is the sum of all lateness beyond the moderation, as far as
    looking for it costs nothing: frames are asked how long they waited only where a stall is possible.
    """

    def __init__(
        self,
        ports: Sequence[ProfilePort],
        mtu: int,
        *,
        data_udp_ports: Sequence[int],
        probe_udp_ports: Sequence[int],
        ring_bytes: int = RING_BYTES,
        moderation_ns: int = 0,
        stall_ns: int = STALL_NS,
        mac_control: bool = False,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._clock = clock
        self._wall_ahead_ns = time.time_ns() - clock()
        self._moderation_ns = moderation_ns
        self._stall_ns = stall_ns
        self.late_ns = 0
        self._stopped = False
        self._readers: dict[int, Callable[[], None]] = {}
        self._writers: dict[int, Callable[[], None]] = {}
        self._watched: dict[int, int] = {}
        self._epoll = select.epoll()
        keep, leave = frame_filter.ACCEPT_WHOLE, frame_filter.REJECT
        programs = (
            frame_filter.udp_over_ipv6(
                data_udp_ports, keep, leave, mac_control=mac_control, segments=frame_filter.SEGMENTS_MAX
            ),
            frame_filter.udp_over_ipv6(probe_udp_ports, keep, leave),
        )
        self._carrier = CarrierWatch()
        self._ports: dict[int, _OpenPort] = {}
        self._by_interface = {port.interface: port.port for port in ports}
        try:
            for port in ports:
                self._ports[port.port] = _OpenPort(port, (programs[0], programs[1]), mtu, ring_bytes)
        except OSError as error:
            self.close()
            raise OSError(f"cannot open interface {port.interface} of port {port.port}: {error.strerror}") from error
        self._data = {port.data.fileno(): port for port in self._ports.values()}
        self._probes = {port.probes.fileno(): port for port in self._ports.values()}
        for descriptor in (self._carrier.fileno(), *self._probes):
            self._epoll.register(descriptor, select.EPOLLIN)

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call back from the loop whenever the descriptor is readable."""
        self._readers[descriptor] = callback
        self._watch(descriptor)

    def remove_reader(self, descriptor: int) -> None:
        """To be said before the descriptor is closed: its number may be another file's then."""
        self._readers.pop(descriptor, None)
        self._watch(descriptor)

    def add_writer(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call back from the loop whenever the descriptor takes bytes."""
        self._writers[descriptor] = callback
        self._watch(descriptor)

    def remove_writer(self, descriptor: int) -> None:
        self._writers.pop(descriptor, None)
        self._watch(descriptor)

    def _watch(self, descriptor: int) -> None:
        events = select.EPOLLIN if descriptor in self._readers else 0
        events |= select.EPOLLOUT if descriptor in self._writers else 0
        before = self._watched.pop(descriptor, 0)
        if events:
            self._watched[descriptor] = events
            (self._epoll.modify if before else self._epoll.register)(descriptor, events)
        elif before:
            self._epoll.unregister(descriptor)

    def stop(self) -> None:
        """Make `run` return after the turn that it is in."""
        self._stopped = True

    def counts(self) -> dict[int, PortCounts]:
        """Totals by port number."""
        for port in self._ports.values():
            port.counts.drop_socket += port.data.drops()
        return {number: port.counts for number, port in self._ports.items()}

    def close(self) -> None:
        for port in self._ports.values():
            port.close()
        self._ports.clear()
        self._carrier.close()
        self._epoll.close()

    def run(self, device: FrameHandler) -> None:
        """Serve the device until `stop` is called."""
        clock, ports = self._clock, list(self._ports.values())
        self._read_carrier(device)
        glance_ns = clock() + _GLANCE_NS
        late_turns = 0
        deadline_ns = device.next_timer_ns()
        now_ns, cpu_ns, slept = clock(), time.thread_time_ns(), False
        while not self._stopped:
            before_ns, now_ns = now_ns, clock()
            before_cpu_ns, cpu_ns = cpu_ns, time.thread_time_ns()
            late_ns = now_ns - max(deadline_ns, before_ns) if deadline_ns is not None else 0
            if slept and now_ns - before_ns >= self._stall_ns:  # in less time no frame can have waited for a stall
                late_ns = max(late_ns, self._waited_ns(before_ns, now_ns))
            # The turn's own work is no lateness: with full ports a turn is always behind its deadline.
            late_ns = min(late_ns, now_ns - before_ns - (cpu_ns - before_cpu_ns))
            if late_ns > self._moderation_ns:
                self._was_late(device, late_ns, now_ns)
            busy, drained = False, True
            for port in ports:
                if frames := port.data.receive(BATCH_FRAMES):
                    busy = True
                    drained = drained and len(frames) < BATCH_FRAMES
                    device.receive(port.number, frames, now_ns)
                    counts = port.counts
                    counts.rx_packets += len(frames)
                    counts.rx_bytes += sum(map(len, frames))
                    frames.clear()
                    port.data.release()
            # Frames come before overdue timers: an acknowledgement may be among them.
            late_turns = 0 if drained else late_turns + 1
            due = deadline_ns is not None and deadline_ns <= now_ns
            if due and (drained or late_turns > _LATE_TURNS_MAX):
                device.handle_timer(now_ns)
            outgoing = device.packets_to_send(now_ns, BATCH_FRAMES)
            if outgoing:
                busy = True
                self._send(outgoing)
            more = not drained or len(outgoing) == BATCH_FRAMES
            # Asked once per turn: timers that became due meanwhile are served in the next turn, which comes at once.
            deadline_ns = device.next_timer_ns()
            slept = False
            if more and now_ns < glance_ns:
                continue
            if more:
                self._wait(device, 0, with_data=False)
            elif busy and self._moderation_ns:
                self._wait(device, now_ns + self._moderation_ns - clock(), with_data=False)
            else:
                self._wait(device, None if deadline_ns is None else deadline_ns - clock(), with_data=True)
                slept = True
            glance_ns = clock() + _GLANCE_NS

    def _waited_ns(self, before_ns: int, now_ns: int) -> int:
        """How long the oldest frame has been waiting, in ns, for a loop that slept from `before_ns` to `now_ns`.

        The kernel stamps frames by the wall clock. If that clock was set during the sleep, the frame may carry a time
        from before the step. A time that is not within the sleep is therefore read again by the clock as it was.
        0 when neither reading is possible: no frame waits, or nothing is known.
        """
        found = [arrived_ns for port in self._ports.values() if (arrived_ns := port.data.oldest_ns()) is not None]
        was_ahead_ns, self._wall_ahead_ns = self._wall_ahead_ns, time.time_ns() - self._clock()
        for ahead_ns in (self._wall_ahead_ns, was_ahead_ns) if found else ():
            if 0 <= (waited_ns := now_ns - (min(found) - ahead_ns)) <= now_ns - before_ns:
                return waited_ns
        return 0

    def _was_late(self, device: FrameHandler, late_ns: int, now_ns: int) -> None:
        self.late_ns += late_ns - self._moderation_ns
        if late_ns >= self._stall_ns:
            device.host_was_late(late_ns, now_ns)

    def _send(self, outgoing: Sequence[tuple[int, bytes]]) -> None:
        ports = self._ports
        for number, frame in outgoing:
            port = ports[number]
            counts = port.counts
            try:
                port.data.send(frame)
            except OSError:
                counts.tx_refused += 1
            else:
                counts.tx_packets += 1
                counts.tx_bytes += len(frame)

    def _wait(self, device: FrameHandler, wait_ns: int | None, *, with_data: bool) -> None:
        """Wait until a descriptor is readable or `wait_ns` is over (None: for ever). Frames are left to the loop."""
        others = self._epoll.fileno()
        watched = [others, *self._data] if with_data else [others]
        timeout_s = None if wait_ns is None else min(max(0, wait_ns), _WAIT_MAX_NS) / 1e9
        readable = select.select(watched, [], [], timeout_s)[0]
        for descriptor in readable:
            if (port := self._data.get(descriptor)) and port.data.oldest_ns() is None:
                port.data.clear_error()  # an error is not a frame, and would keep the loop awake
        if others in readable:
            self._serve_others(device)

    def _serve_others(self, device: FrameHandler) -> None:
        for descriptor, events in self._epoll.poll(0):
            if port := self._probes.get(descriptor):
                if frames := port.probes.receive(BATCH_FRAMES):
                    device.receive_probes(port.number, frames, self._clock())
            elif descriptor == self._carrier.fileno():
                self._read_carrier(device)
            else:
                if events & ~select.EPOLLOUT and (callback := self._readers.get(descriptor)):
                    callback()
                if events & ~select.EPOLLIN and (callback := self._writers.get(descriptor)):
                    callback()

    def _read_carrier(self, device: FrameHandler) -> None:
        for link in self._carrier.read():
            number = self._by_interface.get(link.interface)
            port = self._ports.get(number) if number is not None else None
            if port is not None and port.up != link.up:
                port.up = link.up
                device.port_changed(port.number, link.up, self._clock())
