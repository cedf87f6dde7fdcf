"""The work of one queue pair: what is posted and not yet completed, and where its completions go."""

from __future__ import annotations

from collections import deque

from endpoint.core.cq import CompletionQueue
from endpoint.core.message import Message
from endpoint.transport import Completion, CompletionStatus, QueueFull


class WorkQueue:
    """Writes and receives of the QP `qpn`; at most `max_send_wr` and `max_recv_wr` of them at a time."""

    __slots__ = ("_cq", "_max_recv_wr", "_max_send_wr", "_posted", "_posted_imm", "_qpn", "pending", "receives")

    def __init__(self, qpn: int, cq: CompletionQueue, max_send_wr: int, max_recv_wr: int) -> None:
        self._qpn = qpn
        self._cq = cq
        self._max_send_wr = max_send_wr
        self._max_recv_wr = max_recv_wr
        self._posted = self._posted_imm = 0
        self.pending: dict[int, Message] = {}
        """Every write that has not completed, by index, in order of posting."""
        self.receives: deque[int] = deque()
        """The work request ids of the posted receives, oldest first."""

    def reserve_write(self) -> None:
        """Room for one more write and its completion. Raises `QueueFull`."""
        if len(self.pending) >= self._max_send_wr:
            raise QueueFull(f"QP {self._qpn} has {self._max_send_wr} writes posted; wait for completions")
        self._cq.reserve()

    def add_write(self, message: Message) -> None:
        """Number the write and keep it until it completes; its room was reserved."""
        message.index = self._posted
        message.imm_index = self._posted_imm
        self._posted += 1
        self._posted_imm += message.immediate is not None
        self.pending[message.index] = message

    def add_receive(self, wr_id: int) -> None:
        """Accept one write with immediate. Raises `QueueFull`."""
        if len(self.receives) >= self._max_recv_wr:
            raise QueueFull(f"QP {self._qpn} has {self._max_recv_wr} receives posted")
        self._cq.reserve()
        self.receives.append(wr_id)

    def complete(self, message: Message) -> None:
        """A write is done; a second time is ignored."""
        if self.pending.pop(message.index, None) is not None:
            self._report(message, CompletionStatus.SUCCESS)

    def deliver(self, immediate: int, length: int) -> bool:
        """Complete a posted receive with an immediate; False if none is posted."""
        if not self.receives:
            return False
        wr_id = self.receives.popleft()
        self._cq.push(Completion(wr_id, self._qpn, CompletionStatus.SUCCESS, "recv_imm", length, immediate))
        return True

    def flush(self, status: CompletionStatus, message: Message | None) -> None:
        """End all work: `message`, or the oldest write, completes with `status`, everything else as flushed."""
        pending, self.pending = self.pending, {}
        guilty = message or next(iter(pending.values()), None)
        for waiting in pending.values():
            self._report(waiting, status if waiting is guilty else CompletionStatus.FLUSHED)
        while self.receives:
            self._cq.push(Completion(self.receives.popleft(), self._qpn, CompletionStatus.FLUSHED, "recv_imm", 0))

    def discard(self) -> None:
        """Forget all work without completions: the QP is destroyed."""
        for _ in range(len(self.pending) + len(self.receives)):
            self._cq.release()
        self.pending = {}
        self.receives.clear()

    def _report(self, message: Message, status: CompletionStatus) -> None:
        opcode = "write" if message.immediate is None else "write_imm"
        self._cq.push(Completion(message.wr_id, self._qpn, status, opcode, message.length, message.immediate))
