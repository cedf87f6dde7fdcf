"""The things that all queue pairs of one MRC NIC share: settings, limits, traffic classes, memory, scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from endpoint.mrc.algorithms import Chosen
from endpoint.mrc.cc_profiles import CcProfiles
from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.hint import QpHints
from endpoint.mrc.loss.loss_detection import LossDetection
from endpoint.mrc.paths.ev_events import EvEventQueue
from endpoint.mrc.paths.ev_profile import EvProfiles
from endpoint.mrc.paths.penalty import ReceiverPenalty
from endpoint.mrc.paths.probe_budget import AskingBudget, ProbeBudget
from endpoint.mrc.paths.selection import Selection
from endpoint.mrc.seams.crediting import Crediting
from endpoint.nic import frame, wire
from endpoint.nic.config import Settings
from endpoint.nic.dialect import Dialect
from endpoint.nic.verbs import NicContext

if TYPE_CHECKING:
    from endpoint.profile import Dscp


@dataclass(frozen=True, slots=True)
class TrafficClasses:
    """The traffic class byte of each kind of packet: DSCP and, for what queues behind data, ECN-capable."""

    data: int
    retransmit: int
    probe: int
    control: int
    copies_overtake: bool
    """Whether retransmissions wait in a separate queue, before that of data."""

    @classmethod
    def of(cls, dscp: Dscp, retransmit_priority: int) -> TrafficClasses:
        return cls(
            data=dscp.trimmable << 2 | frame.ECN_CAPABLE,
            retransmit=dscp.trimmable_retransmit << 2 | frame.ECN_CAPABLE,
            probe=dscp.no_trim << 2 | frame.ECN_CAPABLE,
            control=dscp.control << 2,
            copies_overtake=retransmit_priority > 0,
        )


@dataclass(frozen=True, slots=True)
class Stamps:
    """How data packets are stamped with the time: ticks of `tick_ns`, 0 for no stamps, and their TSETH.tsr."""

    tick_ns: int = 0
    resolution: int = 0

    @classmethod
    def lasting(cls, timeout_ns: int) -> Stamps:
        """Ticks of which 16 bits outlast `timeout_ns`: of 128 ns, the standard's, or else of a multiple, our own."""
        ticks = max(1, -(-timeout_ns // (wire.TIMESTAMP_TICK_NS << 16)))
        return cls(wire.TIMESTAMP_TICK_NS * ticks, int(ticks > 1))


@dataclass(frozen=True, slots=True)
class Context(NicContext):
    """The context of an MRC NIC."""

    host: str
    settings: Settings
    classes: TrafficClasses
    stamps: Stamps
    path: PathTraits
    chosen: Chosen
    cc_profiles: CcProfiles
    penalty: ReceiverPenalty
    probe_budget: ProbeBudget
    reverse_budget: ProbeBudget
    asking: AskingBudget
    crediting: Crediting
    dialect: Dialect
    solicited_bit: int
    """In byte 1 of the BTH."""
    hints: QpHints
    ev_profiles: EvProfiles
    ev_watchers: list[EvEventQueue]
    """The queues that events of EVs go to."""


@dataclass(frozen=True, slots=True)
class QpTerms:
    """`psn` is the first to send, `window` how many PSNs may be under way (MPR), `granted` how many of them the peer
    grants at first if the MPR is dynamic, `max_write_imm` how many writes with immediate the peer accepts at a time.
    With `confirm_writes` every write waits for its transport acknowledgement before it completes. `base_rtt_ns` is the
    peer's. `retries` are the timeout exponent, the linear and the exponential retries. Sizes are payload bytes."""

    dest_qpn: int
    psn: int
    pmtu: int
    window: int
    base_rtt_ns: int
    max_write_imm: int
    confirm_writes: bool
    retries: tuple[int, int, int]
    granted: int | None = None


@dataclass(frozen=True, slots=True)
class QpAlgorithms:
    """The choice of paths, the window of packets under way, and the rule by which a packet counts as lost."""

    selection: Selection
    congestion: Congestion
    loss: LossDetection
