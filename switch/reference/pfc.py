"""Priority-based flow control (IEEE 802.1Qbb) of one port: pausing the peer, and being paused.

A frame of a lossless priority is charged to the port by which it came, from when it is queued until it begins to leave.
Above xoff the port pauses its peer, at xon it lets the peer go on. Frames are those of IEEE 802.3, clause 31 and annex
31D: EtherType 0x8808, opcode 0x0101, class-enable vector, eight times in quanta of 512 bit times.
"""

from dataclasses import dataclass, field
from struct import Struct

from switch.engine import PRIORITIES, PortConfig

GROUP_ADDRESS = bytes.fromhex("0180c2000001")
MAC_CONTROL = 0x8808
OPCODE_PFC = 0x0101
FRAME_BYTES = 60  # the least that Ethernet carries, without FCS
_HEAD = Struct("!6s6sHHH8H")
_SECOND_NS = 1_000_000_000


def pfc_frame(source: int, classes: int, quanta: dict[int, int]) -> bytes:
    """A frame that is about the priorities of `classes` and pauses those that have `quanta`."""
    times = [quanta.get(priority, 0) for priority in range(PRIORITIES)]
    address = source.to_bytes(6, "big")
    return _HEAD.pack(GROUP_ADDRESS, address, MAC_CONTROL, OPCODE_PFC, classes, *times).ljust(FRAME_BYTES, b"\0")


def is_mac_control(frame: bytes) -> bool:
    return frame[12:14] == MAC_CONTROL.to_bytes(2, "big")


def pfc_times(frame: bytes) -> dict[int, int]:
    """The quanta of each priority that the frame is about; none for a frame that is malformed or no PFC."""
    if len(frame) < _HEAD.size:
        return {}
    address, _, ethertype, opcode, classes, *times = _HEAD.unpack_from(frame)
    if (address, ethertype, opcode) != (GROUP_ADDRESS, MAC_CONTROL, OPCODE_PFC):
        return {}
    return {priority: times[priority] for priority in range(PRIORITIES) if classes >> priority & 1}


@dataclass(slots=True)
class Pause:
    """What a peer has asked for in one priority."""

    since_ns: int | None = None  # from when it is not counted yet; None: not paused
    until_ns: int = 0  # when its quanta are over
    began_ns: int = 0  # of this pause, however often it was repeated
    rate_ns: int = 0  # when the queue's own rate lets the next packet go
    watched: bool = False  # the watchdog has counted it


@dataclass(slots=True)
class PortPfc:
    """`due_ns` is when the port sends its next frame; None: there is nothing to say."""

    held: list[int] = field(default_factory=lambda: [0] * PRIORITIES)
    want: int = 0  # priorities that the peer should hold back
    told: int = 0  # those of which the peer knows
    due_ns: int | None = None
    sent_ns: int = 0
    pauses: list[Pause] = field(default_factory=lambda: [Pause() for _ in range(PRIORITIES)])

    # --- pausing the peer ---

    def plan(self, config: PortConfig, now_ns: int) -> None:
        """Set when the port next has something to say."""
        if not config.up or not config.pfc_classes:
            self.due_ns = None
        elif self.want != self.told:
            self.due_ns = now_ns if self.due_ns is None else min(self.due_ns, now_ns)
        elif self.want:
            self.due_ns = self.sent_ns + max(1, quanta_ns(config, config.pfc_quanta) // 2)
        else:
            self.due_ns = None

    def charge(self, config: PortConfig, priority: int, size: int, now_ns: int) -> None:
        self.held[priority] += size
        if self.held[priority] > config.pfc_xoff_bytes and not self.want >> priority & 1:
            self.want |= 1 << priority
            self.plan(config, now_ns)

    def release(self, config: PortConfig, priority: int, size: int, now_ns: int) -> None:
        self.held[priority] -= size
        if self.held[priority] <= config.pfc_xon_bytes and self.want >> priority & 1:
            self.want &= ~(1 << priority)
            self.plan(config, now_ns)

    def frame(self, config: PortConfig, now_ns: int) -> bytes:
        """The frame that is due."""
        times = {priority: config.pfc_quanta for priority in range(PRIORITIES) if self.want >> priority & 1}
        frame = pfc_frame(config.pfc_mac, self.want | self.told, times)
        self.told, self.sent_ns = self.want, now_ns
        self.plan(config, now_ns)
        return frame

    def configured(self, config: PortConfig, now_ns: int) -> None:
        """Follow a changed configuration."""
        for priority in range(PRIORITIES):
            bit, held = 1 << priority, self.held[priority]
            if not config.pfc_classes & bit or held <= config.pfc_xon_bytes:
                self.want &= ~bit
            elif held > config.pfc_xoff_bytes:
                self.want |= bit
        self.told = self.told & config.pfc_classes if config.up else 0
        self.plan(config, now_ns)

    def forget(self) -> None:
        """As after a power cycle, of a port with empty queues."""
        self.held = [0] * PRIORITIES
        self.want = self.told = 0
        self.due_ns = None


def quanta_ns(config: PortConfig, quanta: int) -> int:
    """How long so many quanta last at this port."""
    return -(-quanta * 512 * _SECOND_NS // config.rate_bps) if config.rate_bps else 0
