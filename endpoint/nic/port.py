"""The ports of a NIC: line-rate pacing, a queue of control frames, counters; and all of them together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import gcd
from typing import TYPE_CHECKING, Final

from endpoint.nic.config import RATE_UNLIMITED_BPS

if TYPE_CHECKING:
    from endpoint import profile


CONTROL_WEIGHT: Final = 10
"""Control frames that may go before a data frame that waits for the port."""
BITS_NS: Final = 8_000_000_000
"""A byte's bits times a second's nanoseconds."""


class Port:
    """Data leaves no faster than the line; control frames go ahead by weight and are charged to the same line.

    `free_ns` is when the line has sent everything that was handed out. A port is open at `now_ns` while that is no
    more than the endpoint's burst ahead.
    """

    def __init__(self, row: profile.ProfilePort, control_max: int) -> None:
        self.row = row
        self.number = row.port
        self.plane = row.plane
        self.bit = 1 << (row.port - 1)  # as in the port status mask
        self.rate_bps = row.rate_bps or RATE_UNLIMITED_BPS
        self.unlimited = row.rate_bps == 0
        common = gcd(BITS_NS, self.rate_bps)
        self._line_ns, self._line_bytes = BITS_NS // common, self.rate_bps // common
        """Time for bytes, in lowest terms: small numbers are cheaper to multiply in compiled code."""
        self.overhead_bytes = row.overhead_bytes
        self.carrier = self.enabled = True
        """Whether there is a link, and whether its administrator wants it (OCP MRC API: `port_admin_state`)."""
        self.up = True
        """Both."""
        self.free_ns = 0
        self.paused_ns = 0
        """Until when data must wait because the peer paused its priority; control frames are of another priority."""
        self.control: deque[bytes] = deque()
        self.control_waits = False
        """Whether `control` has frames: asked far more often than the queue changes."""
        self.control_max = control_max
        self.control_dropped = 0
        self.control_turns = CONTROL_WEIGHT
        """Control frames that may still go before the next data frame."""
        self.tx_packets = self.tx_bytes = self.rx_packets = self.rx_bytes = 0

    def send_control(self, now_ns: int, out: list[tuple[int, bytes]], limit: int, data_waits: bool) -> None:
        """Append control frames until `out` has `limit` frames or, while data waits, by their weight."""
        control, number = self.control, self.number
        turns = self.control_turns if data_waits else len(control)
        while control and turns > 0 and len(out) < limit:
            frame = control.popleft()
            self.charge(len(frame), now_ns)
            out.append((number, frame))
            turns -= 1
        self.control_turns = turns if data_waits else CONTROL_WEIGHT
        self.control_waits = bool(control)

    def charge(self, size: int, now_ns: int) -> int:
        """Account for a data frame of `size` bytes handed to the line at `now_ns`, and return `size`.

        Control frames may follow.
        """
        self.control_turns = CONTROL_WEIGHT
        self.tx_packets += 1
        self.tx_bytes += size
        if not self.unlimited:
            free_ns = self.free_ns
            # Rounded up, as cables do: a port that thinks itself free a little early would fill a queue below it.
            line = (size + self.overhead_bytes) * self._line_ns
            self.free_ns = (free_ns if free_ns > now_ns else now_ns) - (-line // self._line_bytes)
        return size

    def queue_control(self, frame: bytes) -> bool:
        """Queue a control frame; False if the queue is full or the port is down."""
        if not self.up or len(self.control) >= self.control_max:
            self.control_dropped += 1
            return False
        self.control.append(frame)
        self.control_waits = True
        return True


class PortSet:
    """All ports of one NIC, in the order of the profile."""

    def __init__(self, rows: Iterable[profile.ProfilePort], control_max: int) -> None:
        self.list = [Port(row, control_max) for row in rows]
        self.by_number = {port.number: port for port in self.list}
        self._numbered = [self.by_number.get(number) for number in range(max(self.by_number, default=0) + 1)]
        self.all = self.up = sum(port.bit for port in self.list)
        """`up`: the bits of the ports that have a carrier; `all`: of every port."""

    def __iter__(self) -> Iterator[Port]:
        return iter(self.list)

    def __getitem__(self, place: int) -> Port:
        return self.list[place]

    def numbered(self, number: int) -> Port:
        """The port of this number. Raises `KeyError` for one that the NIC does not have."""
        port = self._numbered[number] if 0 <= number < len(self._numbered) else None
        return self.by_number[number] if port is None else port

    def set_carrier(self, number: int, up: bool, now_ns: int) -> Port | None:
        """Note a change of carrier, forget what was queued on the port; None if the port is as it was."""
        port = self.by_number[number]
        port.carrier = up
        return self._settle(port, now_ns)

    def set_enabled(self, number: int, enabled: bool, now_ns: int) -> Port | None:
        """The same for the port's administrative state."""
        port = self.by_number[number]
        port.enabled = enabled
        return self._settle(port, now_ns)

    def _settle(self, port: Port, now_ns: int) -> Port | None:
        up = port.carrier and port.enabled
        if port.up == up:
            return None
        port.up = up
        port.control.clear()
        port.control_waits = False
        port.free_ns = now_ns
        port.paused_ns = 0
        self.up ^= port.bit
        return port
