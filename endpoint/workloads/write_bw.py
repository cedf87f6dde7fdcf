"""perftest's write bandwidth: rank 0 writes to rank 1 as fast as it can, or both to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from endpoint.workloads.options import Options
from endpoint.workloads.stream import StreamOptions, StreamWorkload
from endpoint.workloads.workload import Setup


@dataclass(frozen=True, slots=True)
class WriteBwOptions(StreamOptions):
    bidirectional: bool = False


class WriteBw(StreamWorkload):
    OPTIONS: ClassVar[type[Options]] = WriteBwOptions
    RANKS_MAX: ClassVar[int] = 2

    def __init__(self, setup: Setup, options: WriteBwOptions) -> None:
        self._bidirectional = options.bidirectional
        super().__init__(setup, options)

    def targets(self, rank: int) -> Sequence[str]:
        return [self.setup.ranks[1 - rank]] if rank == 0 or self._bidirectional else []
