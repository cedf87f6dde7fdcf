"""A program's completion queues and queue pairs: how much each has posted and not yet been told the end of.

Completions wait here for as long as the program does not take them. Their number is bounded by what may be posted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from common import uverbs
from endpoint.transport import Completion, CompletionQueue, CompletionStatus, QueuePair
from endpoint.uverbs.channel import Channel

_OPCODES = {"write": uverbs.WC_WRITE, "write_imm": uverbs.WC_WRITE_WITH_IMM, "recv_imm": uverbs.WC_RECV_WITH_IMM}
_AS_COMPLETED = {
    uverbs.WRITE: uverbs.WC_WRITE,
    uverbs.WRITE_WITH_IMM: uverbs.WC_WRITE_WITH_IMM,
    uverbs.RECV: uverbs.WC_RECV_WITH_IMM,
}
_STATUSES = {status: uverbs.STATUSES.index(status.value) for status in CompletionStatus}
_POLL = 256


class GuestQp:
    """A queue pair of a program. `outstanding` and `receiving` count its writes and receives that have not ended,
    `silenced` the unsignaled writes whose end has been noted here.

    With its own `queue`, which has room for all that may be posted, completions are sorted from there: those of
    writes to `completions`, those of receives to `receives`.
    """

    def __init__(
        self,
        qp: QueuePair,
        completions: Completions,
        receives: Completions | None = None,
        queue: CompletionQueue | None = None,
        places: int = 0,
    ) -> None:
        self.qp = qp
        self.completions = completions
        self.receives = receives or completions
        self.queue = queue
        self.places = places
        """Of the program's limit of places in queues, how many the queue takes."""
        self.outstanding = self.receiving = 0
        self.silenced = 0
        self.told_refusal = False
        """Whether the program has been told that this end has refused a request."""
        self.tell_drained = False
        """Whether the program waits to be told that the queue pair, in SQD, has drained."""

    def forget(self) -> None:
        """The queue pair goes, or begins a new life: nothing of the old one is told any more."""
        self.completions.forget(self)
        if self.receives is not self.completions:
            self.receives.forget(self)
        self.outstanding = self.receiving = self.silenced = 0
        self.told_refusal = self.tell_drained = False


class Armed:
    """Whether the next completion of a queue is to be an event on the queue's channel, as `ibv_req_notify_cq` has it.

    `produced` counts what the program can be told of, told or not, and `solicited` is the count up to the last that is
    solicited or has failed. An arming says how much the program has seen: an unseen completion is an event at once, so
    that nothing is missed that came while the arming was on its way.
    """

    def __init__(self, number: int, channel: Channel | None) -> None:
        self._number = number
        self._armed = self._solicited_only = False
        self.channel = channel
        self.produced = self.solicited = 0

    def arm(self, seen: int, solicited_only: bool) -> None:
        self._armed, self._solicited_only = True, solicited_only
        if (self.solicited if solicited_only else self.produced) > seen:
            self._fire()

    def produce(self, solicited: bool) -> None:
        """There is one more to be told of."""
        self.produced += 1
        if solicited:
            self.solicited = self.produced
        if self._armed and (solicited or not self._solicited_only):
            self._fire()

    def forget(self, untold: int) -> None:
        """So many that the program was not told of will not be told."""
        self.produced -= untold
        self.solicited = min(self.solicited, self.produced)

    def _fire(self) -> None:
        self._armed = False
        if self.channel is not None:
            self.channel.fire(self._number)


class Completions:
    """A completion queue of a program. `outstanding` counts requests whose completion has not been taken."""

    def __init__(self, number: int, queue: CompletionQueue, capacity: int, channel: Channel | None = None) -> None:
        self.number = number
        self.queue = queue
        self.capacity = capacity
        self.outstanding = 0
        self.armed = Armed(number, channel)
        self._ready: deque[uverbs.CompletionRow] = deque()
        self._unsignaled: dict[int, GuestQp] = {}
        """The queue pairs that may have unsignaled writes under way."""

    def unsignaled(self, guest: GuestQp) -> None:
        """An unsignaled write was posted."""
        self._unsignaled[guest.qp.qpn] = guest

    def drain(self, qps: Mapping[int, GuestQp]) -> None:
        """Take what the transport has completed."""
        if self._unsignaled:
            self._note_silent()
        self._sort(self.queue, qps)

    def drain_own(self, guest: GuestQp, qps: Mapping[int, GuestQp]) -> None:
        """Take what has completed in the queue of a queue pair whose writes complete here."""
        if guest.queue is not None:
            self._note_silent()
            self._sort(guest.queue, qps)

    def _sort(self, queue: CompletionQueue, qps: Mapping[int, GuestQp]) -> None:
        while completed := queue.poll(_POLL):
            for completion in completed:
                guest, target = qps.get(completion.qpn), self
                if guest is not None and completion.opcode == "recv_imm":
                    guest.receiving -= 1
                    target = guest.receives
                elif guest is not None:
                    guest.outstanding -= 1
                target._complete(completion)

    def _complete(self, completion: Completion) -> None:
        self._ready.append(self._row(completion))
        failed = completion.status is not CompletionStatus.SUCCESS
        self.armed.produce(completion.solicited or failed)

    def _note_silent(self) -> None:
        for guest in list(self._unsignaled.values()):
            done = guest.qp.silenced - guest.silenced
            if done:
                guest.silenced += done
                guest.outstanding -= done
                self.outstanding -= done
                self._ready.append(uverbs.CompletionRow(0, guest.qp.qpn, self.number, done, 0, 0, uverbs.WC_SILENT))
            if not guest.outstanding:
                del self._unsignaled[guest.qp.qpn]

    def flushed(self, guest: GuestQp, request: uverbs.Request) -> None:
        """Complete a request that came when its queue pair had failed already."""
        self.outstanding += 1
        opcode, status = _AS_COMPLETED[request.opcode], _STATUSES[CompletionStatus.FLUSHED]
        self._ready.append(uverbs.CompletionRow(request.wr_id, guest.qp.qpn, self.number, 0, 0, status, opcode))
        self.armed.produce(True)

    def take(self, limit: int) -> list[uverbs.CompletionRow]:
        """Up to `limit` completions, the oldest first; their room is free again."""
        rows = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        self.outstanding -= sum(row.opcode != uverbs.WC_SILENT for row in rows)
        return rows

    def forget(self, guest: GuestQp) -> None:
        """The queue pair goes, or begins a new life: its completions that are not taken yet and its requests go
        with the old one."""
        kept = deque(row for row in self._ready if row.qpn != guest.qp.qpn)
        gone = sum(row.qpn == guest.qp.qpn and row.opcode != uverbs.WC_SILENT for row in self._ready)
        self.outstanding -= gone
        if guest.completions is self:
            self.outstanding -= guest.outstanding
        if guest.receives is self:
            self.outstanding -= guest.receiving
        self.armed.forget(gone)
        self._ready = kept
        self._unsignaled.pop(guest.qp.qpn, None)

    def _row(self, done: Completion) -> uverbs.CompletionRow:
        imm_data = 0 if done.immediate is None else done.immediate
        status, opcode = _STATUSES[done.status], _OPCODES[done.opcode]
        return uverbs.CompletionRow(done.wr_id, done.qpn, self.number, done.byte_len, imm_data, status, opcode)
