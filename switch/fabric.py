"""Switches, the cables between them and to hosts, in virtual time: the common interface, and the order of events.

The result is the one of taking one event after the other in order of time. Events of one nanosecond happen in
this order:

- at a switch, ports that may send do so, by number; then frames arrive, one after the other, each followed by what
  that frame lets leave at once. Frames of different ports arrive in an order that is drawn from time and port (the
  upper 16 bits of splitmix64 seeded with 512 · t_ns + port, then the port), so that no port always comes first; those
  of one port in the order of sending;
- a host is given its frames by port, then in the order of sending;
- every port with a cable has a rate or a delay, so that what happens at one switch or host changes nothing elsewhere in
  the same nanosecond.

Hosts are outside: they hand frames in and are handed frames, each with its time. `switch.native.fabric` runs ahead of
them for as long as it can; tests compare it with a plain implementation that takes one instant after the other.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from switch.engine import EngineControl
from switch.packet_log import PacketRecord


class End(NamedTuple):
    """One end of a cable: a port of a switch or host. Nodes are numbered from 0."""

    kind: Literal["switch", "host"]
    node: int
    port: int


class HostFrame(NamedTuple):
    """A frame that a host hands to its port at `t_ns`, or one whose last bit reaches the host then."""

    t_ns: int
    host: int
    port: int
    frame: bytes


TimedFrame = HostFrame | tuple[int, int, int, bytes]


@dataclass(frozen=True, slots=True)
class NicPort:
    """The transmit side of a host's port. A port that is down also drops what arrives."""

    up: bool = True
    rate_bps: int = 0  # 0: no limit
    delay_ns: int = 1
    loss: float = 0.0
    loss_seed: int = 0
    overhead_bytes: int = 0  # that surround each frame on the wire


class Fabric(Protocol):
    """Switches, numbered from 0, and the ports of hosts, with cables between them. Wrong calls raise EngineError."""

    def switch(self, number: int) -> EngineControl:
        """The engine of a switch, for control calls at any time that the fabric has reached.

        Its frames come and go by cables only. Fetch it anew after each `run`: what is due has then happened.
        """

    def connect(self, a: End, b: End) -> None:
        """A cable between two ports, of which at least one is a switch's.

        How fast it is in either direction, how long and how lossy, is said by the port that transmits.
        """

    def configure_nic_port(self, host: int, port: int, config: NicPort) -> None:
        """Change a host's port; frames that are on the cable arrive."""

    def send(self, frames: Iterable[TimedFrame]) -> None:
        """Frames that hosts hand to their ports, each host's in order of time.

        They leave one after another at the port's rate. A port that is down loses them. After an error, which names
        the frame, those before it are taken.
        """

    def run(self, host_ns: int | None, limit_ns: int) -> int:
        """Let events before `limit_ns` happen that no host can change any more: all of them, or the first at least.

        No host sends before `host_ns` (None: never) but in answer to a frame it is given. Returns the horizon: every
        frame that reaches a host before it is there to be collected, so hosts may live until then.
        """

    def gather(self, before_ns: int) -> list[int]:
        """Let frames that reach hosts before `before_ns` arrive; returns the hosts for which there are frames to
        collect, in order of their first frames: of its time, then of the host's number."""

    def collect(self, host: int) -> list[HostFrame]:
        """The frames that were gathered for a host, in order of time, then of port and sending."""

    @property
    def reached_ns(self) -> int:
        """Everything at switches before this time has happened."""

    @property
    def next_ns(self) -> int | None:
        """The next event at a switch, or arrival at a host of a frame that was not collected yet."""

    def record_packets(self, start_ns: int, stop_ns: int) -> None:
        """Record the fates of packets from `start_ns` on and before `stop_ns`; records not taken yet are gone."""

    def take_records(self) -> list[PacketRecord]:
        """What was taken down since the last call, not in order of time; complete before `reached_ns`."""

    def close(self) -> None:
        """Give everything back. Every later call raises EngineError."""
