"""Priority-based flow control at a NIC (IEEE 802.1Qbb): the pauses of the baseline's data on one port.

A PFC frame (IEEE 802.3, annex 31D) is `destination 01:80:C2:00:00:01 | source | 0x8808 | 0x0101 | class-enable vector |
eight times`; times are quanta of 512 bit times, and 0 ends a pause. Acknowledgements and notifications are of another
priority and are never paused.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from endpoint.nic.config import NEVER
from endpoint.nic.port import Port

GROUP_ADDRESS = bytes.fromhex("0180c2000001")
MAC_CONTROL = 0x8808
OPCODE = 0x0101
QUANTUM_BITS = 512
_FRAME = Struct("!6s6sHHH8H")
_ETHERTYPE = slice(12, 14)


def is_mac_control(frame: bytes | memoryview) -> bool:
    return frame[_ETHERTYPE] == b"\x88\x08"


def pause_times(frame: bytes | memoryview) -> dict[int, int]:
    """The quanta of each priority that a frame is about; none for a frame that is malformed or no PFC."""
    if len(frame) < _FRAME.size:
        return {}
    address, _, ethertype, opcode, vector, *times = _FRAME.unpack_from(frame)
    if address != GROUP_ADDRESS or ethertype != MAC_CONTROL or opcode != OPCODE:
        return {}
    return {priority: quanta for priority, quanta in enumerate(times) if vector >> priority & 1}


class FlowControl:
    """The pauses of one port, whose `paused_ns` says until when the data of the baseline must wait."""

    def __init__(self, port: Port, classes: int) -> None:
        """`classes` are the lossless priorities, bit n for priority n: the baseline's data is of one of these."""
        self._port = port
        self._classes = classes
        self._since_ns = NEVER
        self._until_ns: dict[int, int] = {}
        self.received = self.resumed = self.ignored = self.paused_ns = 0

    def obey(self, frame: bytes | memoryview, now_ns: int) -> None:
        """A MAC control frame has come. Whatever its bytes are, only lossless priorities are paused."""
        times = {p: quanta for p, quanta in pause_times(frame).items() if self._classes >> p & 1}
        if not times:
            self.ignored += 1
            return
        if any(times.values()):
            self.received += 1
        else:
            self.resumed += 1
        self.settle(now_ns)
        for priority, quanta in times.items():
            self._until_ns[priority] = now_ns - (-quanta * QUANTUM_BITS * 1_000_000_000 // self._port.rate_bps)
        self._port.paused_ns = until_ns = max(self._until_ns.values())
        self._since_ns = now_ns if until_ns > now_ns else NEVER

    def settle(self, now_ns: int) -> None:
        """Count the pause up to `now_ns`."""
        until_ns = self._port.paused_ns
        if self._since_ns != NEVER:
            end_ns = min(now_ns, until_ns)
            self.paused_ns += max(0, end_ns - self._since_ns)
            self._since_ns = end_ns if end_ns < until_ns else NEVER

    def counters(self) -> Mapping[str, int]:
        """Totals, as a switch port has them under the same names."""
        return {
            "pause_received": self.received,
            "resume_received": self.resumed,
            "pause_ignored": self.ignored,
            "paused_ns": self.paused_ns,
        }
