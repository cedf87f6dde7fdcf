"""perftest's write latency: ranks 0 and 1 play ping-pong with one message; half the round trip is a latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from common.latency import COLUMNS, row
from endpoint.transport import Completion
from endpoint.workloads.contents import Contents, ContentsWorkload
from endpoint.workloads.link import PeerLink
from endpoint.workloads.options import Options, require
from endpoint.workloads.result import ResultTable
from endpoint.workloads.workload import LAST, Setup, WorkloadState


@dataclass(frozen=True, slots=True)
class WriteLatOptions(Options):
    """`messages` of `size` bytes each way; 0: until stopped. Two slots alternate, so a stale one shows."""

    size: int = 2
    messages: int = 1000

    def check(self, ranks: int) -> None:
        Options.check(self, ranks)
        require("qps", self.qps, 1, 1)
        require("size", self.size, 1, 1 << 24)
        require("messages", self.messages, 0, LAST - 1)


class WriteLat(ContentsWorkload):
    OPTIONS: ClassVar[type[Options]] = WriteLatOptions
    RANKS_MAX: ClassVar[int] = 2

    def __init__(self, setup: Setup, options: WriteLatOptions) -> None:
        self._lat = options
        self._contents = Contents(setup.transport, options.seed, options.size)
        super().__init__(setup, options)
        self._posted_ns = 0
        self._number = 0
        self._last = False
        self._half_ns: list[int] = []

    def inboxes(self) -> dict[str, int]:
        return {self.setup.ranks[1 - self.rank]: 2 * self._lat.size}

    def outbox_bytes(self, peer: str) -> int:
        return 2 * self._lat.size

    def begin(self, now_ns: int) -> None:
        if self.rank == 0:
            self._post_next()
        self._finish_when_done(now_ns)

    def received(self, link: PeerLink, index: int, immediate: int, now_ns: int) -> None:
        arrived_ns = self.setup.clock()
        number, sender = immediate & ~LAST, 1 - self.rank
        slot = number % 2 * self._lat.size
        if number == self._number and self._contents.matches(link, slot, sender, 0, number, self._lat.size):
            self.tally.bytes_verified += self._lat.size
        else:
            self.tally.bytes_wrong += self._lat.size
        self.tally.verify_ns += self.setup.clock() - arrived_ns
        self.tally.rounds += 1
        self._last = bool(immediate & LAST)
        if self.rank == 1:
            self._number = number
            self._post_next()
            return
        self._half_ns.append((arrived_ns - self._posted_ns) // 2)
        self._number += 1
        if not self._last:
            self._post_next()
        self._finish_when_done(now_ns)

    def sent(self, link: PeerLink, index: int, completion: Completion, now_ns: int) -> None:
        self._finish_when_done(now_ns)

    def request_stop(self, now_ns: int) -> None:
        """Rank 0 marks its next message; rank 1 follows."""

    def table(self) -> ResultTable:
        table = ResultTable(COLUMNS)
        if self._half_ns:
            table.rows.append(row(self._lat.size, [half_ns / 1e3 for half_ns in self._half_ns]))
        return table

    def _post_next(self) -> None:
        rank, number, size = self.rank, self._number, self._lat.size
        if rank == 0:
            self._last = self.state is WorkloadState.STOPPING or number + 1 == self._lat.messages
        (link,) = self.links.values()
        source = (self._contents.region, self._contents.offset(rank, 0, number), size)
        self._posted_ns = self.setup.clock()
        self.post(link, 0, number, source, number % 2 * size, number | (LAST if self._last else 0))
        if rank == 1:
            self._number = number + 1

    def _finish_when_done(self, now_ns: int) -> None:
        """Everything is answered, and what this rank posted is complete."""
        posted = self.tally.messages_posted
        answered = self.rank == 1 or len(self._half_ns) == posted
        running = self.state in (WorkloadState.RUNNING, WorkloadState.STOPPING)
        if running and self._last and answered and self.tally.messages_completed == posted:
            self.finish(now_ns)
