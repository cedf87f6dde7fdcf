"""All-to-all: every rank sends a different chunk to each other rank."""

from __future__ import annotations

import numpy as np

from endpoint.workloads.collective import Collective, IntArray
from endpoint.workloads.link import PeerLink


class AllToAll(Collective):
    """Rank s sends chunk d of its `work`, base · (s + 1) + round, to rank d."""

    def steps(self) -> int:
        return 1

    def inboxes(self) -> dict[str, int]:
        return {peer: self.outbox_bytes(peer) for peer in self.setup.ranks if peer != self.setup.host}

    def outbox_bytes(self, peer: str) -> int:
        return self.chunk_bytes * (1 if self.rounds() == 1 else 2)  # an only round needs no place for a next one

    def fill(self) -> None:
        np.multiply(self.base, np.int32(self.rank + 1), out=self.work)
        self.work += np.int32(self.round & 0xFFFF)

    def send_first(self) -> int:
        rank, ranks = self.rank, self.setup.ranks
        for segment in range(self.segments):
            for distance in range(1, self.count):  # each rank starts with its neighbour, or all would begin with rank 0
                other = (rank + distance) % self.count
                self.send_segment(self.links[ranks[other]], other, 0, segment)
        return (self.count - 1) * self.segments

    def take(self, link: PeerLink, step: int, segment: int) -> None:
        """Nothing to pass on; the round's end looks at the inboxes."""

    def outcome(self) -> IntArray:
        """This round's chunks in order of sender, our own among them."""
        rank, place, items = self.rank, self.inbox_place(0), self.chunk_items
        chunks = [
            self.work[rank * items : (rank + 1) * items]
            if sender == rank
            else np.frombuffer(self.links[peer].inbox, dtype=np.int32, offset=place, count=items)
            for sender, peer in enumerate(self.setup.ranks)
        ]
        return np.concatenate(chunks)

    def expected(self) -> IntArray:
        items, rank = self.chunk_items, self.rank
        mine = self.base[rank * items : (rank + 1) * items]
        return np.concatenate([mine * np.int32(sender + 1) for sender in range(self.count)]) + np.int32(
            self.round & 0xFFFF
        )

    def bus_factor(self) -> float:
        return (self.count - 1) / self.count
