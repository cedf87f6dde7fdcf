"""Ring all-gather: every rank ends with the chunks of all ranks."""

from __future__ import annotations

import numpy as np

from endpoint.workloads.collective import IntArray
from endpoint.workloads.ring import RingCollective


class AllGather(RingCollective):
    """Chunk r, of rank r, is base + round; old contents are wiped first, so that no stale chunk passes."""

    def reduce_steps(self) -> int:
        return 0

    def fill(self) -> None:
        self.work.fill(0)
        mine = slice(self.rank * self.chunk_items, (self.rank + 1) * self.chunk_items)
        self.work[mine] = self.expected()[mine]

    def expected(self) -> IntArray:
        return self.base + np.int32(self.round & 0xFFFF)

    def bus_factor(self) -> float:
        return (self.count - 1) / self.count
