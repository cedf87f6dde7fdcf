"""The receiver's penalty: how a responder tells its senders that they share one NIC.

With ECN off on the last hop a sender in an incast sees nothing but trims. The receiver sees the incast itself, and
answers by a rule: let w be the payload bytes that each QP delivered lately (the bytes of the last period plus half of
the sum before it; a period is a base round trip), and

    N = (Σ w)² / Σ w²

the number of equal senders that would load the NIC as the real ones do: 1 for a lone sender or a giant beside dwarfs,
7 for seven equals. Every SACK then carries

    penalty = 128 * (1 - 1 / N), at most 127

so a sender's largest window becomes 1/N of its own largest: all of them together hold what one alone may hold. 64
halves the window and 127 leaves about a packet, as the field is described.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

PENALTY_MAX = 127


class Deliverer(Protocol):
    """What the rule needs of a responder: bytes received in total, and two numbers of its own to keep there."""

    received_bytes: int
    penalty_seen_bytes: int
    penalty_weight: float


class ReceiverPenalty:
    """One NIC's, computed anew once a period of `period_ns`; `current` is 0 to 127."""

    __slots__ = ("_period_ns", "current", "due_ns")

    def __init__(self, period_ns: int) -> None:
        self._period_ns = period_ns
        self.due_ns = 0
        self.current = 0

    def update(self, responders: Iterable[Deliverer], now_ns: int) -> int:
        """Compute the penalty anew at `now_ns`; `due_ns` is when to do so again."""
        periods = 1 + (now_ns - self.due_ns) // self._period_ns if self.due_ns else 1
        decay = 0.5 ** min(periods, 60)
        self.due_ns = now_ns + self._period_ns
        total = squares = 0.0
        for responder in responders:
            fresh = responder.received_bytes - responder.penalty_seen_bytes
            responder.penalty_seen_bytes = responder.received_bytes
            weight = responder.penalty_weight = responder.penalty_weight * decay + fresh
            total += weight
            squares += weight * weight
        senders = total * total / squares if squares else 1.0
        self.current = min(PENALTY_MAX, round(128 * (1 - 1 / senders)))
        return self.current
