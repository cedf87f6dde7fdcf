"""The work of one queue pair: what is posted and not yet completed, and where its completions go.

Writes without immediate may be done in any order. An unsignaled write says nothing of its end, so the completion of a
signaled one says it for all unsignaled ones posted before: it waits until they are done as well.
"""

from collections import deque

from endpoint.completion import SUCCESS, Completion, CompletionStatus
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.message import Message
from endpoint.transport import QueueFull


class WorkQueue:
    """Writes and receives of the QP `qpn`; at most `max_send_wr` and `max_recv_wr` of them at a time."""

    def __init__(self, qpn: int, cq: CompletionQueue, max_send_wr: int, max_recv_wr: int) -> None:
        self._qpn = qpn
        self._cq = cq
        self._max_send_wr = max_send_wr
        self._max_recv_wr = max_recv_wr
        self._posted = self._posted_imm = 0
        self.pending: dict[int, Message] = {}
        """Every write that has not completed, by index, in order of posting."""
        self._silent: dict[int, None] = {}
        """The indices of the unsignaled ones among them, in order."""
        self._held: dict[int, Message] = {}
        """Signaled writes that are done, behind an unsignaled one that is not."""
        self.silenced = 0
        """Unsignaled writes that are done."""
        self.waiting: list[Message] = []
        """Writes that were posted in SQD and begin in RTS."""
        self.receives: deque[int] = deque()
        """The work request ids of the posted receives, oldest first."""

    def reserve_write(self) -> None:
        """Room for one more write and its completion. Raises `QueueFull`."""
        if len(self.pending) + len(self._held) + len(self.waiting) >= self._max_send_wr:
            raise QueueFull(f"QP {self._qpn} has {self._max_send_wr} writes posted; wait for completions")
        self._cq.reserve()

    def add_write(self, message: Message) -> None:
        """Number the write and keep it until it completes; its room was reserved."""
        message.index = self._posted
        message.imm_index = self._posted_imm
        self._posted += 1
        self._posted_imm += message.immediate is not None
        self.pending[message.index] = message
        if not message.signaled:
            self._silent[message.index] = None

    def resume(self) -> list[Message]:
        """Number the writes that have waited, which it returns."""
        resumed, self.waiting = self.waiting, []
        for message in resumed:
            self.add_write(message)
        return resumed

    def add_receive(self, wr_id: int) -> None:
        """Accept one write with immediate. Raises `QueueFull`."""
        if len(self.receives) >= self._max_recv_wr:
            raise QueueFull(f"QP {self._qpn} has {self._max_recv_wr} receives posted")
        self._cq.reserve()
        self.receives.append(wr_id)

    def complete(self, message: Message) -> None:
        """A write is done; a second time is ignored."""
        if self.pending.pop(message.index, None) is None:
            return
        if self._silent:
            self._complete_in_order(message)
        else:
            self._report(message, SUCCESS)

    def _complete_in_order(self, message: Message) -> None:
        silent, held, index = self._silent, self._held, message.index
        oldest = next(iter(silent))
        if message.signaled:
            if index < oldest:
                self._report(message, SUCCESS)
            else:
                held[index] = message
            return
        del silent[index]
        self.silenced += 1
        self._cq.release()
        if index == oldest and held:
            oldest = next(iter(silent), self._posted)
            for freed in sorted(waiting for waiting in held if waiting < oldest):
                self._report(held.pop(freed), SUCCESS)

    def deliver(self, immediate: int, length: int, solicited: bool = False) -> bool:
        """Complete a posted receive with an immediate; False if none is posted."""
        if not self.receives:
            return False
        wr_id = self.receives.popleft()
        done = Completion(wr_id, self._qpn, SUCCESS, "recv_imm", length, immediate, solicited)
        self._cq.push(done)
        return True

    def flush(self, status: CompletionStatus, message: Message | None) -> None:
        """End all work: `message`, or the oldest write, completes with `status`, everything else as flushed.

        Writes that were done behind an unsignaled one are flushed as well, in their places: their success would say
        that the other had succeeded.
        """
        self.resume()
        guilty = message or next(iter(self.pending.values()), None)
        ended = {**self.pending, **self._held}
        for index in sorted(ended) if self._held else ended:
            waiting = ended[index]
            self._report(waiting, status if waiting is guilty else CompletionStatus.FLUSHED)
        self.pending, self._held, self._silent = {}, {}, {}
        while self.receives:
            self._cq.push(Completion(self.receives.popleft(), self._qpn, CompletionStatus.FLUSHED, "recv_imm", 0))

    def discard(self) -> None:
        """Forget all work without completions: the QP is destroyed."""
        for _ in range(len(self.pending) + len(self._held) + len(self.waiting) + len(self.receives)):
            self._cq.release()
        self.pending, self._held, self._silent = {}, {}, {}
        self.receives.clear()
        self.waiting.clear()

    def _report(self, message: Message, status: CompletionStatus) -> None:
        opcode = "write" if message.immediate is None else "write_imm"
        self._cq.push(Completion(message.wr_id, self._qpn, status, opcode, message.length, message.immediate))
