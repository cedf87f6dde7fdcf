"""Completions of posted requests. Made and read once per message, so a compiled class and no dataclass."""

from enum import Enum
from typing import Final


class CompletionStatus(Enum):
    """How a posted request ended. After the first other than SUCCESS the QP is in ERROR and flushes later requests."""

    SUCCESS = "success"
    FLUSHED = "flushed"  # the QP went to ERROR before this request was done
    RETRY_EXCEEDED = "retry_exceeded"
    REMOTE_ACCESS_ERROR = "remote_access_error"
    REMOTE_INVALID_REQUEST = "remote_invalid_request"
    REMOTE_OPERATION_ERROR = "remote_operation_error"
    LOCAL_PROTECTION_ERROR = "local_protection_error"


SUCCESS: Final = CompletionStatus.SUCCESS
"""The usual status, without a look-up by name."""


class Completion:
    """The end of one posted write or receive: `wr_id` is the poster's own number, `byte_len` the message's bytes.

    `opcode` is "write" or "write_imm" at the requester, "recv_imm" at the responder. A `solicited` receive is one whose
    write asked for attention (IBV_SEND_SOLICITED).
    """

    def __init__(
        self,
        wr_id: int,
        qpn: int,
        status: CompletionStatus,
        opcode: str,
        byte_len: int,
        immediate: int | None = None,
        solicited: bool = False,
    ) -> None:
        self.wr_id = wr_id
        self.qpn = qpn
        self.status = status
        self.opcode = opcode
        self.byte_len = byte_len
        self.immediate = immediate
        self.solicited = solicited

    def _fields(self) -> tuple[int, int, CompletionStatus, str, int, int | None, bool]:
        return self.wr_id, self.qpn, self.status, self.opcode, self.byte_len, self.immediate, self.solicited

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Completion) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return f"Completion{self._fields()}"
