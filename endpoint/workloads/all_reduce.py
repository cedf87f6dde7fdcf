"""Ring all-reduce: reduce-scatter, then all-gather; every rank ends with the sum of all contributions."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from endpoint.workloads.collective import IntArray
from endpoint.workloads.ring import RingCollective


class AllReduce(RingCollective):
    """Rank r contributes base · (r + 1) + round, so the sum is known without communication."""

    redop: ClassVar[str] = "sum"

    def reduce_steps(self) -> int:
        return self.count - 1

    def fill(self) -> None:
        np.multiply(self.base, np.int32(self.rank + 1), out=self.work)
        self.work += np.int32(self.round & 0xFFFF)

    def expected(self) -> IntArray:
        ranks = self.count
        return self.base * np.int32(ranks * (ranks + 1) // 2) + np.int32(ranks * (self.round & 0xFFFF))

    def bus_factor(self) -> float:
        return 2 * (self.count - 1) / self.count
