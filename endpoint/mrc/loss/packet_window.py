"""The packets of one queue pair that are under way, as far as a loss rule looks at them."""

from __future__ import annotations


class PacketWindow:
    """PSNs without wrap: `una` is the oldest not acknowledged, `nxt` the next new one; bit i of `acked` and `lost` is
    PSN una + i. The rings `sent_ns`, `sizes` and `tries` are indexed by PSN & `mask`."""

    def __init__(self, psn: int, size: int) -> None:
        self.una = self.nxt = psn
        self.acked = 0
        self.lost = 0
        self.mask = size - 1
        self.sent_ns = [0] * size
        self.sizes = [0] * size
        self.tries = [0] * size
