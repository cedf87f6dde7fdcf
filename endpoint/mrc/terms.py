"""The parts of a requester: the terms of its queue pair, and the algorithms that the settings chose."""

from __future__ import annotations

from dataclasses import dataclass

from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.loss.loss_detection import LossDetection
from endpoint.mrc.paths.selection import Selection


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
