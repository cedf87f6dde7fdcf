"""Completions, and the queue that they wait in."""

import enum
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from common import uverbs
from mrclab.connection import Connection
from mrclab.errors import RefusedError


class WCStatus(enum.Enum):
    """How a work request ended. After the first that is not SUCCESS its QP is in ERROR and flushes the rest."""

    SUCCESS = "success"
    WR_FLUSH_ERR = "flushed"
    RETRY_EXC_ERR = "retry_exceeded"
    REM_ACCESS_ERR = "remote_access_error"
    REM_OP_ERR = "remote_operation_error"
    LOC_PROT_ERR = "local_protection_error"
    REM_INV_REQ_ERR = "remote_invalid_request"


class WCOpcode(enum.Enum):
    """The ended operation: a write of this program, or a receive that a write with immediate of the peer took."""

    RDMA_WRITE = uverbs.WC_WRITE
    RDMA_WRITE_WITH_IMM = uverbs.WC_WRITE_WITH_IMM
    RECV_RDMA_WITH_IMM = uverbs.WC_RECV_WITH_IMM


@dataclass(frozen=True, slots=True)
class WC:
    """A work completion. `imm_data` is None for what has none; `byte_len` counts the bytes of the message."""

    wr_id: int
    status: WCStatus
    opcode: WCOpcode
    byte_len: int
    qp_num: int
    imm_data: int | None


_STATUSES = tuple(WCStatus(name) for name in uverbs.STATUSES)


class ArmedQueue:
    """A queue that may have a channel: each event that was got from there is to be acknowledged."""

    def __init__(self, connection: Connection, verb: str, cqe: int, channel: int | None) -> None:
        self.number: int = connection.call(verb, cqe=cqe, channel=channel)["cq"]
        self.unacknowledged = 0
        """Events of a channel that were got and not acknowledged."""
        self.closed: Callable[[], object] = lambda: None
        """Called when the queue is destroyed."""
        self._connection = connection

    def ack_events(self, count: int = 1) -> None:
        """Acknowledge events of the channel. Raises `RefusedError` for more than there were."""
        if not 0 <= count <= self.unacknowledged:
            raise RefusedError(f"{count} events acknowledged of {self.unacknowledged} that were got")
        self.unacknowledged -= count

    def close(self) -> None:
        """Destroy the queue. Raises `RefusedError` while a QP uses it, or events of it are not acknowledged."""
        if self.unacknowledged:
            raise RefusedError(f"{self.unacknowledged} events of CQ {self.number} are not acknowledged")
        self._connection.call("destroy_cq", cq=self.number)
        self.closed()


class CQ(ArmedQueue):
    """A completion queue for at most `cqe` requests that are posted and not yet polled; made by `Context.create_cq`.

    It never overflows: posting fails before. `outstanding` says how many of the places are taken.
    """

    def __init__(self, connection: Connection, cqe: int, channel: int | None = None) -> None:
        super().__init__(connection, "create_cq", cqe, channel)
        self.cqe = cqe
        self.outstanding = 0
        self.polled: Callable[[WC], None] = lambda completion: None
        """Called with each completion that is taken: the QPs count by it."""
        self._seen = 0
        self._ready: deque[WC] = deque()

    @property
    def ready(self) -> int:
        """Completions that this process has read and `poll` has not returned yet."""
        return len(self._ready)

    def poll(self, num_entries: int = 16) -> list[WC]:
        """Take up to so many completions, the oldest first, without waiting; an empty list when there are none."""
        if not self._ready:
            self._connection.receive(0.0)
        return self._take(num_entries)

    def wait(self, timeout_s: float | None = None, num_entries: int = 16) -> list[WC]:
        """Like `poll`, but sleep until there is one; an empty list only after `timeout_s` seconds."""
        connection = self._connection
        deadline_ns = None if timeout_s is None else connection.now_ns() + round(timeout_s * 1e9)
        while not self._ready:
            left_ns = None if deadline_ns is None else deadline_ns - connection.now_ns()
            if left_ns is not None and left_ns <= 0:
                connection.receive(0.0)
                break
            connection.wait(None if left_ns is None else left_ns / 1e9)
        return self._take(num_entries)

    def req_notify(self, solicited_only: bool = False) -> None:
        """The next completion is to be an event on the queue's channel; with `solicited_only`, the next that its sender
        asked attention for, or that failed. For one event only. What has come before and was not polled is none."""
        self._connection.arm(uverbs.Arm(self.number, self._seen, solicited_only))

    def push(self, row: uverbs.CompletionRow) -> None:
        """A completion has come."""
        self._seen += 1
        status, opcode = _STATUSES[row.status], WCOpcode(row.opcode)
        has_imm = opcode is not WCOpcode.RDMA_WRITE and status is WCStatus.SUCCESS
        self._ready.append(WC(row.wr_id, status, opcode, row.byte_len, row.qpn, row.imm_data if has_imm else None))

    def forget(self, qp_num: int, unfinished: int) -> None:
        """A QP was destroyed: nothing of it is told any more."""
        kept = deque(completion for completion in self._ready if completion.qp_num != qp_num)
        self.outstanding -= unfinished
        self._ready = kept

    def _take(self, limit: int) -> list[WC]:
        taken = [self._ready.popleft() for _ in range(min(limit, len(self._ready)))]
        self.outstanding -= len(taken)
        for completion in taken:
            self.polled(completion)
        return taken
