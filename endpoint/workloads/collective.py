"""Collectives: rounds in which every rank takes part, each verified whole before the next begins.

Data moves in segments, each a write-with-immediate whose immediate says round parity, step and segment. No rank can be
two rounds ahead of a peer that writes to it, because each round needs data of every rank. So even and odd rounds arrive
in separate memory, and no segment is overwritten before it was used, without any credit messages. (Rings get by with
less: `ring.py`.)

Rank 0 decides which round is the last and says so in a bit of the immediates, which spreads with the data.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from common.seeds import Purpose, derive
from endpoint.nic.config import NEVER
from endpoint.transport import Completion
from endpoint.workloads.link import PeerLink
from endpoint.workloads.options import Options, WorkloadError, require
from endpoint.workloads.result import ResultTable
from endpoint.workloads.workload import LAST, Setup, Workload, WorkloadState

PARITY = 1 << 30
STEP_SHIFT, STEP_MASK, SEGMENT_MASK = 16, 0x3FFF, 0xFFFF
PART_BYTES = 128  # of which parts of a segment are multiples
ITEM_BYTES = 4  # int32, whose sums wrap alike everywhere: exact comparison, no rounding
NCCL_COLUMNS = (
    "size(B)",
    "count(elements)",
    "type",
    "redop",
    "root",
    "time(us)",
    "algbw(GB/s)",
    "busbw(GB/s)",
    "#wrong",
)

IntArray = np.ndarray[Any, np.dtype[np.int32]]

_bases: WeakValueDictionary[tuple[int, int], IntArray] = WeakValueDictionary()
"""By seed and length, while a host has them: a base is never written to, so the hosts of one process share it."""


def _base(seed: int, items: int) -> IntArray:
    """Random numbers, the same on every rank for one seed; read-only."""
    base = _bases.get((seed, items))
    if base is None:
        base = np.random.default_rng(int(derive(seed, Purpose.VECTORS))).integers(
            -(2**20), 2**20, items, dtype=np.int32
        )
        base.flags.writeable = False
        _bases[seed, items] = base
    return base


@dataclass(frozen=True, slots=True)
class CollectiveOptions(Options):
    """`size` is nccl-tests': the larger of a rank's send and receive buffers. `rounds` or `duration_ns` end it.

    What the host costs: `call_ns` before a round's communication; in a ring, for each slice that arrives, `slice_ns`
    and its bytes at `copy_gbps` (Gb/s; 0: at once), one slice after the other, before its data goes on. `slices` cuts
    each chunk into so many slices, however large; with 0 `segment` says how large segments are. Segments take the queue
    pairs of a link round robin, through all steps and rounds (as NCCL's messages do since 2.20). With
    `split` each segment is a write on every queue pair of the link, in parts of whole `PART_BYTES`, and has arrived
    when all parts have (NCCL's NCCL_IB_SPLIT_DATA_ON_QPS=1).
    """

    size: int = 1 << 20
    rounds: int = 20
    duration_ns: int = 0
    segment: int = 65_536
    slices: int = 0
    split: bool = False
    call_ns: int = 0
    slice_ns: int = 0
    copy_gbps: float = 0.0

    def check(self, ranks: int) -> None:
        Options.check(self, ranks)
        require("size", self.size, ITEM_BYTES * ranks, 1 << 32)
        require("rounds", self.rounds, 0, 1 << 31)
        require("duration_ns", self.duration_ns, 0, 1 << 62)
        require("segment", self.segment, ITEM_BYTES, 1 << 28)
        require("slices", self.slices, 0, 1 << 10)
        require("call_ns", self.call_ns, 0, 1 << 40)
        require("slice_ns", self.slice_ns, 0, 1 << 40)
        require("copy_gbps", self.copy_gbps, 0, 1 << 20)
        if self.segment % ITEM_BYTES:
            raise WorkloadError(f"segment is {self.segment}; it must be a multiple of {ITEM_BYTES} bytes")
        if not self.slices and -(-self.size // ranks // self.segment) > SEGMENT_MASK:
            raise WorkloadError(f"segment is {self.segment}: more than {SEGMENT_MASK} a chunk of size / ranks")


class Collective(Workload):
    """Rounds of one collective; `chunk_bytes` is a rank's share of `size`, rounded up to whole items."""

    OPTIONS: ClassVar[type[Options]] = CollectiveOptions
    redop: ClassVar[str] = "none"

    def __init__(self, setup: Setup, options: CollectiveOptions) -> None:
        self.options = options
        self.count = len(setup.ranks)
        self.chunk_items = -(-options.size // ITEM_BYTES // self.count)
        self.chunk_bytes = self.chunk_items * ITEM_BYTES
        slices = min(options.slices, self.chunk_items)
        self.segment_bytes = -(-self.chunk_items // slices) * ITEM_BYTES if slices else options.segment
        self.segments = -(-self.chunk_bytes // self.segment_bytes)
        self.round = 0
        super().__init__(setup, options)
        self.counted = setup.transport.counted
        """Payload is counted: there are no numbers, and a round checks where segments have arrived."""
        self._size = self.count * self.chunk_bytes
        items = 0 if self.counted else self.count * self.chunk_items
        try:
            memory = bytearray(items * ITEM_BYTES)
            self.base = _base(options.seed, items)
        except MemoryError:
            self._release(setup.clock())
            raise
        if self.counted:
            self.region = setup.transport.register_counted(self._size, remote_write=False)
        else:
            self.region = setup.transport.register_memory(memory, remote_write=False)
        self.work: IntArray = np.frombuffer(memory, dtype=np.int32)
        self._misplaced = 0
        """Bytes of segments of the round that have not arrived where they should, counted payload only."""
        self.last_round = False
        self.round_running = False
        self._missing: dict[tuple[str, int], int] = {}
        """By peer and immediate, parts of a segment that have not arrived, of segments of which one has."""
        self._early: list[tuple[PeerLink, int]] = []
        self._waiting_segments = 0
        self._compute_until_ns: int | None = None
        self._handled: deque[tuple[int, PeerLink, int]] = deque()
        """Slices that have arrived: when the host is done with each, its link and immediate."""
        self._host_free_ns = 0
        self._round_ns = self._comm_ns = self._comm_total_ns = 0

    # A kind of collective defines these.

    def fill(self) -> None:
        """Put this rank's contribution of the round into `work`."""
        raise NotImplementedError

    def outcome(self) -> IntArray:
        """This rank's data after the round."""
        return self.work

    def expected(self) -> IntArray:
        """The right value of `outcome`."""
        raise NotImplementedError

    def send_first(self) -> int:
        """Post the segments that need no data of others; return how many segments arrive in the round."""
        raise NotImplementedError

    def take(self, link: PeerLink, step: int, segment: int) -> None:
        """Segment `segment` of `step` has arrived from the link's peer."""
        raise NotImplementedError

    def bus_factor(self) -> float:
        """nccl-tests: busbw over algbw."""
        raise NotImplementedError

    def rounds(self) -> int:
        """How many; 0 for no end."""
        return self.options.rounds

    def compute_ns(self) -> int:
        """How long this rank computes before the round's communication."""
        return 0

    def handling_ns(self, segment: int) -> int:
        """How long the host is busy with a slice that has arrived, before its data goes on."""
        return 0

    # Workload.

    def memory_bytes(self) -> int:
        """`work`, `base`, and at the end of a round the outcome and its right value."""
        return 4 * self.count * self.chunk_bytes

    def common_bytes(self) -> int:
        """All but `work`: `base` is shared, and the rounds of two ranks do not end at the same instant."""
        return 3 * self.count * self.chunk_bytes

    def begin(self, now_ns: int) -> None:
        self._begin_round(now_ns)

    def received(self, link: PeerLink, index: int, immediate: int, now_ns: int) -> None:
        if self.options.split and not self._whole(link, immediate):
            return
        parity = PARITY if self.round & 1 else 0
        if not self.round_running or immediate & PARITY != parity:
            self._early.append((link, immediate))
            if len(self._early) > 2 * self.count * self.segments * self.count:
                self.fail(f"{link.peer} sent more than a round could hold", now_ns)
            return
        self._arrived(link, immediate, now_ns)
        self._end_round_when_done(now_ns)

    def sent(self, link: PeerLink, index: int, completion: Completion, now_ns: int) -> None:
        self._end_round_when_done(now_ns)

    def timer(self, now_ns: int) -> None:
        if self._compute_until_ns is not None and self._compute_until_ns <= now_ns:
            self._compute_until_ns = None
            self._communicate(now_ns)
        while self._handled and self._handled[0][0] <= now_ns:
            _, link, immediate = self._handled.popleft()
            self._take(link, immediate, now_ns)
            self._end_round_when_done(now_ns)

    def next_timer_ns(self) -> int:
        handled_ns = self._handled[0][0] if self._handled else NEVER
        return handled_ns if self._compute_until_ns is None else min(handled_ns, self._compute_until_ns)

    def request_stop(self, now_ns: int) -> None:
        """The round that rank 0 begins next is the last: its segments say so."""

    def table(self) -> ResultTable:
        table = ResultTable(NCCL_COLUMNS)
        if self.tally.rounds:
            mean_ns = self._comm_total_ns / self.tally.rounds
            size = self.count * self.chunk_bytes
            algbw = size / mean_ns
            wrong = self.tally.bytes_wrong // ITEM_BYTES
            figures = (round(mean_ns / 1e3, 2), round(algbw, 6), round(algbw * self.bus_factor(), 6), wrong)
            table.rows.append((size, size // ITEM_BYTES, "int32", self.redop, -1, *figures))
        return table

    def close(self, now_ns: int) -> None:
        super().close(now_ns)
        self.setup.transport.deregister_memory(self.region)

    # What a kind uses.

    def send_segment(self, link: PeerLink, chunk: int, step: int, segment: int) -> None:
        """Write a segment of `chunk` of `work` to the peer, at the place of this round and `step`."""
        start = segment * self.segment_bytes
        length = min(self.segment_bytes, self.chunk_bytes - start)
        immediate = step << STEP_SHIFT | segment
        immediate |= (PARITY if self.round & 1 else 0) | (LAST if self.last_round else 0)
        source = (self.region, chunk * self.chunk_bytes + start, length)
        if self.options.split:
            self._send_parts(link, segment, source, self.inbox_place(step) + start, immediate)
            return
        turn = (self.round * self.steps() + step) * self.segments + segment
        self.post(link, turn % len(link.qps), segment, source, self.inbox_place(step) + start, immediate)

    def _send_parts(
        self, link: PeerLink, segment: int, source: tuple[Any, int, int], target: int, immediate: int
    ) -> None:
        """Write a segment in parts, one on each queue pair of the link as long as there are bytes left."""
        region, place, length = source
        part_bytes = self._part_bytes(link, length)
        for index, done in enumerate(range(0, length, part_bytes)):
            part = (region, place + done, min(part_bytes, length - done))
            self.post(link, index, segment, part, target + done, immediate)

    def _part_bytes(self, link: PeerLink, length: int) -> int:
        """How large the parts of a segment of this length are, but for the last one."""
        return -(-length // (len(link.qps) * PART_BYTES)) * PART_BYTES

    def _whole(self, link: PeerLink, immediate: int) -> bool:
        """A part of a segment has arrived: whether all of its parts have."""
        key = link.peer, immediate & ~LAST
        missing = self._missing.pop(key, 0)
        if not missing:
            segment = immediate & SEGMENT_MASK
            length = self._items(segment) * ITEM_BYTES if segment < self.segments else 1
            missing = -(-length // self._part_bytes(link, length))
        if missing > 1:
            self._missing[key] = missing - 1
        return missing == 1

    def inbox_place(self, step: int) -> int:
        """The place in an inbox of a step's chunk in this round, in bytes."""
        return ((self.round & 1) * self.steps() + step) * self.chunk_bytes

    def steps(self) -> int:
        """Chunks that one peer writes here in a round."""
        raise NotImplementedError

    def inbox_segment(self, link: PeerLink, step: int, segment: int) -> IntArray:
        """A view of what the link's peer wrote for that step of this round."""
        start = self.inbox_place(step) + segment * self.segment_bytes
        return np.frombuffer(link.inbox, dtype=np.int32, offset=start, count=self._items(segment))

    def work_segment(self, chunk: int, segment: int) -> IntArray:
        """A view of that segment of a chunk of `work`."""
        start = (chunk * self.chunk_bytes + segment * self.segment_bytes) // ITEM_BYTES
        return self.work[start : start + self._items(segment)]

    def _items(self, segment: int) -> int:
        start = segment * self.segment_bytes
        return min(self.segment_bytes, self.chunk_bytes - start) // ITEM_BYTES

    def _wrong_bytes(self) -> int:
        """Bytes of the round's outcome that differ from what they should be, or that are not where they should be."""
        if self.counted:
            wrong, self._misplaced = min(self._misplaced, self._size), 0
            return wrong
        return int(np.count_nonzero(self.outcome() != self.expected())) * ITEM_BYTES

    def _begin_round(self, now_ns: int) -> None:
        self._round_ns = now_ns
        delay_ns = self.compute_ns() + self.options.call_ns
        if delay_ns:
            self._compute_until_ns = now_ns + delay_ns
        else:
            self._communicate(now_ns)

    def _communicate(self, now_ns: int) -> None:
        options = self.options
        if self.rank == 0:
            over = options.duration_ns and now_ns - self.started_ns >= options.duration_ns
            self.last_round = bool(over) or self.state is WorkloadState.STOPPING or self.round + 1 == self.rounds()
        self._comm_ns = now_ns - self.options.call_ns
        self.round_running = True
        if not self.counted:
            self.fill()
        self._waiting_segments = self.send_first()
        early, self._early = self._early, []
        for link, immediate in early:
            self._arrived(link, immediate, now_ns)
        self._end_round_when_done(now_ns)

    def _arrived(self, link: PeerLink, immediate: int, now_ns: int) -> None:
        """A slice is here: its data goes on once the host has handled it and those before it."""
        busy_ns = self.handling_ns(immediate & SEGMENT_MASK)
        if not busy_ns:
            self._take(link, immediate, now_ns)
            return
        self._host_free_ns = max(self._host_free_ns, now_ns) + busy_ns
        self._handled.append((self._host_free_ns, link, immediate))

    def _take(self, link: PeerLink, immediate: int, now_ns: int) -> None:
        step, segment = immediate >> STEP_SHIFT & STEP_MASK, immediate & SEGMENT_MASK
        if step >= self.steps() or segment >= self.segments or not link.inbox_bytes:
            self.fail(f"{link.peer} sent immediate {immediate:#x}, which no rank of this collective would", now_ns)
            return
        self.last_round = self.last_round or bool(immediate & LAST)
        self._waiting_segments -= 1
        if self.counted:
            length = self._items(segment) * ITEM_BYTES
            place = self.inbox_place(step) + segment * self.segment_bytes
            self._misplaced += 0 if link.take(place, length) else length
        self.take(link, step, segment)

    def _end_round_when_done(self, now_ns: int) -> None:
        tally = self.tally
        if not self.round_running or self._waiting_segments or tally.messages_completed < tally.messages_posted:
            return
        if self.state not in (WorkloadState.RUNNING, WorkloadState.STOPPING):
            return
        clock = self.setup.clock
        started_ns = clock()
        wrong = self._wrong_bytes()
        end_ns = clock()
        size = self._size
        tally.verify_ns += end_ns - started_ns
        tally.bytes_wrong += wrong
        tally.bytes_verified += size - wrong
        tally.rounds += 1
        self._comm_total_ns += now_ns - self._comm_ns
        self.journal(
            "step",
            rank=self.rank,
            step=self.round,
            compute_ns=self._comm_ns - self._round_ns,
            comm_ns=end_ns - self._comm_ns,
            total_ns=end_ns - self._round_ns,
            bytes=size,
            verified=wrong == 0,
        )
        self.round_running = False
        if self.last_round:
            self.finish(now_ns)
            return
        self.round += 1
        self._begin_round(now_ns)


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
