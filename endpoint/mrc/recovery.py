"""When a packet counts as lost: the reordering rule.

Packets are sprayed over paths of unequal and changing delay, so a hole in a SACK says little by itself. The rule is
by time of sending: **a packet is lost when another that was sent `window_ns` later is known to have arrived**, where

    window_ns = base round trip + jitter of the world                (one bandwidth-delay product, the usual guard)
              + largest less smallest recent round trip over all planes
              + what late arrivals have taught (up to four base round trips and jitters)

A packet that waits in a long queue is overtaken by a later one that waits in a short queue, by the difference of their
round trips. That difference is the one of two envelopes of each plane's round trips: the largest rises at once and
falls by a quarter of the way with each sample, the smallest does the opposite. Smoothed round trips would lag behind
when many senders begin at once and queues fill within one round trip.

Each packet taken for lost that arrives after all sets its plane's round trip and adds half a base round trip and
jitter to the last term; each loss that stays a loss takes a sixteenth off. (A late original is known by its duplicate:
the SACK for a duplicate names its PSN and the EV it came by.) Only losses that this rule found teach: a packet that
the retransmission timer took for lost may have arrived in time, and its acknowledgement met a port that was down.

The evidence is an acknowledged packet or an answered probe, never the silence of a clock: when nothing arrives,
probes ask, and only the retransmission timer gives up without evidence.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from endpoint.nic.config import NEVER

PLANE_RTT_MAX: Final = 32
"""Base round trips (and jitters): what is later than this teaches nothing about its plane."""
NO_SAMPLE: Final = -1


class ReorderRule:
    """The window, and the log of transmissions in order of sending that it is applied to."""

    def __init__(self, base_rtt_ns: int, jitter_ns: int) -> None:
        self._base_ns = base_rtt_ns + jitter_ns
        self._step_ns = self._base_ns // 2
        self._learned_ns = 0
        self._learned_max_ns = 4 * self._base_ns
        self._spread_ns = 0
        self._largest: list[int] = []
        self._smallest: list[int] = []
        """The two envelopes by plane; NO_SAMPLE where there is none."""
        self.window_ns = self._base_ns
        self.slowest_ns = 0
        """Largest recent round trip of the slowest plane; 0 before the first sample."""
        self.longest_ns = 0
        """The longest round trip to expect, of any plane: its largest recent one, and as much more as the smallest is
        below that. 0 before the first sample."""
        self.log: deque[tuple[int, int]] = deque()
        """(PSN, time sent) of every transmission, oldest first; stale entries go when they come to the front."""
        self.newest_ns = -1
        """When the latest packet or probe that is known to have arrived was sent."""

    def rtt_sample(self, plane: int, rtt_ns: int) -> None:
        """A round trip over `plane`: moves the plane's envelopes."""
        self._make_room(plane)
        largest, smallest = self._largest[plane], self._smallest[plane]
        if largest == NO_SAMPLE:
            largest = smallest = rtt_ns
        self._largest[plane] = rtt_ns if rtt_ns >= largest else largest - (largest - rtt_ns >> 2)
        self._smallest[plane] = rtt_ns if rtt_ns <= smallest else smallest + (rtt_ns - smallest >> 2)
        self._measure_spread()

    def late_rtt(self, plane: int, rtt_ns: int) -> None:
        """A packet taken for lost has just arrived over `plane`, `rtt_ns` after it was sent."""
        self._make_room(plane)
        self._largest[plane] = max(min(rtt_ns, PLANE_RTT_MAX * self._base_ns), self._largest[plane])
        if self._smallest[plane] == NO_SAMPLE:
            self._smallest[plane] = self._largest[plane]
        self._measure_spread()

    def late_arrival(self) -> None:
        """A packet taken for lost has arrived some time ago."""
        self._learn(self._step_ns)

    def true_loss(self) -> None:
        """A packet taken for lost was lost: its copy has been acknowledged."""
        if self._learned_ns:
            self._learn(-(self._learned_ns // 16) or -1)

    def none_sent_after(self, latest_ns: int) -> None:
        """The flight's clock was set back to `latest_ns`: what was sent later counts as sent then."""
        moved = [(psn, min(sent_ns, latest_ns)) for psn, sent_ns in self.log]
        self.log.clear()
        self.log.extend(moved)
        self.newest_ns = min(self.newest_ns, latest_ns)

    def forget_plane(self, plane: int) -> None:
        """A lost plane's delay no longer widens the reorder window."""
        self._make_room(plane)
        self._largest[plane] = self._smallest[plane] = NO_SAMPLE
        self._measure_spread()

    def _make_room(self, plane: int) -> None:
        while len(self._largest) <= plane:
            self._largest.append(NO_SAMPLE)
            self._smallest.append(NO_SAMPLE)

    def _measure_spread(self) -> None:
        slowest_ns = longest_ns = 0
        quickest_ns = NEVER
        for plane in range(len(self._largest)):
            largest_ns, smallest_ns = self._largest[plane], self._smallest[plane]
            if largest_ns == NO_SAMPLE:
                continue
            slowest_ns = max(slowest_ns, largest_ns)
            quickest_ns = min(quickest_ns, smallest_ns)
            longest_ns = max(longest_ns, 2 * largest_ns - smallest_ns)
        self.slowest_ns, self.longest_ns = slowest_ns, longest_ns
        spread_ns = max(0, slowest_ns - quickest_ns)
        if spread_ns != self._spread_ns:
            self._spread_ns = spread_ns
            self.window_ns = self._base_ns + spread_ns + self._learned_ns

    def _learn(self, step_ns: int) -> None:
        self._learned_ns = min(max(0, self._learned_ns + step_ns), self._learned_max_ns)
        self.window_ns = self._base_ns + self._spread_ns + self._learned_ns
