"""Which posted writes wait for their transport acknowledgement before they complete: those with immediate, or all."""

from collections import deque

from endpoint.nic.message import Message
from endpoint.nic.wire import Syndrome, expand
from endpoint.nic.work import WorkQueue
from endpoint.transport import CompletionStatus

NAK_STATUS: dict[int, CompletionStatus] = {
    Syndrome.NAK_REMOTE_ACCESS_ERROR: CompletionStatus.REMOTE_ACCESS_ERROR,
    Syndrome.NAK_INVALID_REQUEST: CompletionStatus.REMOTE_INVALID_REQUEST,
    Syndrome.NAK_REMOTE_OPERATIONAL_ERROR: CompletionStatus.REMOTE_OPERATION_ERROR,
}
"""How the refused write completes, by the syndrome of a negative transport acknowledgement."""


class Confirmations:
    """One requester's. `max_write_imm` writes with immediate may be under way; with `every` all writes wait."""

    def __init__(self, work: WorkQueue, max_write_imm: int, every: bool) -> None:
        self._work = work
        self._every = every
        self._imms = 0
        """Writes with immediate among those that wait."""
        self.max_write_imm = max_write_imm
        self.waiting: deque[Message] = deque()
        """Begun writes that wait, in order."""

    def holds_back(self, message: Message) -> bool:
        """Whether this write must not begin yet: the peer accepts no more writes with immediate at a time."""
        return message.immediate is not None and self._imms >= self.max_write_imm

    def begin(self, message: Message) -> None:
        """The write is on its way."""
        if message.immediate is not None or self._every:
            self.waiting.append(message)
            self._imms += message.immediate is not None

    def placed(self, message: Message) -> None:
        """All packets of a write are in the peer's memory; unless it is to be confirmed, the write is done."""
        if message.immediate is None and not self._every:
            self._work.complete(message)

    def refuse(self, msn24: int, psn: int) -> Message | None:
        """A NAK about `psn`: the peer has completed `msn24` messages. Those end well, for their SACKs may be lost.

        Returns the refused write, which is the next one; None if it has completed already, or was never posted.

        Completed messages end at or before `psn`. Some implementations give the refused packet's PSN, ours gives the
        last one received in order, so the PSN alone does not say which writes are complete.
        """
        pending = self._work.pending
        index = expand(msn24, next(iter(pending), 0))
        for message in list(pending.values()):
            if message.index < index and 0 <= message.last_psn <= psn:
                self._work.complete(message)
        return pending.get(index)

    def confirm(self, msn24: int) -> bool:
        """The peer has completed so many messages, in order; whether any write is done by that."""
        done = False
        while self.waiting:
            message = self.waiting[0]
            if message.unacked or expand(msn24, message.index) <= message.index:
                break
            self.waiting.popleft()
            self._imms -= message.immediate is not None
            self._work.complete(message)
            done = True
        return done
