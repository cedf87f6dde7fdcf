"""When a packet counts as lost: by the order of its EV, and by time across EVs.

Two rules, because packets are sprayed over paths of unequal and changing delay, but each EV is one path:

1. **Packets of one EV cannot overtake each other.** An EV names one path (source routes are fixed), and switches keep a
   class in order. So a packet is lost when a later packet of its EV has arrived before it. The SACK that names the
   later packet must also say that this one is missing: SACKs return by several planes, and an older one may be heard
   after a newer one. Copies are left out, since they travel in a separate class, and small packets prove nothing,
   since a switch that trims may send them whole through the priority queue. If a packet that this rule took for lost
   arrives after all, the network does reorder within paths, and the queue pair does without the rule from then on.
2. **Across EVs, a packet is lost when another that was sent `later_ns` later is known to have arrived**, where

    later_ns = a quarter of a base round trip (`guard`) and the jitter of the world, or, where that is more, the
               longest queue: the slowest plane's round trip less the base round trip, up to four of these
             + largest less smallest recent round trip over all planes
             + what late arrivals have taught (up to four base round trips and jitters)
             + the patience of this NIC (0 unless a device profile says otherwise)

Where the plan gives retransmissions a queue before data's, copies overtake data, and prove nothing by this rule either.

`window_ns`, how long a requester waits in silence before probes ask, has a whole base round trip in place of the guard:
probes of many queue pairs that wait for their own port would take the port from data.

A dead path is found by the second rule: nothing later on its EV arrives. The guard is for queues that fill faster than
round trips are measured. A switch marks from a fifth of a bandwidth-delay product on, and marked EVs rest, so an EV in
rotation is later than another by about that much. Where queues are longer they may also change by as much. RFC 8985
(RACK) begins with a quarter of a round trip as well, and widens it by what arrives late, as here.

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

from typing import ClassVar, Final

from mypy_extensions import mypyc_attr

from endpoint.mrc.loss.loss_detection import LossDetection, PacketWindow
from endpoint.mrc.parameter import Parameter, Values
from endpoint.nic.config import NEVER

PLANE_RTT_MAX: Final = 32
"""Base round trips (and jitters): what is later than this teaches nothing about its plane."""
NO_SAMPLE: Final = -1
GUARD: Final = 0.25
"""Of a base round trip."""
QUEUE_MAX: Final = 4
"""Base round trips (and jitters) to which a long queue widens the guard: behind a port that became slow the
queue is so long that a dead path would be left far too late."""
NO_VALUES: Final[Values] = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class ReorderRule(LossDetection):
    """The window, and the log of transmissions in order of sending that it is applied to."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("guard", float, GUARD, 0.0, 16.0, "base round trips", "how much later the proof of a loss is sent"),
    )

    def __init__(self, base_rtt_ns: int, jitter_ns: int, values: Values = NO_VALUES, *, patience_ns: int = 0) -> None:
        super().__init__(base_rtt_ns, jitter_ns, values)
        self._network_ns, self._base_ns = base_rtt_ns, base_rtt_ns + jitter_ns
        self._least_ns = self._guard_ns = int(float(values.get("guard", GUARD)) * base_rtt_ns) + jitter_ns
        self.later_ns = self._guard_ns
        """How much later a packet must be sent that proves a loss on another EV."""
        self.be_patient(patience_ns)
        self._step_ns = self._base_ns // 2
        self._learned_ns = 0
        self._learned_max_ns = 4 * self._base_ns
        self._spread_ns = 0
        self._largest: list[int] = []
        self._smallest: list[int] = []
        """The two envelopes by plane; NO_SAMPLE where there is none."""

    def be_patient(self, patience_ns: int) -> None:
        """Wait so much longer than the rule must (setting `loss_patience_ns`)."""
        super().be_patient(patience_ns)
        self.later_ns += patience_ns

    def overdue(self, flight: PacketWindow, window_bytes: int) -> list[int]:
        """Packets that a later one of their EV has overtaken, and those sent a window before one that has arrived."""
        log, horizon_ns = self.log, self.newest_ns - self.later_ns
        una, known = flight.una, flight.acked | flight.lost
        overdue: list[int] = []
        if flight.missing and flight.in_order:
            overdue = self._overtaken(flight)
            for index in overdue:
                known |= 1 << index
        while len(log) and log[0][1] <= horizon_ns:
            psn, sent_ns = log.popleft()
            index = psn - una
            if index >= 0 and not known >> index & 1 and flight.sent_ns[psn & flight.mask] == sent_ns:
                known |= 1 << index
                overdue.append(index)
        return overdue

    def _overtaken(self, flight: PacketWindow) -> list[int]:
        """Packets sent once that a later one of their EV has overtaken, as the latest SACK says."""
        una, mask, shown, missing = flight.una, flight.mask, flight.shown, flight.missing
        tries, paths = flight.tries, flight.paths
        overtaken: list[int] = []
        while missing:
            low = missing & -missing
            missing ^= low
            index = low.bit_length() - 1
            slot = una + index & mask
            path = paths[slot]
            if path is not None and not tries[slot]:
                passed = path.passed_psn - una
                if passed > index and shown >> passed & 1:
                    overtaken.append(index)
        return overtaken

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
        guard_ns = max(self._least_ns, min(slowest_ns - self._network_ns, QUEUE_MAX * self._base_ns))
        if spread_ns != self._spread_ns or guard_ns != self._guard_ns:
            self._spread_ns, self._guard_ns = spread_ns, guard_ns
            self._set_windows()

    def _learn(self, step_ns: int) -> None:
        self._learned_ns = min(max(0, self._learned_ns + step_ns), self._learned_max_ns)
        self._set_windows()

    def _set_windows(self) -> None:
        wider_ns = self.patience_ns + self._spread_ns + self._learned_ns
        self.window_ns, self.later_ns = self._base_ns + wider_ns, self._guard_ns + wider_ns
