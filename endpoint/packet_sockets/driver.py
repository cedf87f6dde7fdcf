"""The NIC driver: packet sockets, link state and the clock around a device that does no I/O.

No protocol: frames in, timers, frames out, as often as the `Loop` gives a turn.
"""

import errno
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from common.linux.bpf import Program
from endpoint import frame_filter
from endpoint.packet_sockets.loop import BUSY, IDLE, MORE, NEVER, Loop
from endpoint.packet_sockets.ring import PacketSocket, ProbeSocket
from endpoint.profile import ProfilePort

# linux/rtnetlink.h, linux/if_link.h, linux/if.h
_RTMGRP_LINK = 1
_RTM_NEWLINK, _RTM_DELLINK, _RTM_GETLINK = 16, 17, 18
_NLM_F_REQUEST_DUMP = 0x301
_IFLA_IFNAME = 3
_IFF_UP, _IFF_LOWER_UP = 1, 1 << 16


@dataclass(frozen=True, slots=True)
class NetworkInterface:
    """A network interface by name and kernel index."""

    interface: str
    index: int
    up: bool
    """Administratively up and with carrier."""


class CarrierWatch:
    """A netlink socket that tells of every link's state: all of them at first, then each change."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, _RTMGRP_LINK))
        self._request_all()

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> list[NetworkInterface]:
        """The states that have arrived; a link may occur twice, and the later state counts. Never waits."""
        links: list[NetworkInterface] = []
        while True:
            try:
                links.extend(parse(self._socket.recv(1 << 16, socket.MSG_DONTWAIT)))
            except BlockingIOError:
                return links
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._request_all()  # messages were lost: ask for the whole state again

    def close(self) -> None:
        self._socket.close()

    def _request_all(self) -> None:
        header = struct.pack("IHHII", 16 + 16, _RTM_GETLINK, _NLM_F_REQUEST_DUMP, 1, 0)
        self._socket.send(header + bytes(16))


def parse(data: bytes) -> Iterator[NetworkInterface]:
    """The links in one datagram of rtnetlink messages (linux/netlink.h: lengths include headers, aligned to 4)."""
    while len(data) >= 16:
        length, kind = struct.unpack_from("IH", data)
        if length < 16 or length > len(data):
            return
        if kind in (_RTM_NEWLINK, _RTM_DELLINK) and length >= 32:
            index, flags = struct.unpack_from("iI", data, 20)
            name = _attribute(data[32:length], _IFLA_IFNAME)
            if name is not None:
                up = kind == _RTM_NEWLINK and bool(flags & _IFF_UP) and bool(flags & _IFF_LOWER_UP)
                yield NetworkInterface(name.rstrip(b"\0").decode(errors="replace"), index, up)
        data = data[(length + 3) & ~3 :]


def _attribute(data: bytes, wanted: int) -> bytes | None:
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        if length < 4:
            return None
        if kind == wanted:
            return data[4:length]
        data = data[(length + 3) & ~3 :]
    return None


BATCH_FRAMES = 64
RING_BYTES = 4 << 20
# So many turns with full batches may pass before timers are handled although more frames wait.
_LATE_TURNS_MAX = 32
STALL_NS = 10_000_000  # for a caller that does not know the round trip


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


class PortCounts(NamedTuple):
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
        self.drop_socket = 0
        self.data = PacketSocket(port.interface, programs[0], mtu, ring_bytes)
        try:
            self.probes = ProbeSocket(port.interface, programs[1])
        except OSError:
            self.data.close()
            raise

    def close(self) -> None:
        self.data.close()
        self.probes.close()


def _raised(error: Exception) -> None:
    raise error


class Driver:
    """Opens the ports of one host's profile in the network namespace of the caller, for a device that `serve` names.

    The loop knows when the host wanted to run: at its deadline, or when a frame arrived while the loop slept. A device
    that is served `stall_ns` later than that is told so; `late_ns` is the sum of all lateness beyond the moderation, as
    far as looking for it costs nothing: frames are asked how long they waited only where a stall is possible.
    """

    def __init__(
        self,
        loop: Loop,
        ports: Sequence[ProfilePort],
        mtu: int,
        *,
        data_udp_ports: Sequence[int],
        probe_udp_ports: Sequence[int],
        ring_bytes: int = RING_BYTES,
        stall_ns: int = STALL_NS,
        mac_control: bool = False,
    ) -> None:
        self._loop = loop
        self._wall_ahead_ns = time.time_ns() - loop.clock()
        self._stall_ns = stall_ns
        self.late_ns = 0
        self.deadline_ns = NEVER
        self._late_turns = 0
        self._touched = True
        """Something else than frames and time may have given the device something to do."""
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
        self._ring_of = {number: port.data.ring for number, port in self._ports.items()}
        self._rings = list(self._ring_of.items())

    def serve(self, device: FrameHandler, fail: Callable[[Exception], None] = _raised) -> None:
        """Have the loop give the device its turns. `fail` gets what the device or a callback of its readers raises."""
        self._device, self.fail = device, fail
        for port in self._ports.values():
            self.add_reader(port.probes.fileno(), partial(self._receive_probes, port))
        self.add_reader(self._carrier.fileno(), self._read_carrier)
        self._guarded(self._read_carrier)
        self._loop.add(self)

    # common.server.Loop

    def add_reader(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call back from the loop whenever the descriptor is readable."""
        self._loop.add_reader(descriptor, partial(self._guarded, callback))

    def remove_reader(self, descriptor: int) -> None:
        """To be said before the descriptor is closed: its number may be another file's then."""
        self._loop.remove_reader(descriptor)

    def add_writer(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call back from the loop whenever the descriptor takes bytes."""
        self._loop.add_writer(descriptor, partial(self._guarded, callback))

    def remove_writer(self, descriptor: int) -> None:
        self._loop.remove_writer(descriptor)

    def _guarded(self, callback: Callable[[], None]) -> None:
        self._touched = True
        try:
            callback()
        except Exception as error:
            self.fail(error)

    def counts(self) -> dict[int, PortCounts]:
        """Totals by port number."""
        for port in self._ports.values():
            port.drop_socket += port.data.drops()
        return {number: PortCounts(*port.data.ring.counts(), port.drop_socket) for number, port in self._ports.items()}

    def close(self) -> None:
        self._loop.remove(self)
        self._loop.remove_reader(self._carrier.fileno())
        for port in self._ports.values():
            self._loop.remove_reader(port.probes.fileno())
            port.close()
        self._ports.clear()
        self._carrier.close()

    # endpoint.packet_sockets.loop.Served

    def data_descriptors(self) -> Iterable[int]:
        return self._data

    def turn(self) -> int:
        """Frames in, timers, frames out."""
        device, now_ns = self._device, self._loop.clock()
        moved, drained = IDLE, True
        for number, ring in self._rings:
            if frames := ring.receive(BATCH_FRAMES):
                moved = BUSY
                drained = drained and len(frames) < BATCH_FRAMES
                device.receive(number, frames, now_ns)
                frames.clear()
                ring.release()
        if not moved and not self._touched and self.deadline_ns > now_ns:
            return IDLE
        # Frames come before overdue timers: an acknowledgement may be among them.
        self._late_turns = 0 if drained else self._late_turns + 1
        if self.deadline_ns <= now_ns and (drained or self._late_turns > _LATE_TURNS_MAX):
            device.handle_timer(now_ns)
        outgoing = device.packets_to_send(now_ns, BATCH_FRAMES)
        if outgoing:
            moved = BUSY
            for number, frame in outgoing:
                self._ring_of[number].send(frame)
        deadline_ns = device.next_timer_ns()
        self.deadline_ns = NEVER if deadline_ns is None else deadline_ns
        self._touched = len(outgoing) == BATCH_FRAMES
        return moved if drained and not self._touched else MORE

    def note_lateness(self, before_ns: int, now_ns: int, idle_ns: int, slept: bool, moderation_ns: int) -> None:
        late_ns = now_ns - max(self.deadline_ns, before_ns)
        if slept and now_ns - before_ns >= self._stall_ns:  # in less time no frame can have waited for a stall
            late_ns = max(late_ns, self._waited_ns(before_ns, now_ns))
        late_ns = min(late_ns, idle_ns)
        if late_ns > moderation_ns:
            self.late_ns += late_ns - moderation_ns
            if late_ns >= self._stall_ns:
                self._touched = True
                self._device.host_was_late(late_ns, now_ns)

    def woken(self, descriptor: int) -> None:
        if (data := self._data[descriptor].data).ring.oldest_ns() is None:
            data.clear_error()  # an error is not a frame, and would keep the loop awake

    def _waited_ns(self, before_ns: int, now_ns: int) -> int:
        """How long the oldest frame has been waiting, in ns, for a loop that slept from `before_ns` to `now_ns`.

        The kernel stamps frames by the wall clock. If that clock was set during the sleep, the frame may carry a time
        from before the step. A time that is not within the sleep is therefore read again by the clock as it was.
        0 when neither reading is possible: no frame waits, or nothing is known.
        """
        arrivals_ns = [arrived_ns for _, ring in self._rings if (arrived_ns := ring.oldest_ns()) is not None]
        was_ahead_ns, self._wall_ahead_ns = self._wall_ahead_ns, time.time_ns() - self._loop.clock()
        for ahead_ns in (self._wall_ahead_ns, was_ahead_ns) if arrivals_ns else ():
            if 0 <= (waited_ns := now_ns - (min(arrivals_ns) - ahead_ns)) <= now_ns - before_ns:
                return waited_ns
        return 0

    def _receive_probes(self, port: _OpenPort) -> None:
        if frames := port.probes.receive(BATCH_FRAMES):
            self._device.receive_probes(port.number, frames, self._loop.clock())

    def _read_carrier(self) -> None:
        for link in self._carrier.read():
            number = self._by_interface.get(link.interface)
            port = self._ports.get(number) if number is not None else None
            if port is not None and port.up != link.up:
                port.up = link.up
                self._device.port_changed(port.number, link.up, self._loop.clock())
