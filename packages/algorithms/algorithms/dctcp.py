"""A DCTCP-like window: the share of marked bytes decides how much a marked window is cut.

Source: RFC 8257. Unlike TCP, this window counts the mark of the packet that caused a SACK for all that the SACK
acknowledges, starts at line rate as MRC's queue pairs do, and takes a trimmed packet for a marked one.
"""

from typing import Any, ClassVar

from endpoint.mrc import Congestion, Parameter, PathTraits, Values


class Dctcp(Congestion):
    """Once per window: alpha moves towards the share of marked bytes, and a window with marks shrinks by half of alpha.
    Otherwise the window grows by a packet. All losses of a window together halve it (RFC 8257, section 3.5), and after
    a timeout it grows by what is acknowledged up to half of what was in flight (RFC 5681, section 3.1)."""

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("gain", float, 0.0625, 0.0001, 1.0, "", "weight of the latest window in alpha (RFC 8257's g)"),
        Parameter("losses_cut", bool, True, what="false: not where switches trim, as with NSCC; a path has failed"),
    )

    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self._gain = float(values["gain"])
        self._losses_cut = bool(values["losses_cut"]) or not path.trimming
        self._mtu = path.mtu_bytes
        self._largest = max(path.peer_bdp_bytes * 3 // 2, path.mtu_bytes)
        self._window = float(max(self._largest // path.sharers, path.mtu_bytes))
        self._acked = self._marked = 0
        self._recovering_bytes = 0
        self._slow_start_bytes = 0.0
        self.alpha = 1.0
        self._clamp()

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        self._count(acked_bytes, marked)

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        self._count(size, True)

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        if not self._losses_cut:
            return
        if self._recovering_bytes > 0:
            self._recovering_bytes -= size
            return
        self._recovering_bytes = inflight_bytes
        self._window /= 2
        self._slow_start_bytes = 0.0
        self._clamp()

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        self._recovering_bytes = 0
        self._slow_start_bytes = max(lost_bytes / 2, 2.0 * self._mtu)
        self._window = float(self._mtu)
        self._clamp()

    def _count(self, size: int, marked: bool) -> None:
        self._acked += size
        if marked:
            self._marked += size
        slow_start = self._window < self._slow_start_bytes
        recovering = self._recovering_bytes > 0
        if recovering:
            self._recovering_bytes -= size
        elif slow_start and not marked:
            self._window = min(self._window + size, self._slow_start_bytes)
            self._clamp()
        if self._acked < self._window:
            return
        self.alpha += self._gain * (self._marked / self._acked - self.alpha)
        if self._marked and not recovering:
            self._window *= 1 - self.alpha / 2
            self._slow_start_bytes = 0.0
        elif not slow_start and not recovering:
            self._window += self._mtu
        self._acked = self._marked = 0
        self._clamp()

    def _clamp(self) -> None:
        self._window = min(max(self._window, float(self._mtu)), float(self._largest))
        self.window_bytes = int(self._window)
