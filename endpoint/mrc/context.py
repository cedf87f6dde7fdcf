"""The things that all queue pairs of one MRC NIC share: settings, limits, traffic classes, memory, scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from endpoint.mrc.algorithms import Chosen
from endpoint.mrc.cc_profiles import CcProfiles
from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.hint import QpHints
from endpoint.mrc.mismatch import MismatchLog
from endpoint.mrc.paths.ev_events import EvEventQueue
from endpoint.mrc.paths.ev_profile import EvProfiles
from endpoint.mrc.paths.penalty import ReceiverPenalty
from endpoint.mrc.paths.probe_budget import ProbeBudget
from endpoint.mrc.port_sacks import PortSacks
from endpoint.mrc.seams.crediting import Crediting
from endpoint.nic import frame, wire
from endpoint.nic.config import Limits, Settings
from endpoint.nic.dialect import Dialect
from endpoint.nic.events import EventLog
from endpoint.nic.memory import MemoryTable
from endpoint.nic.port import PortSet
from endpoint.nic.scheduler import Scheduler

if TYPE_CHECKING:
    from endpoint.profile import Dscp


@dataclass(frozen=True, slots=True)
class TrafficClasses:
    """The traffic class byte of each kind of packet: DSCP and, for what queues behind data, ECN-capable."""

    data: int
    retransmit: int
    probe: int
    control: int

    @classmethod
    def of(cls, dscp: Dscp) -> TrafficClasses:
        return cls(
            data=dscp.trimmable << 2 | frame.ECN_CAPABLE,
            retransmit=dscp.trimmable_retransmit << 2 | frame.ECN_CAPABLE,
            probe=dscp.no_trim << 2 | frame.ECN_CAPABLE,
            control=dscp.control << 2,
        )


@dataclass(frozen=True, slots=True)
class Stamps:
    """How data packets are stamped with the time: ticks of `tick_ns`, 0 for no stamps, and their TSETH.tsr."""

    tick_ns: int = 0
    resolution: int = 0

    @classmethod
    def lasting(cls, timeout_ns: int, dialect: Dialect) -> Stamps:
        """Sixteen bits of ticks outlast `timeout_ns`; 128 ns is the standard's tick, and longer ones the dialect's: our
        own, or 1 µs, which may wrap within the timeout."""
        ticks = max(1, -(-timeout_ns // (wire.TIMESTAMP_TICK_NS << 16)))
        longer_ns = wire.TIMESTAMP_TICK_NS * ticks if dialect.tsr_1 == "own" else 1000
        return cls(wire.TIMESTAMP_TICK_NS, 0) if ticks == 1 else cls(longer_ns, 1)


@dataclass(frozen=True, slots=True)
class Context:
    """Handed to every QP of the NIC, and by a QP to its halves."""

    host: str
    settings: Settings
    limits: Limits
    rng: Random
    ports: PortSet
    memory: MemoryTable
    scheduler: Scheduler
    log: EventLog
    classes: TrafficClasses
    stamps: Stamps
    path: PathTraits
    chosen: Chosen
    cc_profiles: CcProfiles
    penalty: ReceiverPenalty
    probe_budget: ProbeBudget
    crediting: Crediting
    mismatches: MismatchLog
    statement: str
    """What connecting peers are told of our dialect."""
    solicited_bit: int
    """In byte 1 of the BTH."""
    port_sacks: PortSacks | None
    """In a dialect whose SACKs say which ports are up; None: endpoint operations do."""
    hints: QpHints
    ev_profiles: EvProfiles
    ev_watchers: list[EvEventQueue]
    """The queues that events of EVs go to."""
