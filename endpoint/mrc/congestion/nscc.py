"""NSCC, the network-signal congestion control of Ultra Ethernet that MRC borrows: a window, four quadrants.

Each acknowledgement falls into a quadrant by its packet's ECN mark and its queueing delay (round trip less the base):

|            | delay < target        | delay >= target            |
|------------|-----------------------|----------------------------|
| not marked | proportional increase | fair increase              |
| marked     | hold                  | multiplicative decrease    |

Beside the quadrants: fast increase while there is hardly any delay; `eta`, a little growth once a base round trip
independent of signals; quick adapt, which cuts the window to what arrived in the last period when a trim, or without
trimming a delay of four targets, shows that the window was far off; a trimmed packet otherwise takes its size off the
window; and the receiver's penalty. `docs/reference/nscc.md` goes through the rules one by one: the reference's, ours,
and why where they differ.
"""

from typing import Any, ClassVar, Final, Self

from mypy_extensions import mypyc_attr

from endpoint.mrc.congestion.cc_profile import NSCC_PARAMETERS, REFERENCE_BDP_BYTES, NsccConfig, PathTraits, make_config
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.parameter import Parameter, Values
from endpoint.nic.config import NEVER

ALPHA: Final = 4.0
"""Proportional increase, in packets times BDP / 150,000 bytes, per window acknowledged at a distance of a base round
trip from the target. (The reference: 4.0·MSS·a·b/target with b = target / 12 µs.)"""
FAST_DELAY_SHARE: Final = 12
"""A delay of less than this part of the base round trip is none (1 µs of 12 µs)."""
DELAY_GAIN: Final = 0.0125
"""Weight of a sample in the average delay."""
UNMARKED_DELAY_SHARE: Final = 4
"""An unmarked delay above the target counts as this part of the base round trip in the average."""
WINDOW_MAX: Final = 1.5
"""Largest window, and the first: a QP starts at line rate. In BDPs."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Nscc(Congestion):
    """Window control of one QP; see the module. All lengths of time are ns, all sizes bytes."""

    parameters: ClassVar[tuple[Parameter, ...]] = NSCC_PARAMETERS

    @classmethod
    def make(cls, path: PathTraits, values: Values, shared: dict[str, Any]) -> Self:
        return cls(path, make_config(values))

    def __init__(self, path: PathTraits, config: NsccConfig) -> None:
        super().__init__(path, {}, {})
        known = config.resolved(path)
        self._trimming, self._losses_shrink = path.trimming, path.losses_shrink
        self._mtu = float(path.mtu_bytes)
        self._network_rtt_ns = known.base_rtt
        self._target_ns = known.target_delay
        self._alpha = ALPHA * self._mtu * path.bdp_bytes(known.base_rtt) / REFERENCE_BDP_BYTES / known.base_rtt
        self._fast_delay_ns = known.base_rtt // FAST_DELAY_SHARE
        self._config = known
        self._adapts = not known.disable_qa
        self._period_ns, self._adjust_bytes = known.adjust_period_threshold, known.adjust_bytes_threshold
        """The configuration's values that every acknowledgement needs."""
        self._base_rtt_ns = path.base_rtt_ns if config.base_rtt is None else config.base_rtt
        self._penalty = 0
        self._increase = 0.0
        self._acked_since_adjust = 0
        self._last_adjust_ns = 0
        self._average_delay = 0.0
        self._last_decrease_ns = -NEVER
        self._fast = False
        self._fast_bytes = 0
        self._achieved = 0
        self._qa_end_ns = 0
        self._qa_trigger = False
        self._ignore_bytes = self._ignored_bytes = 0
        largest = config.max_cwnd
        if largest is None:
            bdp = path.peer_bdp_bytes if config.base_rtt is None else path.bdp_bytes(config.base_rtt)
            largest = int(WINDOW_MAX * bdp)
        self._max = max(float(largest), self._mtu)
        self._window = self._max / path.sharers
        self._clamp()

    # --- signals -----------------------------------------------------------------------------------------------

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self._achieved += acked_bytes
        self._ignored_bytes += acked_bytes
        self._acked_since_adjust += acked_bytes
        if rtt_ns is None:
            delay = self._average_delay  # of a packet that was sent more than once, or of none
        else:
            delay = float(max(0, rtt_ns - self._base_rtt_ns))
            self._average(delay, marked)
        if self._quick_adapt(now_ns, marked, False, delay, inflight_bytes):
            return
        if marked:
            if delay >= self._target_ns:
                self._decrease(now_ns)
        elif delay >= self._target_ns:
            self._increase += self._config.fi * acked_bytes
        else:
            self._grow(acked_bytes, delay)
        self._clamp()
        self._adjust(now_ns)

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        self._ignored_bytes += size
        self._average(float(self._network_rtt_ns), True)  # an estimate of the queue at which switches trim
        self._qa_trigger = True
        if not self._quick_adapt(now_ns, True, True, 0.0, inflight_bytes + size):
            self._window -= size
            self._clamp()

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        if not self._trimming:
            self.on_trim(now_ns, size, inflight_bytes)
        elif self._losses_shrink:  # and neither the average delay nor quick adapt hears of the loss
            self._ignored_bytes += size
            self._window -= size
            self._clamp()

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        self._window -= lost_bytes
        self._clamp()

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        self._last_adjust_ns += late_ns
        self._last_decrease_ns += late_ns
        if self._qa_end_ns:
            self._qa_end_ns += late_ns

    def on_penalty(self, penalty: int) -> None:
        if penalty != self._penalty:
            self._penalty = penalty
            self._clamp()

    # --- rules -------------------------------------------------------------------------------------------------

    def _average(self, delay: float, marked: bool) -> None:
        """Without a mark a delay above the target says little: it may be one path's, or the way back's."""
        if not marked and delay > self._target_ns:
            delay = self._base_rtt_ns / UNMARKED_DELAY_SHARE
        self._average_delay += DELAY_GAIN * (delay - self._average_delay)

    def _quick_adapt(self, now_ns: int, marked: bool, trimmed: bool, delay: float, inflight_bytes: int) -> bool:
        """At the end of a period: cut to what arrived in it, if little did and a trim or a huge delay says so.

        What was in flight then still tells of the old window: its marks and trims are ignored until as much has been
        acknowledged or refused. Whether the signal has been dealt with here.
        """
        config = self._config
        done = False
        if not self._adapts:
            return False
        if marked and self._ignored_bytes < self._ignore_bytes:
            done = True
        elif now_ns > self._qa_end_ns:
            severe = self._qa_trigger or trimmed or delay > config.qa_threshold
            if self._qa_end_ns and severe and self._achieved < int(self._max) >> config.qa_gate:
                self._window = float(self._achieved)
                self._ignore_bytes, self._ignored_bytes = inflight_bytes, 0
                self._qa_trigger = False
                self._clamp()
                done = True
            self._achieved = 0
            self._qa_end_ns = now_ns + self._base_rtt_ns + self._target_ns
        if done:
            self._increase = 0.0
            self._acked_since_adjust = 0
        return done

    def _grow(self, acked_bytes: int, delay: float) -> None:
        if delay < self._fast_delay_ns:
            self._fast_bytes += acked_bytes
            if self._fast or self._fast_bytes > self._window:
                self._fast = True  # until there is a delay or a decrease
                self._window += acked_bytes * self._config.fi_scale
                return
        else:
            self._fast_bytes = 0
        self._fast = False
        self._increase += self._alpha * acked_bytes * (self._target_ns - delay)

    def _decrease(self, now_ns: int) -> None:
        self._fast, self._fast_bytes = False, 0
        average = self._average_delay
        if average > self._target_ns and now_ns - self._last_decrease_ns > self._base_rtt_ns:
            cut = self._config.gamma * (average - self._target_ns) / average
            self._window *= max(1.0 - cut, self._config.max_md_jump)
            self._last_decrease_ns = now_ns

    def _adjust(self, now_ns: int) -> None:
        """Apply what the increases have gathered; and `eta`, once a period."""
        waited_ns = now_ns - self._last_adjust_ns
        period_ns = self._period_ns
        if self._acked_since_adjust <= self._adjust_bytes and waited_ns <= period_ns:
            return
        self._window += self._increase / self._window
        if waited_ns >= period_ns:
            self._window += self._config.eta
            self._last_adjust_ns = now_ns
        self._increase = 0.0
        self._acked_since_adjust = 0
        self._clamp()

    def _clamp(self) -> None:
        self._window = min(max(self._window, self._mtu), self._max)
        cap = self._max * (128 - self._penalty) / 128
        self.window_bytes = int(max(min(self._window, cap), self._mtu))
