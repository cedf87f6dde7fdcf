"""Round-trip time, smoothed (RFC 6298's gains), from the send time kept for every PSN and probe.

Send times are whole nanoseconds, so nothing wraps at any round trip; packets that were sent more than once give no
sample unless the answer cannot belong to an earlier copy (Karn's rule).
"""


class RttEstimator:
    """All in ns; `latest_ns` is 0 before the first sample, and the others are guesses from the profile until then."""

    def __init__(self, base_rtt_ns: int) -> None:
        self.smoothed_ns = base_rtt_ns
        self.variation_ns = base_rtt_ns // 2
        self.latest_ns = 0
        self.min_ns = 0

    def update(self, sample_ns: int) -> None:
        """A round trip was measured."""
        if not self.latest_ns:
            self.smoothed_ns, self.variation_ns, self.min_ns = sample_ns, sample_ns // 2, sample_ns
        else:
            error_ns = sample_ns - self.smoothed_ns
            self.smoothed_ns += error_ns >> 3
            self.variation_ns += (abs(error_ns) - self.variation_ns) >> 2
            if sample_ns < self.min_ns:
                self.min_ns = sample_ns
        self.latest_ns = sample_ns
