"""Ring collectives: each rank writes to the next one only; step s + 1 sends on what step s brought.

An inbox has a place for each of `count` chunks and uses them in turn, through steps and rounds alike. A rank sends a
segment once it has taken what the step before brought, and begins a round once it has taken all of the one before. So
all that the left neighbour sends in step s has come round the ring from this rank, which sent a part of it no more than
count - 1 steps earlier and had taken step s - count before that: the place is free.
"""

import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common.seeds import Purpose, derive
from endpoint.workloads.collective import ITEM_BYTES, Collective, CollectiveOptions, IntArray
from endpoint.workloads.link import PeerLink
from endpoint.workloads.options import Options, WorkloadError, require
from endpoint.workloads.workload import Setup


class RingCollective(Collective):
    """In step s rank r sends chunk r - s and receives chunk r - 1 - s: sums first if `reduce_steps`, then copies."""

    def reduce_steps(self) -> int:
        raise NotImplementedError

    def inboxes(self) -> dict[str, int]:
        left, right = self._neighbours()
        return {right: 0, left: self.count * self.chunk_bytes}

    def outbox_bytes(self, peer: str) -> int:
        return self.count * self.chunk_bytes if peer == self._neighbours()[1] else 0

    def inbox_place(self, step: int) -> int:
        return (self.round * self.steps() + step) % self.count * self.chunk_bytes

    def handling_ns(self, segment: int) -> int:
        options = self.options
        if not options.copy_gbps or segment >= self.segments:
            return options.slice_ns
        return options.slice_ns + round(self._items(segment) * ITEM_BYTES * 8 / options.copy_gbps)

    def steps(self) -> int:
        return self.reduce_steps() + self.count - 1

    def first_chunk(self) -> int:
        """The chunk that this rank sends in step 0."""
        return self.rank

    def send_first(self) -> int:
        right = self.links[self._neighbours()[1]]
        for segment in range(self.segments):
            self.send_segment(right, self.first_chunk(), 0, segment)
        return self.steps() * self.segments

    def take(self, link: PeerLink, step: int, segment: int) -> None:
        chunk = (self.first_chunk() - 1 - step) % self.count
        if not self.counted:
            self._merge(link, chunk, step, segment)
        if step + 1 < self.steps():
            self.send_segment(self.links[self._neighbours()[1]], chunk, step + 1, segment)

    def _merge(self, link: PeerLink, chunk: int, step: int, segment: int) -> None:
        """Add what the left neighbour wrote to this rank's segment, or copy it."""
        mine: IntArray = self.work_segment(chunk, segment)
        if step < self.reduce_steps():
            mine += self.inbox_segment(link, step, segment)
        else:
            # Still the source of a write that may be retransmitted; but this value came round the ring, so the
            # neighbour has had that write whole, and a retransmission is a duplicate that it does not place.
            mine[:] = self.inbox_segment(link, step, segment)

    def _neighbours(self) -> tuple[str, str]:
        ranks, rank = self.setup.ranks, self.rank
        return ranks[rank - 1], ranks[(rank + 1) % len(ranks)]


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


@dataclass(frozen=True, slots=True)
class TrainingOptions(CollectiveOptions):
    """`steps` takes the place of `rounds`. Computing is a timer, not burnt CPU: up to `compute_jitter` longer."""

    rounds: int = 0
    steps: int = 20
    compute_ns: int = 20_000_000
    compute_jitter: float = 0.0

    def check(self, ranks: int) -> None:
        CollectiveOptions.check(self, ranks)
        require("steps", self.steps, 0, 1 << 31)
        require("compute_ns", self.compute_ns, 0, 1 << 50)
        require("compute_jitter", self.compute_jitter, 0.0, 100.0)
        if self.rounds:
            raise WorkloadError("rounds is for collectives; a training loop counts steps")


class Training(AllReduce):
    OPTIONS: ClassVar[type[Options]] = TrainingOptions

    def __init__(self, setup: Setup, options: TrainingOptions) -> None:
        self._training = options
        self._random = random.Random(derive(options.seed, Purpose.COMPUTE, setup.rank))
        super().__init__(setup, options)

    def rounds(self) -> int:
        return self._training.steps

    def compute_ns(self) -> int:
        options = self._training
        return int(options.compute_ns * (1 + options.compute_jitter * self._random.random()))
