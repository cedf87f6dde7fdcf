"""A program's completion queues and queue pairs: how much each has posted and not yet been told the end of.

Completions wait here for as long as the program does not take them. Their number is bounded by what may be posted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from common import door
from endpoint.transport import Completion, CompletionQueue, CompletionStatus, QueuePair

_OPCODES = {"write": door.WC_WRITE, "write_imm": door.WC_WRITE_WITH_IMM, "recv_imm": door.WC_RECV_WITH_IMM}
_AS_COMPLETED = {
    door.WRITE: door.WC_WRITE,
    door.WRITE_WITH_IMM: door.WC_WRITE_WITH_IMM,
    door.RECV: door.WC_RECV_WITH_IMM,
}
_STATUSES = {status: door.STATUSES.index(status.value) for status in CompletionStatus}
_POLL = 256


class GuestQp:
    """A queue pair of a program. `outstanding` counts its requests that have not completed."""

    __slots__ = ("completions", "outstanding", "qp")

    def __init__(self, qp: QueuePair, completions: Completions) -> None:
        self.qp = qp
        self.completions = completions
        self.outstanding = 0


class Completions:
    """A completion queue of a program. `outstanding` counts requests whose completion has not been taken."""

    __slots__ = ("_ready", "capacity", "number", "outstanding", "queue")

    def __init__(self, number: int, queue: CompletionQueue, capacity: int) -> None:
        self.number = number
        self.queue = queue
        self.capacity = capacity
        self.outstanding = 0
        self._ready: deque[door.Row] = deque()

    def drain(self, qps: Mapping[int, GuestQp]) -> None:
        """Take what the transport has completed."""
        while completed := self.queue.poll(_POLL):
            for completion in completed:
                if guest := qps.get(completion.qpn):
                    guest.outstanding -= 1
                self._ready.append(self._row(completion))

    def flushed(self, guest: GuestQp, request: door.Request) -> None:
        """Complete a request that came when its queue pair had failed already."""
        self.outstanding += 1
        opcode, status = _AS_COMPLETED[request.opcode], _STATUSES[CompletionStatus.FLUSHED]
        self._ready.append(door.Row(request.wr_id, guest.qp.qpn, self.number, 0, 0, status, opcode))

    def take(self, limit: int) -> list[door.Row]:
        """Up to `limit` completions, the oldest first; their room is free again."""
        rows = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        self.outstanding -= len(rows)
        return rows

    def forget(self, guest: GuestQp) -> None:
        """The queue pair goes: its completions that nobody has taken and its requests go with it."""
        kept = deque(row for row in self._ready if row.qpn != guest.qp.qpn)
        self.outstanding -= len(self._ready) - len(kept) + guest.outstanding
        self._ready = kept
        guest.outstanding = 0

    def _row(self, done: Completion) -> door.Row:
        imm_data = 0 if done.immediate is None else done.immediate
        status, opcode = _STATUSES[done.status], _OPCODES[done.opcode]
        return door.Row(done.wr_id, done.qpn, self.number, done.byte_len, imm_data, status, opcode)
