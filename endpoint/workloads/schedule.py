"""A schedule that was read from a file: one rank's sends, receives and calculations, each when the file allows it.

A message goes in writes of at most `segment` bytes, each with an immediate that carries the message's number, so that
the receiver checks every byte. The writes of a queue pair use `depth` slots of memory in turn; a slot is written again
only when the write that used it is acknowledged (`stream.py` says why that is safe).
"""

from __future__ import annotations

import heapq
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from endpoint.nic.config import NEVER
from endpoint.transport import Completion
from endpoint.workloads.contents import Contents, ContentsWorkload
from endpoint.workloads.link import RECEIVES, PeerLink
from endpoint.workloads.options import Options, WorkloadError, require
from endpoint.workloads.result import ResultTable
from endpoint.workloads.workload import LAST, UNDER_WAY, Setup
from schedules import RANKS_MAX, RankOperations, ScheduleError, operation, shared


class ScheduleProgress:
    """Starts operations as their predecessors complete; computing occupies a processor of the rank.

    `send` is called with the number of a send that may start. The caller tells what has arrived and been acknowledged.
    Sends and calculations take the processor that they name, in the order in which they become ready; a send takes it
    for no time at all. Receives need no processor.
    """

    def __init__(self, part: RankOperations, send: Callable[[int], None], time_scale: float) -> None:
        self._part = part
        self._send = send
        self._scale = time_scale
        self._need = array("q", part.need)
        self._turned: dict[int, int] = {}
        self._arrived = bytearray(len(part.kind))
        self._posted = bytearray(len(part.kind))
        self._ready: deque[int] = deque()
        self._busy: dict[int, deque[int]] = {}  # per processor that computes, the waiting operations
        self._timers: list[tuple[int, int]] = []
        self._began_ns = 0
        self._running = False
        self.left = len(part.kind)

    def begin(self, now_ns: int) -> None:
        """The schedule starts."""
        self._began_ns = now_ns
        self._ready.extend(number for number, need in enumerate(self._need) if not need)
        self._run(now_ns)

    def completed(self, number: int, now_ns: int) -> None:
        """A send is acknowledged."""
        self._complete(number)
        self._run(now_ns)

    def arrived(self, number: int, now_ns: int) -> None:
        """The message of a receive is there, perhaps before the receive has started."""
        self._arrived[number] = 1
        if self._posted[number]:
            self.completed(number, now_ns)

    def timer(self, now_ns: int) -> None:
        """Time has passed: end what is due."""
        while self._timers and self._timers[0][0] <= now_ns:
            _, number = heapq.heappop(self._timers)
            if self._part.kind[number] == operation.CALC:
                waiting = self._busy.pop(self._part.processor[number])
                self._ready.extendleft(reversed(waiting))
            self._complete(number)
        self._run(now_ns)

    def next_ns(self) -> int:
        """When `timer` is due; NEVER if nothing waits for time."""
        return self._timers[0][0] if self._timers else NEVER

    def _run(self, now_ns: int) -> None:
        if self._running:  # called back by a send that completed at once
            return
        self._running = True
        while self._ready:
            self._start(self._ready.popleft(), now_ns)
        self._running = False

    def _start(self, number: int, now_ns: int) -> None:
        part = self._part
        kind, amount = part.kind[number], part.amount[number]
        if kind in (operation.SEND, operation.CALC):
            waiting = self._busy.get(part.processor[number])
            if waiting is not None:
                waiting.append(number)
                return
        for after in part.start[part.start_at[number] : part.start_at[number + 1]]:
            self._release(after)
        if kind == operation.SEND:
            self._send(number)
        elif kind == operation.RECV:
            self._posted[number] = 1
            if self._arrived[number]:
                self._complete(number)
        else:
            lasts_ns = round(amount * self._scale)
            end_ns = now_ns + lasts_ns if kind == operation.CALC else self._began_ns + lasts_ns
            if end_ns <= now_ns:
                self._complete(number)
                return
            if kind == operation.CALC:
                self._busy[part.processor[number]] = deque()
            heapq.heappush(self._timers, (end_ns, number))

    def _complete(self, number: int) -> None:
        part = self._part
        self.left -= 1
        for after in part.next[part.next_at[number] : part.next_at[number + 1]]:
            if part.kind[after] != operation.TURN:
                self._release(after)
                continue
            self._need[after] -= 1
            if not self._need[after]:
                self.left -= 1
            turn = self._turned.get(after, 0)
            self._turned[after] = turn + 1
            if part.next_at[after] + turn < part.next_at[after + 1]:
                self._release(part.next[part.next_at[after] + turn])

    def _release(self, number: int) -> None:
        self._need[number] -= 1
        if not self._need[number]:
            self._ready.append(number)


COLUMNS = ("#messages", "#bytes", "#operations left", "time(us)")
SEGMENT_MAX = 1 << 28


@dataclass(frozen=True, slots=True)
class ScheduleOptions(Options):
    """`file` must have `digest`, unless that is "". Its calculations and starts last `time_scale` times as long."""

    file: str = ""
    digest: str = ""
    segment: int = 65_536
    depth: int = 16
    time_scale: float = 1.0

    def check(self, ranks: int) -> None:
        Options.check(self, ranks)
        require("segment", self.segment, 1, SEGMENT_MAX)
        require("depth", self.depth, 1, RECEIVES)
        require("time_scale", self.time_scale, 0.0, 1e9)
        if not Path(self.file).is_absolute():
            raise WorkloadError(f"file must be an absolute path of a schedule (got {self.file!r})")


@dataclass(slots=True)
class _Outgoing:
    """Messages that go out on one queue pair, one after the other."""

    queue: deque[int] = field(default_factory=deque)  # sends; the first may be posted in part
    offset: int = 0  # of the first, in bytes
    posted: int = 0  # writes
    cleared: int = 0  # writes below this number are acknowledged
    ends: dict[int, int] = field(default_factory=dict)  # by number of its last write, the send


@dataclass(frozen=True, slots=True)
class _Ring:
    """The memory of one queue pair: slots that writes use in turn."""

    slot_bytes: int = 0
    slots: int = 0

    @property
    def bytes(self) -> int:
        return self.slot_bytes * self.slots

    def with_message(self, size: int, options: ScheduleOptions) -> _Ring:
        """The same, large enough for this message."""
        writes = -(-size // options.segment)
        slot_bytes = max(self.slot_bytes, min(size, options.segment))
        return _Ring(slot_bytes, min(options.depth, self.slots + writes))


@dataclass(slots=True)
class _Incoming:
    taken: int = 0  # writes
    offset: int = 0  # of the message under way, in bytes


class ScheduleWorkload(ContentsWorkload):
    """One rank of a schedule. Ranks that take no part end at once."""

    OPTIONS: ClassVar[type[Options]] = ScheduleOptions
    RANKS_MIN: ClassVar[int] = 1
    RANKS_MAX: ClassVar[int] = RANKS_MAX
    ALIKE: ClassVar[bool] = False

    def __init__(self, setup: Setup, options: ScheduleOptions) -> None:
        self._own = options
        self._part = part_of(setup, options)
        self._inbound, self._outbound = rings(self._part, setup, options)
        self._contents = Contents(setup.transport, options.seed, options.segment)
        super().__init__(setup, options)
        qps = range(options.qps)
        self._outgoing = {peer: [_Outgoing() for _ in qps] for peer in self._outbound}
        self._incoming = {peer: [_Incoming() for _ in qps] for peer in self._inbound}
        self._rank_of = {peer: setup.ranks.index(peer) for peer in self._inbound}
        self._receives = by_message(self._part, setup.ranks)
        self._begun_ns: dict[int, int] = {}
        self._progress = ScheduleProgress(self._part, self._send, options.time_scale)
        self._now_ns = 0

    # Workload.

    def inboxes(self) -> dict[str, int]:
        ranks, part = self.setup.ranks, self._part
        named = dict.fromkeys(ranks[peer] for peer in part.peer if peer >= 0)  # in the order of the file
        return {peer: self._own.qps * self._inbound.get(peer, _Ring()).bytes for peer in named}

    def outbox_bytes(self, peer: str) -> int:
        return self._own.qps * self._outbound.get(peer, _Ring()).bytes

    def options_as_json(self) -> dict[str, Any]:
        """The options, with the file's name in place of its path: journals do not depend on where a file lies."""
        return {**super().options_as_json(), "file": Path(self._own.file).name}

    def begin(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self._progress.begin(now_ns)
        self._finish_when_done(now_ns)

    def sent(self, link: PeerLink, index: int, completion: Completion, now_ns: int) -> None:
        self._now_ns = now_ns
        flow = self._outgoing[link.peer][index]
        flow.cleared = max(flow.cleared, completion.wr_id + 1)
        number = flow.ends.pop(completion.wr_id, None)
        if number is not None:
            self._tell_sent(number, link.peer, now_ns)
            self._progress.completed(number, now_ns)
        self._post(link, index)
        self._finish_when_done(now_ns)

    def received(self, link: PeerLink, index: int, immediate: int, now_ns: int) -> None:
        self._now_ns = now_ns
        flows, message = self._incoming.get(link.peer), immediate & ~LAST
        number = self._receives.get(link.peer, {}).get(message)
        if flows is None or number is None or message % self._own.qps != index:
            self.fail(f"{link.peer} sent immediate {immediate:#x}, which is no message of this schedule", now_ns)
            return
        flow, size = flows[index], max(1, self._part.amount[number])
        length = min(self._own.segment, size - flow.offset)
        self._verify(link, index, flow.taken, length)
        flow.taken += 1
        flow.offset += length
        if (flow.offset == size) != bool(immediate & LAST):
            self.fail(f"{link.peer} cuts message {message} otherwise: both must have the same options", now_ns)
            return
        if flow.offset == size:
            flow.offset = 0
            self._tell_received(number, link.peer, now_ns)
            self._progress.arrived(number, now_ns)
        self._finish_when_done(now_ns)

    def timer(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self._progress.timer(now_ns)
        self._finish_when_done(now_ns)

    def next_timer_ns(self) -> int:
        return self._progress.next_ns()

    def request_stop(self, now_ns: int) -> None:
        """A schedule has no place to stop: peers wait for what is left of it."""

    def table(self) -> ResultTable:
        table = ResultTable(COLUMNS)
        if self.ended_ns:
            lasted_us = round((self.ended_ns - self.started_ns) / 1e3, 3)
            table.rows.append((len(self._begun_ns), self.tally.bytes, self._progress.left, lasted_us))
        return table

    # Messages.

    def _send(self, number: int) -> None:
        """A send of the schedule may start."""
        peer = self.setup.ranks[self._part.peer[number]]
        index = self._part.message[number] % self._own.qps
        self._begun_ns[number] = self._now_ns
        self._outgoing[peer][index].queue.append(number)
        self._post(self.links[peer], index)

    def _post(self, link: PeerLink, index: int) -> None:
        """Post what the slots of this queue pair have room for."""
        flow, ring, part = self._outgoing[link.peer][index], self._outbound[link.peer], self._part
        while flow.queue and flow.posted - flow.cleared < ring.slots:
            number = flow.queue[0]
            left = max(1, part.amount[number]) - flow.offset
            length = min(self._own.segment, left)
            write, last = flow.posted, length == left
            source = (self._contents.region, self._contents.offset(self.rank, index, write), length)
            target = index * ring.bytes + write % ring.slots * ring.slot_bytes
            flow.posted += 1
            flow.offset += length
            if last:
                flow.ends[write] = flow.queue.popleft()
                flow.offset = 0
            self.post(link, index, write, source, target, part.message[number] | (LAST if last else 0))

    def _verify(self, link: PeerLink, index: int, write: int, length: int) -> None:
        ring, clock, tally = self._inbound[link.peer], self.setup.clock, self.tally
        place = index * ring.bytes + write % ring.slots * ring.slot_bytes
        started_ns = clock()
        if self._contents.matches(link, place, self._rank_of[link.peer], index, write, length):
            tally.bytes_verified += length
        else:
            tally.bytes_wrong += length
        tally.rounds += 1
        tally.verify_ns += clock() - started_ns

    def _tell_sent(self, number: int, peer: str, now_ns: int) -> None:
        part = self._part
        if part.line[number]:  # not a message that only carries a trigger
            told = {"peer": peer, "message": part.message[number], "bytes": part.amount[number]}
            begun_ns = self._begun_ns[number]
            self.journal("message", state="sent", **told, start_ns=begun_ns, end_ns=now_ns, line=part.line[number])

    def _tell_received(self, number: int, peer: str, now_ns: int) -> None:
        if self._part.line[number]:
            self.journal("message", state="received", peer=peer, message=self._part.message[number], end_ns=now_ns)

    def _finish_when_done(self, now_ns: int) -> None:
        if not self._progress.left and self.state in UNDER_WAY:
            self.finish(now_ns)


def part_of(setup: Setup, options: ScheduleOptions) -> RankOperations:
    """The part of this rank. WorkloadError when the file cannot be read or is for another number of ranks."""
    try:
        schedule = shared(Path(options.file), options.digest)
    except ScheduleError as error:
        raise WorkloadError(str(error)) from error
    if schedule.ranks != len(setup.ranks):
        raise WorkloadError(f"{schedule.source} has {schedule.ranks} ranks and was given {len(setup.ranks)} hosts")
    return schedule.part(setup.rank)


def rings(part: RankOperations, setup: Setup, options: ScheduleOptions) -> tuple[dict[str, _Ring], dict[str, _Ring]]:
    """The memory for each peer's messages here, and for ours at each peer. Both ends compute the same."""
    inbound: dict[str, _Ring] = {}
    outbound: dict[str, _Ring] = {}
    for kind, peer, amount in zip(part.kind, part.peer, part.amount, strict=True):
        if kind in (operation.SEND, operation.RECV):
            memory, name = inbound if kind == operation.RECV else outbound, setup.ranks[peer]
            memory[name] = memory.get(name, _Ring()).with_message(max(1, amount), options)
    return inbound, outbound


def by_message(part: RankOperations, ranks: Sequence[str]) -> dict[str, dict[int, int]]:
    """Per peer the receives of its messages, by the message's number."""
    receives: dict[str, dict[int, int]] = {}
    for number, kind in enumerate(part.kind):
        if kind == operation.RECV:
            receives.setdefault(ranks[part.peer[number]], {})[part.message[number]] = number
    return receives
