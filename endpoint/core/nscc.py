"""NSCC, the network-signal congestion control of Ultra Ethernet that MRC borrows: a window, four quadrants.

Each acknowledgement falls into a quadrant by its packet's ECN mark and its queueing delay (round trip less the base):

|            | delay < target        | delay >= target            |
|------------|-----------------------|----------------------------|
| not marked | proportional increase | fair increase              |
| marked     | hold                  | multiplicative decrease    |

The published constants are for 100 Gb/s and 12 µs (150,000 bytes). Here every gain is a share of the profile's own
bandwidth-delay product and every time a share of its base round trip, so that a window trace, divided by BDP and base
round trip, is the same at any rate: with the reference's numbers the gains below are the published ones
(alpha 4.0 * MSS * 0.75, fair increase 5 * MSS, eta 0.15 * MSS at MSS 4096).

Beside the quadrants: fast increase while there is no delay at all; quick adapt, which cuts the window to what
arrived in the last period when a trim, or a delay of four targets, shows that the window was far off; a trimmed
packet otherwise takes its size off the window; and the receiver's penalty, which caps the window at
`(1 - penalty / 128)` of its largest.
"""

from __future__ import annotations

REFERENCE_BDP = 150_000.0
MSS = 4096.0

TARGET = 0.75
"""Target queueing delay where switches trim, in base round trips; 1.0 where they do not."""
TARGET_UNTRIMMED = 1.0
ALPHA = 4.0 * MSS * TARGET / REFERENCE_BDP
"""Proportional increase per window acknowledged, in BDPs, at zero delay."""
FAIR = 5.0 * MSS / REFERENCE_BDP
"""Fair increase per window acknowledged, in BDPs."""
ETA = 0.15 * MSS / REFERENCE_BDP
"""Added at each adjustment, in BDPs."""
FAST = 0.25
"""Fast increase: bytes of window per byte acknowledged."""
FAST_DELAY = 1 / 600
"""What counts as no delay, in base round trips (20 ns of 12 µs)."""
GAMMA = 0.8
DECREASE_MAX = 0.5
"""The multiplicative decrease leaves at least this share."""
DELAY_GAIN = 0.0125
ADJUST_BYTES = 8 * MSS / REFERENCE_BDP
"""Increases are applied after this many bytes, in BDPs, or a base round trip."""
WINDOW_MAX = 1.5
"""Largest window, and the first: a QP starts at line rate. In BDPs."""
QA_GATE = 8
"""Quick adapt only when less than an eighth of the largest window arrived in the period."""
QA_DELAY = 4.0
"""Delay that triggers quick adapt, in targets."""


class Nscc:
    """Window control of one QP; see the module. All lengths of time are ns, all sizes bytes."""

    __slots__ = (
        "_achieved",
        "_acked_since_adjust",
        "_adjust_bytes",
        "_adjust_due_ns",
        "_average_delay",
        "_base_rtt_ns",
        "_bdp",
        "_decrease_due_ns",
        "_fast",
        "_fast_bytes",
        "_ignore_bytes",
        "_increase",
        "_max",
        "_mtu",
        "_penalty",
        "_qa_delay",
        "_qa_end_ns",
        "_qa_pending",
        "_target",
        "_trimming",
        "_window",
        "quadrant",
        "window_bytes",
    )

    def __init__(self, *, base_rtt_ns: int, bdp_bytes: int, mtu_bytes: int, jitter_ns: int, trimming: bool) -> None:
        self._base_rtt_ns = base_rtt_ns
        self._bdp = float(bdp_bytes)
        self._mtu = float(mtu_bytes)
        self._trimming = trimming
        self._target = (TARGET if trimming else TARGET_UNTRIMMED) * base_rtt_ns
        # Where processes are scheduled late, that lateness must not look like a queue that is far too long.
        self._qa_delay = QA_DELAY * self._target + jitter_ns
        self._max = max(WINDOW_MAX * bdp_bytes, self._mtu)
        self._adjust_bytes = ADJUST_BYTES * bdp_bytes
        self._window = self._max
        self._penalty = 0
        self._increase = 0.0
        self._acked_since_adjust = 0
        self._adjust_due_ns = 0
        self._average_delay = 0.0
        self._decrease_due_ns = 0
        self._fast = False
        self._fast_bytes = 0
        self._achieved = 0
        self._qa_end_ns = -1
        self._qa_pending = False
        self._ignore_bytes = 0
        self.quadrant = ""
        """The rule that the last acknowledgement fell under, for tests and teaching."""
        self.window_bytes = int(self._max)

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self._achieved += acked_bytes
        if self._ignore_bytes > 0:
            # What was in flight when quick adapt cut the window still tells of the old one.
            self._ignore_bytes -= acked_bytes
            self.quadrant = "ignored"
            return
        if rtt_ns is None:
            self.quadrant = "no_sample"
            return
        delay = float(max(0, rtt_ns - self._base_rtt_ns))
        self._average_delay += DELAY_GAIN * (delay - self._average_delay)
        if self._quick_adapt(now_ns, delay > self._qa_delay, inflight_bytes):
            self.quadrant = "quick_adapt"
            self._clamp()
            return
        if marked:
            self._stop_fast()
            if delay >= self._target:
                self._decrease(now_ns)
            else:
                self.quadrant = "hold"
        elif delay >= self._target:
            self._stop_fast()
            self._increase += FAIR * self._bdp * acked_bytes
            self.quadrant = "fair_increase"
        else:
            self._grow(acked_bytes, delay)
        self._acked_since_adjust += acked_bytes
        if self._acked_since_adjust >= self._adjust_bytes or now_ns >= self._adjust_due_ns:
            self._window += self._increase / self._window + ETA * self._bdp
            self._increase = 0.0
            self._acked_since_adjust = 0
            self._adjust_due_ns = now_ns + self._base_rtt_ns
        self._clamp()

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        if self._ignore_bytes > 0:
            self._ignore_bytes -= size
            return
        self._qa_pending = True
        if not self._quick_adapt(now_ns, True, inflight_bytes):
            self._window -= size
        self._clamp()

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        if not self._trimming:
            self.on_trim(now_ns, size, inflight_bytes)

    def on_timeout(self, now_ns: int) -> None:
        self._window /= 2
        self._increase = 0.0
        self._clamp()

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        self._adjust_due_ns += late_ns
        self._decrease_due_ns += late_ns
        if self._qa_end_ns >= 0:
            self._qa_end_ns += late_ns

    def on_penalty(self, penalty: int) -> None:
        if penalty != self._penalty:
            self._penalty = penalty
            self._clamp()

    def _grow(self, acked_bytes: int, delay: float) -> None:
        if delay <= FAST_DELAY * self._base_rtt_ns:
            self._fast_bytes += acked_bytes
            if self._fast or self._fast_bytes > self._window:
                self._fast = True  # until there is a delay or a mark
                self._window += FAST * acked_bytes
                self.quadrant = "fast_increase"
                return
        else:
            self._stop_fast()
        self._increase += ALPHA * self._bdp * acked_bytes * (1.0 - delay / self._target)
        self.quadrant = "proportional_increase"

    def _stop_fast(self) -> None:
        self._fast = False
        self._fast_bytes = 0

    def _decrease(self, now_ns: int) -> None:
        average = self._average_delay
        self.quadrant = "multiplicative_decrease"
        if average > self._target and now_ns >= self._decrease_due_ns:
            self._window *= max(1.0 - GAMMA * (average - self._target) / average, DECREASE_MAX)
            self._increase = 0.0
            self._decrease_due_ns = now_ns + self._base_rtt_ns

    def _quick_adapt(self, now_ns: int, severe: bool, inflight_bytes: int) -> bool:
        """At the end of a period: cut to what arrived in it, if little did and a trim or a huge delay says so."""
        if now_ns < self._qa_end_ns:
            return False
        adapted = False
        if self._qa_end_ns >= 0 and (severe or self._qa_pending) and self._achieved < self._max / QA_GATE:
            self._window = max(float(self._achieved), self._mtu)
            self._ignore_bytes = inflight_bytes
            self._increase = 0.0
            adapted = True
        self._qa_pending = False
        self._achieved = 0
        self._qa_end_ns = now_ns + self._base_rtt_ns + int(self._target)
        return adapted

    def _clamp(self) -> None:
        self._window = min(max(self._window, self._mtu), self._max)
        cap = self._max * (128 - self._penalty) / 128
        self.window_bytes = int(max(min(self._window, cap), self._mtu))
