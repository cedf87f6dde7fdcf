"""A Swift-like window: the round trip alone decides, against a target delay.

Source: G. Kumar and others, "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
SIGCOMM 2020. Left out: the host's own delay, topology and flow scaling of the target, and windows below one packet.
"""

from typing import Any, ClassVar

from endpoint.mrc import Congestion, Parameter, PathTraits, Values
from endpoint.nic import NEVER


class Swift(Congestion):
    """Below the target the window grows by `increase` packets per round trip. Above, it shrinks at most once per round
    trip, by `beta` times the excess, and never by more than `cut_max`."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("target", float, 1.5, 1.0, 100.0, "base round trips", "the round trip that is aimed at"),
        Parameter("increase", float, 1.0, 0.01, 64.0, "packets per round trip", "additive increase"),
        Parameter("beta", float, 0.8, 0.0, 1.0, "", "multiplicative decrease per excess"),
        Parameter("cut_max", float, 0.5, 0.0, 1.0, "", "the largest decrease at a time"),
        Parameter("losses_cut", bool, True, what="false: not where switches trim, as with NSCC; a path has failed"),
    )

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self._target_ns = float(values["target"]) * path.base_rtt_ns + path.jitter_ns
        self._increase = float(values["increase"]) * path.mtu_bytes
        self._beta = float(values["beta"])
        self._cut_max = float(values["cut_max"])
        self._losses_cut = bool(values["losses_cut"]) or not path.trimming
        self._mtu = path.mtu_bytes
        self._largest = max(path.peer_bdp_bytes * 3 // 2, path.mtu_bytes)
        self._window = float(max(self._largest // path.sharers, path.mtu_bytes))
        self._rtt_ns = path.base_rtt_ns
        self._cut_ns = -NEVER
        self._clamp()

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        if rtt_ns is not None:
            self._rtt_ns = rtt_ns
        if self._rtt_ns < self._target_ns:
            self._window += self._increase * acked_bytes / self._window
            self._clamp()
        elif rtt_ns is not None:
            self._cut(now_ns, self._beta * (rtt_ns - self._target_ns) / rtt_ns)

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        self._cut(now_ns, self._cut_max)

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        if self._losses_cut:
            self._cut(now_ns, self._cut_max)

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        self._window = float(self._mtu)
        self._clamp()

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        self._cut_ns += late_ns

    def _cut(self, now_ns: int, share: float) -> None:
        if now_ns - self._cut_ns >= self._rtt_ns:
            self._cut_ns = now_ns
            self._window *= 1 - min(share, self._cut_max)
            self._clamp()

    def _clamp(self) -> None:
        self._window = min(max(self._window, float(self._mtu)), float(self._largest))
        self.window_bytes = int(self._window)
