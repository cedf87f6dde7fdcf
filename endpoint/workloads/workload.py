"""A workload: the writes that one rank posts and expects, as a state machine without I/O.

A workload makes its links and memory when it is prepared, learns the peers' offers, runs from `start` until all data is
received, verified and completed, and keeps a tally. The clock is an argument, so workloads run in virtual time too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final

from endpoint.completion import SUCCESS, Completion
from endpoint.nic.config import NEVER
from endpoint.nic.cq import CompletionQueue as NicQueue
from endpoint.transport import QPState, QueueFull, QueuePair, Transport
from endpoint.workloads.link import RECEIVES, PeerLink
from endpoint.workloads.options import Options, WorkloadError
from endpoint.workloads.result import ResultTable, Tally

_POLL_LIMIT: Final = 256
_POSTED_MAX: Final = 1024  # writes a QP has at a time; more wait here
LAST: Final = 1 << 31  # bit of the immediate: the sender posts nothing after this message
MEMORY_BYTES_MAX = 4 << 30
"""The memory of a host's workloads at most. A successful allocation says little: Linux promises more than it has."""


class MemoryRefusedError(WorkloadError):
    """A workload needs more memory than its host has left for it."""

    def __init__(self, message: str, needed_bytes: int, common_bytes: int = 0) -> None:
        """`common_bytes` of those needed are `Workload.common_bytes`."""
        super().__init__(message)
        self.needed_bytes = needed_bytes
        self.common_bytes = common_bytes


class WorkloadState(Enum):
    """A workload's life, in this order; FAILED can follow each but FINISHED."""

    PREPARED = "prepared"
    CONNECTED = "connected"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"


SCHEDULED: Final = WorkloadState.SCHEDULED
UNDER_WAY: Final = (WorkloadState.RUNNING, WorkloadState.STOPPING)
OVER: Final = (WorkloadState.FINISHED, WorkloadState.FAILED)


@dataclass(frozen=True, slots=True)
class Setup:
    """Who runs the workload and with what. `clock` is read for latencies and for the cost of verifying only."""

    name: str
    kind: str
    host: str
    ranks: tuple[str, ...]
    transport: Transport
    journal: Callable[[str, Mapping[str, Any]], None]
    clock: Callable[[], int]
    memory_bytes_max: int = MEMORY_BYTES_MAX
    """The memory that the host has left for this workload."""
    report_ns: int = 100_000_000
    """How often a stream journals what it has received."""

    @property
    def rank(self) -> int:
        """This host's place in `ranks`, from 0."""
        return self.ranks.index(self.host)


class Workload:
    """The common part. A kind says who its peers are, how many bytes each writes here, and what happens when."""

    OPTIONS: ClassVar[type[Options]] = Options
    RANKS_MIN: ClassVar[int] = 2
    RANKS_MAX: ClassVar[int] = 4096
    ALIKE: ClassVar[bool] = True
    """Whether all ranks but the first need the same memory."""

    def __init__(self, setup: Setup, options: Options) -> None:
        self.setup = setup
        self.rank = setup.rank
        self.tally = Tally()
        self.state = WorkloadState.PREPARED
        self.cause = ""
        self.started_ns = self.ended_ns = 0
        self._options = options
        self._post_ns, self._completion_ns = options.post_ns, options.completion_ns
        self._at_ns = 0
        inboxes = self.inboxes()
        self._cq = setup.transport.create_cq(max(1, len(inboxes) * options.qps * (RECEIVES + _POSTED_MAX)))
        self._nic_cq = self._cq if isinstance(self._cq, NicQueue) else None
        """The same for direct calls, where it is a NIC's."""
        self.links: dict[str, PeerLink] = {}
        try:
            counted = setup.transport.counted
            self.memory_held_bytes = 0 if counted else sum(inboxes.values()) + self.memory_bytes()
            self._check_memory()
            self.register()
            for peer, inbox_bytes in inboxes.items():
                self.links[peer] = PeerLink(setup.transport, self._cq, peer, options.qps, inbox_bytes, setup.clock())
        except (MemoryError, QueueFull, WorkloadError) as error:
            self._release(setup.clock())
            if isinstance(error, QueueFull):
                raise WorkloadError(f"{setup.kind}: {error}") from error
            raise
        self._posted: dict[int, int] = {}
        self._backlog: dict[int, deque[tuple[Any, ...]]] = {}
        self._to_nic: deque[tuple[int, QueuePair, tuple[Any, ...]]] = deque()
        """Writes on the way through the host: when the NIC has each, its QP and the request."""
        self._from_nic: deque[tuple[int, Completion]] = deque()
        """Completions on the way through the host: when the program has each."""
        for link in self.links.values():
            for qp in link.qps:
                self._posted[qp.qpn], self._backlog[qp.qpn] = 0, deque()
        self._by_qpn = {qp.qpn: (link, index) for link in self.links.values() for index, qp in enumerate(link.qps)}

    # A kind of workload defines these.

    def inboxes(self) -> dict[str, int]:
        """Per peer the bytes of memory it writes here; 0 for a peer that only receives."""
        raise NotImplementedError

    def outbox_bytes(self, peer: str) -> int:
        """How much memory this rank writes to at the peer."""
        raise NotImplementedError

    def memory_bytes(self) -> int:
        """The memory of this rank beside that to which peers write."""
        return 0

    def common_bytes(self) -> int:
        """The part of `memory_bytes` that all ranks in one process share, as they do in virtual time."""
        return 0

    def register(self) -> None:
        """Take and register the memory of `memory_bytes` that messages are sent from. Raises MemoryError."""

    def release(self) -> None:
        """Give back what `register` took, if it did."""

    def begin(self, now_ns: int) -> None:
        """The start has come: post the first messages."""
        raise NotImplementedError

    def sent(self, link: PeerLink, index: int, completion: Completion, now_ns: int) -> None:
        """This rank's write on the link's QP `index` is complete."""
        raise NotImplementedError

    def received(self, link: PeerLink, index: int, immediate: int, now_ns: int) -> None:
        """A write with immediate, and all before it on that QP, has arrived."""
        raise NotImplementedError

    def timer(self, now_ns: int) -> None:
        """`next_timer_ns` has passed."""

    def next_timer_ns(self) -> int:
        """When `timer` is due; NEVER if never."""
        return NEVER

    def request_stop(self, now_ns: int) -> None:
        """Post no more than must be; finish what is under way."""
        raise NotImplementedError

    def table(self) -> ResultTable:
        """The result so far."""
        raise NotImplementedError

    # The host calls these.

    def connect(self, offers: Mapping[str, Mapping[str, Any]], now_ns: int) -> None:
        """Join the QPs with the peers' offers, by host. Raises WorkloadError."""
        self._require_state("connect", WorkloadState.PREPARED)
        missing = sorted(set(self.links) - set(offers))
        if missing:
            raise WorkloadError(f"workload {self.setup.name!r} also needs the offers of {', '.join(missing)}")
        for peer, link in self.links.items():
            link.take_offer(offers[peer], self.outbox_bytes(peer))
        try:
            for link in self.links.values():
                link.connect(now_ns)
        except WorkloadError as error:
            self.fail(str(error), now_ns)  # some QPs are joined, others not
            raise
        self.state = WorkloadState.CONNECTED

    def start(self, at_ns: int) -> None:
        """Begin at that time. Raises WorkloadError unless connected."""
        self._require_state("start", WorkloadState.CONNECTED)
        self._at_ns = at_ns
        self.state = WorkloadState.SCHEDULED

    def stop(self, now_ns: int) -> None:
        """Post nothing new and finish what is under way; fail if nothing has begun."""
        if self.state is WorkloadState.RUNNING:
            self.state = WorkloadState.STOPPING
            self.request_stop(now_ns)
        elif self.state not in OVER and self.state is not WorkloadState.STOPPING:
            self.fail("stopped before it was started", now_ns)

    def close(self, now_ns: int) -> None:
        """Destroy the QPs and give the memory back."""
        self._release(now_ns)

    def deadline_ns(self) -> int:
        """When `step` has something to do at the latest; NEVER for never."""
        if self.state is SCHEDULED:
            return self._at_ns
        if self.state not in UNDER_WAY:
            return NEVER
        due_ns = self.next_timer_ns()
        if self._to_nic and self._to_nic[0][0] < due_ns:
            due_ns = self._to_nic[0][0]
        if self._from_nic and self._from_nic[0][0] < due_ns:
            due_ns = self._from_nic[0][0]
        return due_ns

    def step(self, now_ns: int) -> bool:
        """Take completions and due timers; whether there was anything to do."""
        if self.state is SCHEDULED and now_ns >= self._at_ns:
            self.state = WorkloadState.RUNNING
            self.started_ns = now_ns
            self._journal_state("start", options=self.options_as_json(), rank=self.rank, ranks=self.setup.ranks)
            self.begin(now_ns)
        worked = False
        while completions := self._completed():
            worked = True
            for completion in completions:
                self._receive_again(completion)
                if self._completion_ns:
                    self._from_nic.append((now_ns + self._completion_ns, completion))
                else:
                    self._complete(completion, now_ns)
        if (self._to_nic or self._from_nic) and self._pass_host(now_ns):
            worked = True
        if self.state in UNDER_WAY and self.next_timer_ns() <= now_ns:
            worked = True
            self.timer(now_ns)
        return worked

    def status(self) -> dict[str, Any]:
        """The answer to `workload.status`; JSON-safe."""
        return {"state": self.state.value, "cause": self.cause, "result": self.result()}

    def result(self) -> dict[str, Any]:
        tally = {name: getattr(self.tally, name) for name in Tally.__dataclass_fields__}
        return {**tally, "duration_ns": self.ended_ns - self.started_ns, "table": self.table().as_json()}

    def options_as_json(self) -> dict[str, Any]:
        return {name: getattr(self._options, name) for name in type(self._options).__dataclass_fields__}

    # A kind of workload uses these.

    def post(self, link: PeerLink, index: int, wr_id: int, source: Source, target: int, immediate: int | None) -> None:
        """Write `source` to byte `target` of the peer's memory on QP `index`, when the host and the QP let it."""
        region, offset, length = source
        self.tally.messages_posted += 1
        qp = link.qps[index]
        request = (wr_id, region, offset, length, link.remote_va + target, link.remote_rkey, immediate)
        if self._post_ns:
            self._to_nic.append((self.setup.clock() + self._post_ns, qp, request))
        else:
            self._hand_over(qp, request)

    def _hand_over(self, qp: QueuePair, request: tuple[Any, ...]) -> None:
        """Give the NIC a write, at once or when the QP has room."""
        backlog = self._backlog[qp.qpn]
        if backlog or not self._post_now(qp, request):
            backlog.append(request)

    def _post_now(self, qp: QueuePair, request: tuple[Any, ...]) -> bool:
        """False if the QP has no room; a completion will come, and then there is."""
        if qp.state is not QPState.RTS:
            return True  # its flushed receives tell this workload
        if self._posted[qp.qpn] >= _POSTED_MAX:
            return False
        try:
            qp.post_write(*request)
        except QueueFull:  # the transport was set to shorter queues
            return False
        self._posted[qp.qpn] += 1
        return True

    def finish(self, now_ns: int) -> None:
        """The workload has done everything: write the `stop` line."""
        self._end(WorkloadState.FINISHED, "", now_ns)

    def fail(self, cause: str, now_ns: int) -> None:
        """The workload cannot go on: write the `stop` line with the cause. A workload that is over stays as it is."""
        self._end(WorkloadState.FAILED, cause, now_ns)

    def qp_failed(self, link: PeerLink, index: int, cause: str, now_ns: int) -> None:
        """A request on this QP failed, so all later ones will. Most kinds cannot go on without it."""
        self.fail(f"QP to {link.peer}: {cause}", now_ns)

    def journal(self, kind: str, **fields: Any) -> None:
        """Write a line that names this workload."""
        self.setup.journal(kind, {"workload": self.setup.name, **fields})

    def offers(self) -> dict[str, dict[str, Any]]:
        """What each peer needs to know to connect, by its name."""
        return {peer: link.offer() for peer, link in self.links.items()}

    def qps(self) -> Sequence[QueuePair]:
        return [qp for link in self.links.values() for qp in link.qps]

    def _pass_host(self, now_ns: int) -> bool:
        """Take on what has come through the host by now, in either direction; whether there was anything."""
        passed = False
        while self._to_nic and self._to_nic[0][0] <= now_ns:
            _, qp, request = self._to_nic.popleft()
            self._hand_over(qp, request)
            passed = True
        while self._from_nic and self._from_nic[0][0] <= now_ns:
            self._complete(self._from_nic.popleft()[1], now_ns)
            passed = True
        return passed

    def _completed(self) -> list[Completion]:
        """Some completions of requests that were posted, oldest first; none when there are none."""
        return self._cq.poll(_POLL_LIMIT) if self._nic_cq is None else self._nic_cq.poll(_POLL_LIMIT)

    def _receive_again(self, completion: Completion) -> None:
        """Post the receive of an arrival again. The NIC does not wait for the program with that."""
        if completion.opcode != "recv_imm" or completion.status is not SUCCESS:
            return
        known = self._by_qpn.get(completion.qpn)
        if known is not None and (qp := known[0].qps[known[1]]).state is QPState.RTS:
            qp.post_recv(completion.wr_id)

    def _complete(self, completion: Completion, now_ns: int) -> None:
        known = self._by_qpn.get(completion.qpn)
        if known is None:
            return
        link, index = known
        qp = link.qps[index]
        incoming = completion.opcode == "recv_imm"
        if not incoming:
            self._posted[qp.qpn] -= 1
            if (backlog := self._backlog[qp.qpn]) and self._post_now(qp, backlog[0]):
                backlog.popleft()
        if completion.status is not SUCCESS:
            if not incoming:
                self.tally.messages_failed += 1
            if self.state not in OVER:
                self.qp_failed(link, index, completion.status.value, now_ns)
            return
        if incoming:
            if self.state not in OVER:
                self.received(link, index, completion.immediate or 0, now_ns)
        else:
            self.tally.messages_completed += 1
            self.tally.bytes += completion.byte_len
            if self.state not in OVER:
                self.sent(link, index, completion, now_ns)

    def _end(self, state: WorkloadState, cause: str, now_ns: int) -> None:
        if self.state in OVER:
            return
        self.state, self.cause, self.ended_ns = state, cause, now_ns
        self._journal_state("stop", outcome=state.value, cause=cause, result=self.result())

    def _check_memory(self) -> None:
        setup = self.setup
        if self.memory_held_bytes > setup.memory_bytes_max:
            raise MemoryRefusedError(
                f"{setup.kind}: rank {setup.rank} would need {self.memory_held_bytes} bytes of memory; "
                f"{setup.memory_bytes_max} of {setup.host}'s {MEMORY_BYTES_MAX} are free: "
                "choose a smaller size, depth or number of QPs, or remove a workload",
                self.memory_held_bytes,
                0 if setup.transport.counted else self.common_bytes(),
            )

    def _release(self, now_ns: int) -> None:
        for link in self.links.values():
            link.close(now_ns)
        self.links.clear()
        self.release()

    def _journal_state(self, state: str, **fields: Any) -> None:
        self.setup.journal("workload", {"name": self.setup.name, "workload": self.setup.kind, "state": state, **fields})

    def _require_state(self, verb: str, wanted: WorkloadState) -> None:
        if self.state is not wanted:
            raise WorkloadError(
                f"cannot {verb} workload {self.setup.name!r}: it is {self.state.value}, not {wanted.value}"
            )


Source = tuple[Any, int, int]
"""Registered memory, offset in it, length."""
