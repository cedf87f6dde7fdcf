"""No congestion control: 1.5 bandwidth-delay products in flight, always, or a QP's
share of them by its hint. The control group of experiments."""

from __future__ import annotations

from endpoint.mrc.congestion.cc_profile import NsccConfig, PathTraits


class FixedWindow:
    def __init__(self, path: PathTraits, config: NsccConfig) -> None:
        self.window_bytes = max(path.mtu_bytes, path.network_bdp_bytes * 3 // 2 // path.sharers)

    def on_ack(self, now_ns: int, acked_bytes: int, rtt_ns: int | None, marked: bool, inflight_bytes: int) -> None:
        pass

    def on_trim(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        pass

    def on_loss(self, now_ns: int, size: int, inflight_bytes: int) -> None:
        pass

    def on_timeout(self, now_ns: int, lost_bytes: int) -> None:
        pass

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        pass

    def on_penalty(self, penalty: int) -> None:
        pass
