"""A permutation: every rank sends to one other and receives from one other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from endpoint.workloads.options import Options, WorkloadError
from endpoint.workloads.stream import StreamOptions, StreamWorkload
from endpoint.workloads.workload import Setup


@dataclass(frozen=True, slots=True)
class PermutationOptions(StreamOptions):
    """Rank i sends to rank i + `shift`, modulo the number of ranks."""

    shift: int = 1

    def check(self, ranks: int) -> None:
        StreamOptions.check(self, ranks)
        if self.shift % ranks == 0:
            raise WorkloadError(f"shift is {self.shift}: with {ranks} ranks each would send to itself")


class Permutation(StreamWorkload):
    OPTIONS: ClassVar[type[Options]] = PermutationOptions
    RANKS_MAX: ClassVar[int] = 16_384  # a rank has two peers, however many there are

    def __init__(self, setup: Setup, options: PermutationOptions) -> None:
        self._shift = options.shift
        super().__init__(setup, options)

    def targets(self, rank: int) -> Sequence[str]:
        ranks = self.setup.ranks
        return [ranks[(rank + self._shift) % len(ranks)]]

    def sources(self, rank: int) -> Iterable[int]:
        return [(rank - self._shift) % len(self.setup.ranks)]
