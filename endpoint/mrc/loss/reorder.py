"""When a packet counts as lost: the reordering rule.

Packets are sprayed over paths of unequal and changing delay, so a hole in a SACK says little by itself. The rule is
by time of sending: **a packet is lost when another that was sent `window_ns` later is known to have arrived**, where

    window_ns = base round trip + jitter of the world                (one bandwidth-delay product, the usual guard)
              + largest less smallest recent round trip over all planes
              + what late arrivals have taught (up to four base round trips and jitters)
              + the patience of this NIC (0 unless a device profile says otherwise)

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

from typing import Final

from endpoint.mrc.loss.loss_detection import LossDetection
from endpoint.mrc.loss.packet_window import PacketWindow
from endpoint.mrc.parameter import Values
from endpoint.nic.config import NEVER

PLANE_RTT_MAX: Final = 32
"""Base round trips (and jitters): what is later than this teaches nothing about its plane."""
NO_SAMPLE: Final = -1
NO_VALUES: Final[Values] = {}


class ReorderRule(LossDetection):
    """The window, and the log of transmissions in order of sending that it is applied to."""

    def __init__(self, base_rtt_ns: int, jitter_ns: int, values: Values = NO_VALUES, *, patience_ns: int = 0) -> None:
        super().__init__(base_rtt_ns, jitter_ns, values)
        self.be_patient(patience_ns)
        self._base_ns = base_rtt_ns + jitter_ns
        self._step_ns = self._base_ns // 2
        self._learned_ns = 0
        self._learned_max_ns = 4 * self._base_ns
        self._spread_ns = 0
        self._largest: list[int] = []
        self._smallest: list[int] = []
        """The two envelopes by plane; NO_SAMPLE where there is none."""

    def overdue(self, flight: PacketWindow, window_bytes: int) -> list[int]:
        """Packets that were sent a window before one that has arrived, oldest transmission first."""
        log, horizon_ns = self.log, self.newest_ns - self.window_ns
        una, known = flight.una, flight.acked | flight.lost
        found: list[int] = []
        while len(log) and log[0][1] <= horizon_ns:
            psn, sent_ns = log.popleft()
            index = psn - una
            if index >= 0 and not known >> index & 1 and flight.sent_ns[psn & flight.mask] == sent_ns:
                known |= 1 << index
                found.append(index)
        return found

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
            self.window_ns = self._base_ns + self.patience_ns + spread_ns + self._learned_ns

    def _learn(self, step_ns: int) -> None:
        self._learned_ns = min(max(0, self._learned_ns + step_ns), self._learned_max_ns)
        self.window_ns = self._base_ns + self.patience_ns + self._spread_ns + self._learned_ns
