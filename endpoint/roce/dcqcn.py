"""DCQCN's reaction point: a QP's sending rate, cut by congestion notifications, recovered by time and bytes.

After Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015). The published constants are
for 40 Gb/s and timers of about 50 µs, the round trip of a loaded network there; here that is one base round trip, and
rates are shares of the line, so that the algorithm behaves alike at every rate. (Seen from an idle fabric's 12 µs it
would be four times slower, and not have settled by the end of an experiment of some hundred round trips.) Nothing
happens on a timer: what time would have done is caught up with when the rate is asked for.
"""

from __future__ import annotations

ALPHA_GAIN = 1 / 256
REFERENCE_RTT_US = 50
ALPHA_PERIOD = 55 / REFERENCE_RTT_US
"""Without a notification for this long alpha decays, in base round trips."""
INCREASE_PERIOD = 55 / REFERENCE_RTT_US
INCREASE_BYTES = 40.0
"""The byte counter's period, in bandwidth-delay products (10 MB of 250,000)."""
FAST_RECOVERY = 5
"""Increases that only halve the distance to the target."""
ADDITIVE = 1 / 250
"""Additive increase of the target, in lines: four times the published 40 Mb/s of 40 Gb/s, with which a flow once cut
takes a thousand round trips to recover, longer than an experiment; much more of it and many flows overrun the queue."""
HYPER = 10 * ADDITIVE
RATE_MIN = 1 / 1000
CNP_PERIOD = 50 / REFERENCE_RTT_US
"""Least time between two notifications of one QP, in base round trips (the notification point's part)."""


class Dcqcn:
    """Rates in bit/s, times in ns."""

    __slots__ = (
        "_alpha_due_ns",
        "_alpha_period_ns",
        "_bytes",
        "_bytes_period",
        "_increase_due_ns",
        "_increase_period_ns",
        "_line",
        "_stage_bytes",
        "_stage_time",
        "_target",
        "alpha",
        "rate_bps",
    )

    def __init__(self, line_bps: int, base_rtt_ns: int, bdp_bytes: int) -> None:
        self._line = float(line_bps)
        self.rate_bps = self._target = self._line
        self.alpha = 1.0
        self._alpha_period_ns = max(1, int(ALPHA_PERIOD * base_rtt_ns))
        self._increase_period_ns = max(1, int(INCREASE_PERIOD * base_rtt_ns))
        self._bytes_period = INCREASE_BYTES * bdp_bytes
        self._alpha_due_ns = self._increase_due_ns = 0
        self._bytes = 0
        self._stage_time = self._stage_bytes = 0

    @property
    def limited(self) -> bool:
        """Below line rate."""
        return self.rate_bps < self._line

    def on_cnp(self, now_ns: int) -> None:
        """A notification came: cut the rate, and start recovering from there."""
        self.advance(now_ns)
        self._target = self.rate_bps
        self.rate_bps = max(self.rate_bps * (1 - self.alpha / 2), RATE_MIN * self._line)
        self.alpha = (1 - ALPHA_GAIN) * self.alpha + ALPHA_GAIN
        self._alpha_due_ns = now_ns + self._alpha_period_ns
        self._increase_due_ns = now_ns + self._increase_period_ns
        self._bytes = 0
        self._stage_time = self._stage_bytes = 0

    def on_sent(self, size: int, now_ns: int) -> None:
        """A frame of `size` bytes went out: the byte counter's part of the recovery."""
        if not self.limited:
            return
        self._bytes += size
        if self._bytes >= self._bytes_period:
            self._bytes = 0
            self._stage_bytes += 1
            self._increase()
        self.advance(now_ns)

    def advance(self, now_ns: int) -> None:
        """Catch up with the timers. After long silence everything has recovered."""
        if not self.limited:
            return
        while now_ns >= self._alpha_due_ns and self.alpha > 1e-6:
            self.alpha *= 1 - ALPHA_GAIN
            self._alpha_due_ns += self._alpha_period_ns
        while now_ns >= self._increase_due_ns and self.limited:
            self._increase_due_ns += self._increase_period_ns
            self._stage_time += 1
            self._increase()

    def _increase(self) -> None:
        if self._stage_time > FAST_RECOVERY and self._stage_bytes > FAST_RECOVERY:
            self._target += HYPER * self._line
        elif self._stage_time > FAST_RECOVERY or self._stage_bytes > FAST_RECOVERY:
            self._target += ADDITIVE * self._line
        self._target = min(self._target, self._line)
        self.rate_bps = (self.rate_bps + self._target) / 2
        if self.rate_bps > 0.9999 * self._line:
            self.rate_bps = self._line
