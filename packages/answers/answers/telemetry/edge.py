"""The edge between a NIC and the wire, where telemetry goes on packets and comes off: the NIC sees none of it.

A write leaves with an option in which switches put their records (`parts/telemetry.p4`). The receiver's edge takes the
option off, keeps the records, and puts them on the next SACK to that sender, with the EV of the write. The sender's
edge takes them off, and `report()` has them while the NIC handles that SACK.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

from endpoint.nic import Turns, frame, wire

__all__ = ["EDGE", "Edge", "Hop", "Report", "report"]

EDGE = "answers.telemetry.edge:Edge"
"""Of transports, and of algorithms that need one."""
OPTION = 0x3E
HOP_BY_HOP, IPV6_IN_IPV6 = 0, 41
_LENGTH, _NEXT = frame.ETHERNET + 4, frame.ETHERNET + 6
_BEHIND = frame.ETHERNET + frame.IPV6
"""Where the option is, or the inner IPv6 header in a frame without it."""
_BTH = _BEHIND + frame.IPV6 + frame.UDP
_OPTION = Struct("!BBBBBBH")  # next header, length, option, its length, records, echo, unused
_HOP = Struct("!IIII")
_ECHOED_BYTES = 8  # the EV, and padding


class Hop(NamedTuple):
    """A switch's record of the port by which a packet left. Bytes and microseconds are modulo 2^32."""

    queue_bytes: int
    sent_bytes: int
    time_us: int
    rate_kbps: int


class Report(NamedTuple):
    """The hops of a packet, first hop first. `path` names the peer and the EV."""

    path: bytes
    hops: tuple[Hop, ...]


_at_hand: list[Report | None] = [None]


def report() -> Report | None:
    """The report that came with the SACK at hand; None: there was none."""
    return _at_hand[0]


class Edge(Turns):
    """A transport with telemetry: `nic` does everything else."""

    def __init__(self, nic: Any) -> None:
        self._nic = nic
        self._kept: dict[bytes, tuple[int, bytes]] = {}
        """By sender: how many records its latest packet had, and EV, padding and records."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nic, name)

    def next_timer_ns(self) -> int | None:
        return self._nic.next_timer_ns()  # type: ignore[no-any-return]

    def timers_ns(self) -> tuple[int, int]:
        return self._nic.timers_ns()  # type: ignore[no-any-return]

    def handle_timer(self, now_ns: int) -> None:
        self._nic.handle_timer(now_ns)

    def events_waiting(self) -> bool:
        return self._nic.events_waiting()  # type: ignore[no-any-return]

    def next_event(self) -> Any:
        return self._nic.next_event()

    def packets_to_send(self, now_ns: int, limit: int) -> list[tuple[int, bytes]]:
        return [(port, self._dressed(data)) for port, data in self._nic.packets_to_send(now_ns, limit)]

    def _dressed(self, data: bytes) -> bytes:
        if data[_NEXT] != IPV6_IN_IPV6:
            return data
        if data[_BTH] <= wire.Opcode.WRITE_ONLY_IMM:
            return _with_option(data, 0, 0, b"")
        kept = self._kept.pop(data[_BEHIND + 24 : _BEHIND + 40], None) if data[_BTH] == wire.Opcode.SACK else None
        return data if kept is None else _with_option(data, kept[0], 1, kept[1])

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> bool:
        idle = True
        for data in frames_in:
            has_option = len(data) > _BEHIND + _OPTION.size and data[_NEXT] == HOP_BY_HOP
            try:
                idle &= self._nic.receive(port, [self._bared(bytes(data)) if has_option else data], now_ns)
            finally:
                _at_hand[0] = None
        return idle

    def _bared(self, data: bytes) -> bytes:
        """The frame without the option, whose records are kept or at hand. One with another option stays as it is."""
        following, length, option, _, count, echo, _ = _OPTION.unpack_from(data, _BEHIND)
        end = _BEHIND + 8 * (length + 1)
        content, inner = data[_BEHIND + _OPTION.size : end], data[end:]
        if (
            option != OPTION
            or len(inner) < frame.IPV6 + frame.UDP
            or (len(content) - _ECHOED_BYTES * bool(echo)) % _HOP.size
        ):
            return data
        peer = inner[8:24]
        if echo:
            hops = tuple(Hop(*hop) for hop in _HOP.iter_unpack(content[_ECHOED_BYTES:]))
            _at_hand[0] = Report(peer + content[:4], hops[::-1])
        else:
            ev = inner[2:4] + inner[frame.IPV6 : frame.IPV6 + 2]
            self._kept[peer] = count, ev + bytes(_ECHOED_BYTES - len(ev)) + content
        return _front(data, following, _BEHIND - end) + inner


def _with_option(data: bytes, count: int, echo: int, content: bytes) -> bytes:
    size = _OPTION.size + len(content)
    option = _OPTION.pack(IPV6_IN_IPV6, size // 8 - 1, OPTION, size - 4, count, echo, 0)
    return _front(data, HOP_BY_HOP, size) + option + content + data[_BEHIND:]


def _front(data: bytes, next_header: int, longer: int) -> bytes:
    """Ethernet and the outer IPv6 header, with another next header and length."""
    length = int.from_bytes(data[_LENGTH : _LENGTH + 2]) + longer
    return data[:_LENGTH] + length.to_bytes(2) + bytes([next_header]) + data[_NEXT + 1 : _BEHIND]
