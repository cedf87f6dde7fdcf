"""No congestion control: 1.5 bandwidth-delay products in flight, always. The control group of experiments."""

from __future__ import annotations


class FixedWindow:
    __slots__ = ("window_bytes",)

    def __init__(self, *, base_rtt_ns: int, bdp_bytes: int, mtu_bytes: int, jitter_ns: int, trimming: bool) -> None:
        self.window_bytes = max(mtu_bytes, bdp_bytes * 3 // 2)

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        pass

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        pass

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        pass

    def on_timeout(self, now_ns: int) -> None:
        pass

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        pass

    def on_penalty(self, penalty: int) -> None:
        pass
