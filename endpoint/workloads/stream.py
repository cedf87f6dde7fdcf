"""Streams: messages from some ranks to others, as many in flight as the depth allows, each verified on arrival.

A queue pair's messages are numbered from 0. Message n is written to slot n modulo depth, and every
`immediate_every`-th is a write-with-immediate that carries its number: it arrives after all before it, so the receiver
then verifies all of them. A slot is written again only when an immediate behind it is complete at the sender;
a host lets no acknowledgement out before it has taken completions, so by then the receiver has looked.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from common.seeds import Purpose, derive
from endpoint.transport import Completion
from endpoint.workloads.contents import Contents, ContentsWorkload
from endpoint.workloads.link import RECEIVES, PeerLink
from endpoint.workloads.options import Options, WorkloadError, require
from endpoint.workloads.result import ResultTable
from endpoint.workloads.workload import LAST, OVER, Setup, WorkloadState

PERFTEST_COLUMNS = ("#bytes", "#iterations", "BW peak[Gb/sec]", "BW average[Gb/sec]", "MsgRate[Mpps]")


@dataclass(frozen=True, slots=True)
class StreamOptions(Options):
    """`messages` a sender and peer and `duration_ns` end it, whichever is first; both 0: until stopped.

    `depth` messages are in flight on each QP; `rate_bps` (0: none) limits what a sender posts to a peer.
    """

    size: int = 65_536
    messages: int = 0
    duration_ns: int = 0
    depth: int = 16
    rate_bps: int = 0

    def check(self, ranks: int) -> None:
        Options.check(self, ranks)
        require("size", self.size, 1, 1 << 30)
        require("depth", self.depth, 1, RECEIVES)
        require("duration_ns", self.duration_ns, 0, 1 << 62)
        require("rate_bps", self.rate_bps, 0, 1 << 50)
        require("messages", self.messages, 0, LAST - 1)
        if 0 < self.messages < self.qps:
            raise WorkloadError(f"messages is {self.messages}, fewer than the {self.qps} QPs that share them")


@dataclass(slots=True)
class _Outgoing:
    posted: int = 0
    completed: int = 0
    cleared: int = 0  # messages below this number are known to be verified
    ended: bool = False  # the last message is posted
    dead: bool = False
    next_post_ns: int = 0

    @property
    def done(self) -> bool:
        return self.dead or (self.ended and self.completed == self.posted)


@dataclass(slots=True)
class _Incoming:
    verified: int = 0
    done: bool = False


class StreamWorkload(ContentsWorkload):
    """The common part of streams: a kind says who sends to whom, and how much."""

    OPTIONS: ClassVar[type[Options]] = StreamOptions
    immediate_every = 1

    def __init__(self, setup: Setup, options: StreamOptions) -> None:
        self._stream = options
        self._contents = Contents(setup.transport, options.seed, self.size_max(options))
        super().__init__(setup, options)
        qps = range(options.qps)
        self._outgoing = {peer: [_Outgoing() for _ in qps] for peer in self.targets(setup.rank)}
        self._rank_of = {setup.ranks[rank]: rank for rank in self.sources(setup.rank)}
        self._incoming = {peer: [_Incoming() for _ in qps] for peer in self._rank_of}
        self._stop_ns: int | None = None
        self._report_ns = 0
        self._reported = dict.fromkeys(self._incoming, 0)
        self._verified = dict.fromkeys(self._incoming, 0)
        self._peak_bps = 0.0
        self._counted = 0
        self._dead: dict[str, str] = {}

    # What a kind of stream defines.

    def targets(self, rank: int) -> Sequence[str]:
        """The hosts that the host of this rank sends to."""
        raise NotImplementedError

    def sources(self, rank: int) -> Iterable[int]:
        """The ranks of the hosts that send to the host of this rank, ascending. A kind that knows them says so, because
        asking all ranks of a large fabric for their targets takes long."""
        host = self.setup.ranks[rank]
        return (other for other in range(len(self.setup.ranks)) if host in self.targets(other))

    def size(self, sender: int, qp: int, number: int) -> int:
        """Bytes of a message, known to both ends."""
        return self._stream.size

    @staticmethod
    def size_max(options: StreamOptions) -> int:
        """Bytes of the largest message, which a slot must hold."""
        return options.size

    # Workload.

    def inboxes(self) -> dict[str, int]:
        ranks, own = self.setup.ranks, self.setup.ranks.index(self.setup.host)
        needed = dict.fromkeys(self.targets(own), 0)
        needed.update({ranks[rank]: self._slots_bytes() for rank in self.sources(own)})
        return needed

    def outbox_bytes(self, peer: str) -> int:
        return self._slots_bytes() if peer in self._outgoing else 0

    def begin(self, now_ns: int) -> None:
        self._stop_ns = now_ns + self._stream.duration_ns if self._stream.duration_ns else None
        self._report_ns = now_ns + self.setup.report_ns
        for flows in self._outgoing.values():
            for flow in flows:
                flow.next_post_ns = now_ns
        self._post_all(now_ns)
        self._finish_when_done(now_ns)

    def sent(self, link: PeerLink, index: int, completion: Completion, now_ns: int) -> None:
        flow = self._outgoing[link.peer][index]
        flow.completed += 1
        if completion.opcode == "write_imm":
            flow.cleared = max(flow.cleared, completion.wr_id + 1)
            self._post(link, index, now_ns)
        if flow.done:
            self._finish_when_done(now_ns)

    def received(self, link: PeerLink, index: int, immediate: int, now_ns: int) -> None:
        flows, last = self._incoming.get(link.peer), immediate & ~LAST
        if flows is None or not 0 <= last - flows[index].verified < self._stream.depth:
            # Behind the last one verified: an immediate came twice, or later than one that was sent after it.
            self.fail(f"{link.peer} sent immediate {immediate:#x}, which no sender of this stream would", now_ns)
            return
        flow, sender, base = flows[index], self._rank_of[link.peer], index * self._qp_bytes()
        clock, contents, tally = self.setup.clock, self._contents, self.tally
        started_ns = clock()
        for number in range(flow.verified, last + 1):
            length = self.size(sender, index, number)
            slot = base + number % self._stream.depth * self.size_max(self._stream)
            if contents.matches(link, slot, sender, index, number, length):
                tally.bytes_verified += length
                self._verified[link.peer] += length
            else:
                tally.bytes_wrong += length
            tally.rounds += 1
            flow.verified = number + 1
        tally.verify_ns += clock() - started_ns
        if immediate & LAST:
            flow.done = True
            self._finish_when_done(now_ns)

    def qp_failed(self, link: PeerLink, index: int, cause: str, now_ns: int) -> None:
        """The other flows go on; the workload fails when all are over. Of a queue pair only the first cause counts."""
        self._dead.setdefault(f"QP {index} to {link.peer}", cause)
        if flows := self._outgoing.get(link.peer):
            flows[index].dead = True
        if incoming := self._incoming.get(link.peer):
            incoming[index].done = True
        self._finish_when_done(now_ns)

    def request_stop(self, now_ns: int) -> None:
        self._post_all(now_ns)
        self._finish_when_done(now_ns)

    def timer(self, now_ns: int) -> None:
        if self._stop_ns is not None and now_ns >= self._stop_ns:
            self._stop_ns = None
            self.stop(now_ns)
        if now_ns >= self._report_ns and self.state not in OVER:
            self._report(now_ns)
            self._report_ns = now_ns + self.setup.report_ns
        if self._stream.rate_bps and self.state not in OVER:
            self._post_all(now_ns)

    def next_timer_ns(self) -> int:
        due_ns = self._report_ns
        if self._stop_ns is not None and self._stop_ns < due_ns:
            due_ns = self._stop_ns
        if self._stream.rate_bps:
            for flows in self._outgoing.values():
                for flow in flows:
                    waits = not (flow.ended or flow.dead) and flow.posted - flow.cleared < self._stream.depth
                    if waits and flow.next_post_ns < due_ns:
                        due_ns = flow.next_post_ns
        return due_ns

    def finish(self, now_ns: int) -> None:
        self._report(now_ns)
        if self._dead:
            self.fail("; ".join(f"{which}: {cause}" for which, cause in self._dead.items()), now_ns)
        else:
            super().finish(now_ns)

    def table(self) -> ResultTable:
        seconds = max(self.ended_ns - self.started_ns, 1) / 1e9
        table = ResultTable(PERFTEST_COLUMNS)
        moved, count = self._moved()
        if self.ended_ns:
            average = moved * 8 / seconds
            table.rows.append(
                (
                    self.size_max(self._stream),
                    count,
                    round(max(self._peak_bps, average) / 1e9, 6),
                    round(average / 1e9, 6),
                    round(count / seconds / 1e6, 9),
                )
            )
        return table

    def _post_all(self, now_ns: int) -> None:
        for peer in self._outgoing:
            for index in range(self._stream.qps):
                self._post(self.links[peer], index, now_ns)

    def _post(self, link: PeerLink, index: int, now_ns: int) -> None:
        """Post what depth and rate allow on this QP."""
        flow, options = self._outgoing[link.peer][index], self._stream
        rank, base = self.rank, index * self._qp_bytes()
        region, size_max = self._contents.region, self.size_max(options)
        limit = self._share(index)
        while not (flow.ended or flow.dead) and flow.posted - flow.cleared < options.depth:
            if options.rate_bps:
                if now_ns < flow.next_post_ns and self.state is WorkloadState.RUNNING:
                    return
                flow.next_post_ns += (
                    self.size(rank, index, flow.posted) * 8_000_000_000 * options.qps // options.rate_bps
                )
            number, length = flow.posted, self.size(rank, index, flow.posted)
            flow.ended = number + 1 == limit or self.state is WorkloadState.STOPPING
            last_before_full = number + 1 - flow.cleared == options.depth
            immediate: int | None = None
            if flow.ended or last_before_full or (number + 1) % self.immediate_every == 0:
                immediate = number | (LAST if flow.ended else 0)
            flow.posted += 1
            source = (region, self._contents.offset(rank, index, number), length)
            self.post(link, index, number, source, base + number % options.depth * size_max, immediate)

    def _share(self, index: int) -> int:
        """How many of the messages this QP sends; -1 for no end."""
        messages, qps = self._stream.messages, self._stream.qps
        return messages // qps + (index < messages % qps) if messages else -1

    def _finish_when_done(self, now_ns: int) -> None:
        if self.state not in (WorkloadState.RUNNING, WorkloadState.STOPPING):
            return
        outgoing = all(flow.done for flows in self._outgoing.values() for flow in flows)
        if outgoing and all(flow.done for flows in self._incoming.values() for flow in flows):
            self.finish(now_ns)

    def _moved(self) -> tuple[int, int]:
        """Bytes and messages: those sent, or at a rank that only receives those verified."""
        if self._outgoing:
            return self.tally.bytes, self.tally.messages_completed
        return self.tally.bytes_verified, self.tally.rounds

    def _report(self, now_ns: int) -> None:
        start_ns = self._report_ns - self.setup.report_ns
        elapsed_ns = max(now_ns - start_ns, 1)
        for peer, total in self._verified.items():
            moved, self._reported[peer] = total - self._reported[peer], total
            self.journal(
                "transfer",
                peer=peer,
                bytes=moved,
                start_ns=start_ns,
                end_ns=now_ns,
                verified=self.tally.bytes_wrong == 0,
            )
        moved, self._counted = self._moved()[0] - self._counted, self._moved()[0]
        if elapsed_ns * 2 >= self.setup.report_ns:  # a short rest of an interval would make a wild peak
            self._peak_bps = max(self._peak_bps, moved * 8e9 / elapsed_ns)

    def _qp_bytes(self) -> int:
        return self._stream.depth * self.size_max(self._stream)

    def _slots_bytes(self) -> int:
        return self._stream.qps * self._qp_bytes()


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


class Incast(StreamWorkload):
    def targets(self, rank: int) -> Sequence[str]:
        return [self.setup.ranks[0]] if rank else []


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
            if not (isinstance(pair, (list, tuple)) and len(pair) == 2 and all(type(number) is int for number in pair)):
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
