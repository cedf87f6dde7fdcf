"""DCQCN's reaction point: a QP's sending rate, cut by congestion notifications, recovered by time and bytes.

After Zhu et al., "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015); `dcqcn_setting` has the
constants, in most settings as shares of the line and base round trips, so that the algorithm behaves alike at every
rate. Nothing happens on a timer: increases that are due are made up for when the rate is asked for.
"""

from endpoint.nic.config import NEVER
from endpoint.roce.dcqcn_setting import DEFAULT, DcqcnSetting

RATE_MIN = 1 / 1000


class Dcqcn:
    """Rates in bit/s, times in ns."""

    def __init__(self, line_bps: int, base_rtt_ns: int, bdp_bytes: int, setting: DcqcnSetting = DEFAULT) -> None:
        self._setting = setting
        self._line = float(line_bps)
        self.rate_bps = self._target = self._line
        self.alpha = 1.0
        constants = setting.at(line_bps, base_rtt_ns, bdp_bytes)
        self._alpha_period_ns = constants.alpha_period_ns
        self._increase_period_ns = constants.increase_period_ns
        self._bytes_period = constants.increase_bytes
        self._additive_bps, self._hyper_bps = constants.additive_bps, constants.hyper_bps
        self._alpha_due_ns = NEVER
        """Alpha is 1 until the first notification, and decays from then on."""
        self._increase_due_ns = 0
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
        gain = self._setting.alpha_gain
        self.alpha = (1 - gain) * self.alpha + gain
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
        """Catch up with the timers: alpha's runs at line rate as well. After long silence everything has recovered."""
        while now_ns >= self._alpha_due_ns and self.alpha > 1e-6:
            self.alpha *= 1 - self._setting.alpha_gain
            self._alpha_due_ns += self._alpha_period_ns
        while now_ns >= self._increase_due_ns and self.limited:
            self._increase_due_ns += self._increase_period_ns
            self._stage_time += 1
            self._increase()

    def _increase(self) -> None:
        setting = self._setting
        fast = setting.fast_recovery
        if self._stage_time > fast and self._stage_bytes > fast:
            self._target += self._hyper_bps
        elif self._stage_time > fast or self._stage_bytes > fast:
            self._target += self._additive_bps
        self._target = min(self._target, self._line)
        self.rate_bps = (self.rate_bps + self._target) / 2
        if self.rate_bps > 0.9999 * self._line:
            self.rate_bps = self._line
