"""The engine of a P4 program: the seam between control (P4Runtime, control socket) and data plane.

Two engines implement `Engine`: `switch.reference` (Python, traced) and `switch.native` (C emitted for the
program). Neither reads a clock or opens a socket: `now_ns` and packets are arguments. Names are the fully
qualified names of the BMv2 JSON (which P4Info repeats without a leading dot). Entries are those of `p4c.entries`.

The P4Runtime server validates before it calls, so an engine raises `EngineError` only for what the server cannot know
(a full table, a duplicate), and then leaves its state unchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

from p4c.entries import ActionCall, Entry, EntryAction
from p4c.model import Program, limits
from switch.packet_log import PacketRecord

CPU_PORT_DEFAULT = 510  # simple_switch_grpc users pass --cpu-port; 510 keeps clear of drop port 511
DROP_PORT = 511
PRIORITIES = 8  # queue 7 is served first
PFC_QUANTA_MAX = (1 << 16) - 1
FRAME_BYTES_MAX = limits.FRAME_BYTES_MAX
PASSES_MAX = 64  # descendants of one packet in a line: bounds what a program that loops can cost
COPIES_MAX = 1 << 12  # descendants of one packet altogether: a program that copies its copies must end
WAITING_PACKETS_MAX = 1 << 16  # in one device, however deep its queues are
DIGESTS_WAITING_MAX = 1 << 12  # in one device, until they are taken; more are dropped
GROUP_WEIGHT_MAX = 1 << 16  # what the weights of one group's members may add up to


class EngineError(RuntimeError):
    """A request that the data plane cannot carry out; nothing was changed."""


class NoRoomError(EngineError):
    """The same for want of memory, or of room in a table."""


# --- externs and packet replication -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CounterValue:
    """One cell of a counter; a program may count only one of the two, both are kept."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """Two-rate three-colour marker (RFC 2698). Rates in units/s, bursts in units; a unit is the meter's own."""

    cir: int
    cburst: int
    pir: int
    pburst: int


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of a multicast or cloned packet (P4Runtime, section 9.5)."""

    port: int
    instance: int  # egress_rid


# --- ports and queues (the traffic manager) -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueConfig:
    """One of a port's eight strict-priority queues. A zero limit or rate is no limit."""

    depth_packets: int = 0
    depth_bytes: int = 0
    rate_pps: int = 0

    @property
    def limits(self) -> tuple[int, int, int]:
        """All fields in order: `dataclasses.astuple` copies each of them, and a large fabric has a million."""
        return self.depth_packets, self.depth_bytes, self.rate_pps


@dataclass(frozen=True, slots=True)
class PortConfig:
    """One port's transmit side. A packet occupies it for (frame bytes + overhead_bytes) / rate_bps, or 1 / rate_pps."""

    up: bool = True
    rate_bps: int = 0  # bits/s of Ethernet frame bytes (no FCS, preamble, gap); 0: as fast as it goes
    rate_pps: int = 0
    delay_ns: int = 0  # propagation: added after the last bit is sent
    loss: float = 0.0  # share of packets lost silently after transmission, 0..1
    loss_seed: int = 0
    overhead_bytes: int = 0  # that surround each frame on the wire and occupy the port, but are not counted
    pfc_classes: int = (
        0  # lossless priorities (IEEE 802.1Qbb): bit n is priority n, as in a class-enable vector; 0: none
    )
    pfc_xoff_bytes: int = 0  # of a lossless priority that came by this port and wait: more of them pause the sender
    pfc_xon_bytes: int = 0  # no more than these let the sender resume
    pfc_headroom_bytes: int = 0  # beyond xoff; a frame that exceeds both is dropped (drop_headroom)
    pfc_quanta: int = PFC_QUANTA_MAX  # of a pause, in 512 bit times; repeated at half of that while the pause lasts
    pfc_watchdog_ns: int = 0  # a priority that is paused for longer is counted (pause_watchdog); 0: never
    pfc_mac: int = 0  # source address of the frames
    queues: tuple[QueueConfig, ...] = field(default_factory=lambda: (QueueConfig(),) * PRIORITIES)


PORT_DEFAULTS: dict[str, Any] = {spec.name: spec.default for spec in fields(PortConfig) if spec.name != "queues"}
"""Everything of a port but its queues. The kind of the default says what a field is: a flag (bool), a share of 0 to 1
(float), or a number that is not negative (int)."""
PORT_SHARES = tuple(name for name, default in PORT_DEFAULTS.items() if isinstance(default, float))


class PortCounters(NamedTuple):
    """Since the start of the device. Drops say where a packet died outside the P4 program."""

    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0
    drop_queue_full: int = 0  # the priority queue was at its depth
    drop_port_down: int = 0  # enqueued to, or waiting at, a port that is down; or received on one
    drop_loss: int = 0  # seeded loss
    drop_wiped: int = 0  # in a queue when the device was stopped or crashed
    drop_no_program: int = 0  # received while no pipeline was loaded, or while stopped
    drop_no_port: int = 0  # received here and sent by the program to a port that the device does not have
    drop_passes: int = 0  # received here; later beyond `PASSES_MAX` or `COPIES_MAX` (each time), or grown too long
    drop_socket: int = 0  # lost by the kernel before we read it (PACKET_STATISTICS): outside the modelled fabric
    queue_packets: int = 0  # now waiting
    queue_bytes: int = 0
    queue_packets_max: int = 0
    drop_headroom: int = 0  # received here, in a lossless priority, when xoff and headroom were used up
    pause_sent: int = 0  # PFC frames that pause at least one priority, repetitions included; not among tx_packets
    resume_sent: int = 0  # PFC frames that pause none
    pause_received: int = 0  # PFC frames that pause at least one lossless priority; not among rx_packets
    resume_received: int = 0
    pause_ignored: int = 0  # MAC control frames that are malformed, no PFC, or about no lossless priority
    paused_ns: int = 0  # for which lossless priorities could not send here, each counted
    pause_watchdog: int = 0  # pauses that lasted longer than `pfc_watchdog_ns`, each once
    held_bytes_max: int = 0  # the most of one lossless priority that came by this port and waited


ALWAYS_SAMPLED = frozenset({
    "port", "rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "queue_packets", "queue_bytes",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Transmitted:
    """A frame leaving the switch: the last bit has left (and propagated) at `t_ns`."""

    t_ns: int
    port: int
    frame: bytes


class Digest(NamedTuple):
    """A packet's digest: the values that the listed fields had at the end of its ingress."""

    number: int  # of its learn list in the program, from 1
    data: bytes  # `LearnList.widths` says what is where


class EngineControl(Protocol):
    """What controls one switch's data plane. Without a program it drops everything (drop_no_program).

    Anything named here that the program does not have (a table, an action, a cell of an array, a handle, a group) and
    any value wider than its field is an EngineError.
    """

    # program
    def load(self, program: Program) -> None:
        """Start anew with this program; its own entries get the handles from 0 on, in order. Ports stay as they are."""

    def reset(self) -> None:
        """Forget program, entries, externs and queued packets, as a power cycle does. Port configuration stays."""

    def set_running(self, running: bool, now_ns: int) -> None:
        """Stopped: packets that wait (drop_wiped) or arrive (drop_no_program) are dropped; tables and externs stay."""

    # tables
    def insert_entry(self, table: str, entry: Entry) -> int:
        """Return a handle that stays valid until the entry is deleted. NoRoomError; EngineError for a duplicate."""

    def modify_entry(self, table: str, handle: int, action: EntryAction) -> None:
        """Change what an entry does; its key, handle and direct counter stay."""

    def delete_entry(self, table: str, handle: int) -> None:
        """EngineError: no such handle."""

    def set_default_action(self, table: str, action: ActionCall | None) -> None:
        """None restores the program's own default."""

    # action profiles and selectors
    def set_member(self, profile: str, member_id: int, action: ActionCall) -> None:
        """Make or change an action profile's member."""

    def delete_member(self, profile: str, member_id: int) -> None:
        """Entries and groups that still refer to the member then run no action."""

    def set_group(self, profile: str, group_id: int, members: Sequence[tuple[int, int]]) -> None:
        """Make or change a selector's group. Members as (member id, weight), weights from 1."""

    def delete_group(self, profile: str, group_id: int) -> None:
        """Entries that still refer to the group then run no action."""

    # externs
    def read_counter(self, name: str, index: int) -> CounterValue:
        """One cell of an indirect counter."""

    def read_packet_counts(self, name: str, first: int, count: int) -> list[int]:
        """The packets of `count` cells of an indirect counter, from cell `first`."""

    def write_counter(self, name: str, index: int, value: CounterValue) -> None:
        """Set one cell of an indirect counter."""

    def read_direct_counter(self, table: str, handle: int) -> CounterValue:
        """The counter of one entry. EngineError when the table has none."""

    def write_direct_counter(self, table: str, handle: int, value: CounterValue) -> None:
        """Set the counter of one entry."""

    def set_meter(self, name: str, index: int, config: MeterConfig | None) -> None:
        """None: everything is green."""

    def set_direct_meter(self, table: str, handle: int, config: MeterConfig | None) -> None:
        """As `set_meter`, for the meter of one entry."""

    def read_register(self, name: str, index: int) -> int:
        """One cell, as a non-negative number."""

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set one cell."""

    def enable_digest(self, name: str, enabled: bool) -> None:
        """Whether packets give digests of this name. None do in a program that was just loaded."""

    def read_last_hit_ns(self, table: str, handle: int) -> int:
        """When a packet last found an entry; 0 if none has. EngineError for a table without `support_timeout`."""

    # parser
    def set_value_set(self, name: str, members: Sequence[tuple[int, ...]]) -> None:
        """All members of a value set, each with a value per part of the key."""

    # replication
    def set_multicast_group(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Make or change a group, numbered from 1."""

    def delete_multicast_group(self, group_id: int) -> None:
        """Packets to the group are dropped from then on."""

    def set_clone_session(
        self, session_id: int, replicas: Sequence[Replica], truncate_bytes: int, class_of_service: int = 0
    ) -> None:
        """Make or change a session, numbered from 0 to 32767. `truncate_bytes` 0: whole copies. `class_of_service`: the
        priority of the clones; 0: what the program preserves, else 0."""

    def delete_clone_session(self, session_id: int) -> None:
        """Clones to the session are not made from then on."""

    # ports
    def configure_port(self, port: int, config: PortConfig, now_ns: int) -> None:
        """Make a port, or change it from `now_ns` on. Waiting packets stay unless it goes down."""

    def port_counters(self, port: int, now_ns: int) -> PortCounters:
        """Totals and queue lengths as of `now_ns`."""

    def sample(self, ports: Sequence[int], now_ns: int) -> list[dict[str, int]]:
        """Of each of these ports the number (`port`) and the counters as of `now_ns`, by name, as in a `sample` line of
        a journal: drops and pauses of 0 are left out."""

    def next_event_ns(self) -> int | None:
        """When something next happens; None when nothing waits."""


class Engine(EngineControl, Protocol):
    """One switch's data plane by itself: its caller has the clock and the cables."""

    # time and packets
    def receive(self, port: int, frame: bytes, now_ns: int) -> None:
        """A frame arrives. Raises EngineError for a port that was never configured, or above FRAME_BYTES_MAX."""

    def advance(self, now_ns: int) -> list[Transmitted]:
        """Everything that has left by `now_ns`, in order of time. The CPU port is one more port."""

    def take_digests(self) -> list[Digest]:
        """The digests since the last call, in their order."""

    # packet log
    def record_packets(self, start_ns: int, stop_ns: int) -> None:
        """Record the fates of packets from `start_ns` on and before `stop_ns`; records not taken yet are gone."""

    def take_records(self) -> list[PacketRecord]:
        """What was taken down since the last call, as it happened. The node's number is 0."""
