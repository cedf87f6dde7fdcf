"""REPS, recycled entropies: a path that carried a packet well carries the next one; after a loss, only such paths.

Source: T. Bonato and others, "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure
Mitigation" (arXiv:2407.21625), and the behaviour of `UecMpReps` in uet-htsim (github.com/ultraethernet/uet-htsim); the
tests compare decisions with recorded ones.
"""

from random import Random
from typing import ClassVar, Final

from algorithms.entropies import EntropySelection
from endpoint.mrc import EvPath, EvSet, Parameter, Values
from endpoint.nic import NEVER

EXPLORE: Final = 16
"""Random paths right after freezing."""


class RepsSelection(EntropySelection):
    """A ring of the latest good paths. A path is fresh until it is taken; without fresh ones a random path is tried.

    A loss freezes: for `freeze_ns` the ring goes round and round, fresh or not. (The reference's 10 ms are for its
    timeouts; MRC proves losses within round trips, but a failed path stays failed as long.)
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("ring", int, 8, 1, 1024, "paths", "how many good paths are remembered"),
        Parameter("freeze_ns", int, 10_000_000, 0, 10**12, "ns", "how long after a loss no other path is tried"),
        Parameter(
            "freeze_rtts", float, 0.0, 0.0, 10**6, "round trips", "the same in shortest round trips; 0: freeze_ns"
        ),
    )

    def __init__(self, evs: EvSet, rng: Random, values: Values) -> None:
        super().__init__(evs, rng, values)
        length = int(values["ring"])
        self._freeze_ns, self._freeze_rtts = int(values["freeze_ns"]), float(values["freeze_rtts"])
        self._rtt_ns = NEVER
        self._ring = [0] * length
        self._is_fresh = [False] * length
        self._head = self._count = self._fresh_count = self._frozen_at = 0
        self._explore = 0
        self._thaw_ns = -1
        """When the ring thaws; -1: it is not frozen."""

    def choose(self) -> int:
        if self._explore:
            self._explore -= 1
            return self.draw()
        if self._thaw_ns >= 0:
            return self._next_frozen() if self._count else self.draw()
        return self._take((self._head - self._fresh_count) % len(self._ring)) if self._fresh_count else self.draw()

    def _next_frozen(self) -> int:
        number = self._take(self._frozen_at)
        self._frozen_at = (self._frozen_at + 1) % self._count
        return number

    def _take(self, at: int) -> int:
        if self._is_fresh[at]:
            self._is_fresh[at] = False
            self._fresh_count -= 1
        return self._ring[at]

    def _heard(self, now_ns: int, *, lost: bool) -> None:
        """Freeze upon a loss, and thaw when the time is over."""
        if lost and self._thaw_ns < 0 and not self._explore:
            known = self._freeze_rtts and self._rtt_ns < NEVER
            self._thaw_ns = now_ns + (int(self._freeze_rtts * self._rtt_ns) if known else self._freeze_ns)
        if 0 <= self._thaw_ns < now_ns:
            self._thaw_ns = -1
            self._is_fresh = [False] * len(self._ring)
            self._head = self._count = self._fresh_count = self._frozen_at = 0
            self._explore = EXPLORE

    def on_packet_acked(self, now_ns: int, path: EvPath, size: int, rtt_ns: int | None, marked: bool) -> None:
        if rtt_ns is not None:
            self._rtt_ns = min(self._rtt_ns, rtt_ns)
        self._heard(now_ns, lost=False)
        number = self.numbers.get(path.ev)
        if marked or number is None:
            return
        at, length = self._head, len(self._ring)
        if not self._is_fresh[at]:
            self._is_fresh[at] = True
            self._fresh_count += 1
        self._ring[at] = number
        self._head = (at + 1) % length
        self._count = min(self._count + 1, length)

    def on_packet_trimmed(self, now_ns: int, path: EvPath, size: int, last_hop: bool) -> None:
        self._heard(now_ns, lost=False)

    def on_packet_lost(self, now_ns: int, path: EvPath, size: int, proved: bool) -> None:
        self._heard(now_ns, lost=True)
