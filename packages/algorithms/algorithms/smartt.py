"""SMaRTT: four cases of mark and delay, a fast increase without delay, and a cut to what arrived after a trim.

Source: T. Bonato and others, "SMaRTT: Sender-based Marked Rapidly-adapting Trimmed & Timed Transport"
(arXiv:2404.01630), and the behaviour of `EqdsSrc::updateCwndOnAck_SmaRTT` in its authors' simulator (github.com/spcl/
HTSIM, htsim/sim/eqds.cpp); a test compares windows with recorded ones. NSCC of Ultra Ethernet came from it.
"""

from typing import Any, ClassVar

from endpoint.mrc import Congestion, Parameter, PathTraits, Values

NO_DELAY_SHARE = 12
"""A delay of less than this part of the base round trip is none (1 µs of 12 µs)."""


class Smartt(Congestion):
    """|            | round trip < target                 | round trip >= target                           |
    |------------|-------------------------------------|------------------------------------------------|
    | not marked | multiplicative and fair increase    | fair increase                                  |
    | marked     | fair decrease                       | multiplicative and fair decrease               |
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("target", float, 1.5, 1.0, 100.0, "base round trips", "the round trip that is aimed at"),
        Parameter(
            "mi", float, 2.0, 0.0, 64.0, "packets per window", "multiplicative increase, times what is left of delay"
        ),
        Parameter("fi", float, 0.25, 0.0, 64.0, "packets per window", "fair increase"),
        Parameter("md", float, 1.0, 0.0, 64.0, "", "multiplicative decrease per excess delay, of acknowledged bytes"),
        Parameter("fd", float, 0.8, 0.0, 1.0, "", "fair decrease, of acknowledged bytes of the largest window"),
        Parameter(
            "fast", float, 4.0, 0.0, 64.0, "packets", "fast increase per acknowledgement, after a window without delay"
        ),
    )

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self._base_ns = self._rtt_ns = path.base_rtt_ns
        self._target_ns = int(float(values["target"]) * path.base_rtt_ns) + path.jitter_ns
        self._mi, self._fi = float(values["mi"]), float(values["fi"])
        self._md, self._fd = float(values["md"]), float(values["fd"])
        self._mtu, self._trimming = path.mtu_bytes, path.trimming
        self._fast_bytes = int(float(values["fast"]) * self._mtu)
        self._largest = max(path.peer_bdp_bytes * 3 // 2, self._mtu)
        self.window_bytes = self._goal = max(self._largest // path.sharers, self._mtu)
        self._without_delay = 0
        self._arrived = 0
        """Bytes of this period of quick adapt, which ends at `_end_ns`; 0: none has begun."""
        self._end_ns = 0
        self._adapts = False
        self._ignore = self._ignored = 0

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        if rtt_ns is not None:
            self._rtt_ns = rtt_ns
        self._ignored += acked_bytes
        self._arrived += acked_bytes
        if self._ignored >= self._ignore:
            self._quick_adapt(now_ns, inflight_bytes)
        if self._ignored < self._ignore or not acked_bytes:
            return
        if not marked and self._rtt_ns - self._base_ns < self._base_ns // NO_DELAY_SHARE:
            self._without_delay += acked_bytes
            if self._without_delay > self._goal:
                self._set(self.window_bytes + self._fast_bytes)
                return
        else:
            self._goal, self._without_delay = self.window_bytes, 0
        self._take_case(acked_bytes, marked)

    def _take_case(self, acked_bytes: int, marked: bool) -> None:
        window, rtt_ns = self.window_bytes, self._rtt_ns
        late_ns = rtt_ns - self._target_ns
        if marked:
            if late_ns >= 0:
                window -= min(acked_bytes, int(self._md * acked_bytes * late_ns / rtt_ns))
            window = int(window - window * self._fd * acked_bytes / self._largest)
        else:
            if late_ns < 0:
                window += min(acked_bytes, int(self._mi * self._mtu * -late_ns * acked_bytes / window / rtt_ns))
            window = int(window + self._fi * acked_bytes * self._mtu / window)
        self._set(window)

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        self._ignored += size
        if self._ignored >= self._ignore:
            self._set(self.window_bytes - size)
            self._adapts = True
            self._quick_adapt(now_ns, inflight_bytes + size)

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        if not self._trimming:  # otherwise a path has failed, which is no congestion
            self.on_trim(now_ns, size, inflight_bytes)

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        self._set(self._mtu)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        if self._end_ns:
            self._end_ns += late_ns

    def _quick_adapt(self, now_ns: int, inflight_bytes: int) -> None:
        """Once a target round trip: where packets were trimmed, the window is what arrived meanwhile, and signals of
        the packets under way are ignored, since these tell of the old window."""
        if now_ns < self._end_ns:
            return
        before_ns, arrived = self._end_ns, self._arrived
        self._end_ns, self._arrived = now_ns + self._target_ns, 0
        if self._adapts and before_ns:
            self._set(int(arrived * (self._target_ns / (now_ns - before_ns + self._target_ns))))
            self._ignore, self._ignored = inflight_bytes, 0
            self._adapts = False

    def _set(self, window: int) -> None:
        self.window_bytes = min(max(window, self._mtu), self._largest)
