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

from typing import Final, Protocol

PENALTY_MAX: Final = 127


class Deliverer(Protocol):
    """A responder as the rule sees it: its bytes received in total, and two numbers that the rule keeps there."""

    received_bytes: int
    penalty_seen_bytes: int
    penalty_weight: float


class ReceiverPenalty:
    """The penalty of one NIC, computed anew once a period of `period_ns`; always 0 unless `enabled`."""

    def __init__(self, period_ns: int, *, enabled: bool = True) -> None:
        self._period_ns = period_ns
        self._enabled = enabled
        self._due_ns = 0
        self._current = 0
        self._members: list[Deliverer] = []

    def join(self, deliverer: Deliverer) -> None:
        """Count what this QP receives."""
        self._members.append(deliverer)

    def leave(self, deliverer: Deliverer) -> None:
        """The QP is gone; one that never joined may leave too."""
        self._members = [member for member in self._members if member is not deliverer]

    def at(self, now_ns: int) -> int:
        """The penalty for an acknowledgement sent at `now_ns`, 0 to 127."""
        if now_ns >= self._due_ns and self._enabled:
            self._update(now_ns)
        return self._current

    def _update(self, now_ns: int) -> None:
        periods = 1 + (now_ns - self._due_ns) // self._period_ns if self._due_ns else 1
        decay = 0.5 ** min(periods, 60)
        self._due_ns = now_ns + self._period_ns
        total = squares = 0.0
        for member in self._members:
            fresh = member.received_bytes - member.penalty_seen_bytes
            member.penalty_seen_bytes = member.received_bytes
            weight = member.penalty_weight = member.penalty_weight * decay + fresh
            total += weight
            squares += weight * weight
        senders = total * total / squares if squares else 1.0
        self._current = min(PENALTY_MAX, round(128 * (1 - 1 / senders)))
