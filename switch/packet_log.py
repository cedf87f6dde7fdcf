"""The fate of packets, place by place: the records that engines and fabrics take down in a stretch of time.

A packet's way is a record a place: each port that it left by, and the place where it ended. docs/contracts.md ("Packet
log") says what each field means; running/worlds/simulated.py writes the records as JSON lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

HEAD_BYTES = 160  # of a frame, from its first byte: everything in front of the payload
NO_PORT = 0xFFFF
LAYOUT = Struct("<QQQIIHHHHBBBB4x160s")


class NodeKind(IntEnum):
    """Of the node at which something happened."""

    SWITCH = 0
    HOST = 1


class Fate(IntEnum):
    """How a packet left a place, or ended there."""

    SENT = 0
    LOST = 1
    """Sent, and lost on the cable (seeded loss)."""
    QUEUE_FULL = 2
    PORT_DOWN = 3
    """It came to a port that was down, was meant for such a port, or waited there when the port went down."""
    WIPED = 4
    """It waited in a switch that was stopped or crashed."""
    NO_PROGRAM = 5
    """It came to a switch that was stopped, or had no program."""
    NO_PORT = 6
    """The program sent it to a port that the switch does not have."""
    DROPPED = 7
    """The program dropped it."""
    RECEIVED = 8
    """A host took it, or a port that has PFC its MAC control frame."""


class PacketRecord(NamedTuple):
    """One packet at one place. Times in ns; lengths in bytes of the Ethernet frame (no FCS)."""

    t_ns: int
    """When its first bit left, or when it ended here."""
    arrives_ns: int
    """When its last bit is at the other end of the cable, were it not lost; 0 when it did not leave."""
    queued_ns: int
    """When it joined the queue that it left, or came; of a host's frame, when the host handed it over."""
    node: int
    depth: int
    """Packets that it found in its queue."""
    port: int
    """By which it left, or was to leave; NO_PORT when that was not decided."""
    port_in: int
    """By which it came; NO_PORT when it began here."""
    length: int
    length_in: int
    """As it came to this place: more than `length` when it was trimmed here."""
    kind: NodeKind
    fate: Fate
    priority: int
    head: bytes
    """The first HEAD_BYTES of the frame: as it left, or as it came where it did not leave."""

    @classmethod
    def unpack(cls, data: bytes, offset: int = 0) -> PacketRecord:
        values = LAYOUT.unpack_from(data, offset)
        kind, fate, priority, head_length, head = values[9:]
        return cls._make((*values[:9], NodeKind(kind), Fate(fate), priority, head[:head_length]))


def in_order(records: Iterable[PacketRecord]) -> list[PacketRecord]:
    """By time; at one time switches before hosts, by number; at a host, arrivals before departures, by port.

    Records that are equal in all of this stay in the order in which they were taken down.
    """
    return sorted(records, key=_rank)


def _rank(record: PacketRecord) -> tuple[int, int, int, bool, int]:
    if record.kind is NodeKind.SWITCH:
        return record.t_ns, record.kind, record.node, False, 0
    began = record.port_in == NO_PORT
    return record.t_ns, record.kind, record.node, began, record.port if began else record.port_in


class Recorder:
    """Keeps the records of a stretch of time, from `start_ns` on and before `stop_ns`, until they are taken."""

    def __init__(self, start_ns: int, stop_ns: int) -> None:
        self._start_ns = start_ns
        self._stop_ns = stop_ns
        self._records: list[PacketRecord] = []

    def note(self, record: PacketRecord) -> None:
        if self._start_ns <= record.t_ns < self._stop_ns:
            self._records.append(record._replace(head=record.head[:HEAD_BYTES]))

    def take(self) -> list[PacketRecord]:
        records, self._records = self._records, []
        return records
