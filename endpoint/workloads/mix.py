"""A mix of message sizes from each rank to every other: plain writes, with immediates among them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from common.seeds import Purpose, derive
from endpoint.workloads.options import Options, WorkloadError, require
from endpoint.workloads.stream import StreamOptions, StreamWorkload
from endpoint.workloads.workload import Setup

_CYCLE = 1021  # messages before a queue pair's order of sizes repeats


@dataclass(frozen=True, slots=True)
class MixOptions(StreamOptions):
    """`sizes` are pairs of bytes and weight; `size` is ignored. Every `immediate_every`-th write has an immediate."""

    sizes: Sequence[Any] = ((64, 5), (4096, 3), (65_536, 2))
    immediate_every: int = 4

    def check(self, ranks: int) -> None:
        StreamOptions.check(self, ranks)
        require("immediate_every", self.immediate_every, 1, 1 << 20)
        if not self.sizes:
            raise WorkloadError("sizes is empty; give pairs of bytes and weight, such as [[64, 5], [4096, 3]]")
        for pair in self.sizes:
            if not (isinstance(pair, (list, tuple)) and len(pair) == 2 and all(type(one) is int for one in pair)):
                raise WorkloadError(f"sizes holds {pair!r}; each is a pair of integers, bytes and weight")
            require("a size", pair[0], 1, 1 << 30)
            require("a weight", pair[1], 1, 1 << 20)


class Mix(StreamWorkload):
    OPTIONS: ClassVar[type[Options]] = MixOptions

    def __init__(self, setup: Setup, options: MixOptions) -> None:
        self.immediate_every = options.immediate_every
        sizes, weights = zip(*options.sizes, strict=True)
        self._cycle: list[int] = random.Random(derive(options.seed, Purpose.MIX)).choices(sizes, weights, k=_CYCLE)
        super().__init__(setup, options)

    def targets(self, rank: int) -> Sequence[str]:
        return [host for other, host in enumerate(self.setup.ranks) if other != rank]

    def size(self, sender: int, qp: int, number: int) -> int:
        return self._cycle[(number + 97 * sender + 13 * qp) % _CYCLE]

    @staticmethod
    def size_max(options: StreamOptions) -> int:
        assert isinstance(options, MixOptions)
        return max(int(size) for size, _weight in options.sizes)
