"""The packets of one queue pair that are under way, as far as a loss rule looks at them."""

from __future__ import annotations

from endpoint.mrc.paths.ev_set import EvPath


class PacketWindow:
    """PSNs without wrap: `una` is the oldest not acknowledged, `nxt` the next new one; bit i of `acked` and `lost` is
    PSN una + i. The rings `sent_ns`, `sizes`, `tries` and `paths` are indexed by PSN & `mask`."""

    def __init__(self, psn: int, size: int) -> None:
        self.una = self.nxt = psn
        self.acked = 0
        self.lost = 0
        self.mask = size - 1
        self.sent_ns = [0] * size
        self.sizes = [0] * size
        self.tries = [0] * size
        self.paths: list[EvPath | None] = [None] * size
        self.shown = self.missing = 0
        """The packets that the latest SACK says have arrived, and those below them of which it says that they have not,
        as bits from `una`. Packets that a SACK has no room for are in neither."""
        self.in_order = True
        """Whether no packet has been seen to overtake another of its EV."""
