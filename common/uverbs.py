"""The format of uverbs, between a program and the NIC of its host (docs/uverbs.md): both sides must agree on it.

A message is one datagram of an AF_UNIX SOCK_SEQPACKET socket. Verbs that are rare are JSON objects, as on the control
sockets; work requests and completions are rows of fixed size, many to a message, in the machine's own byte order:
both sides are always on one machine.
"""

import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from common.states import QPState

__all__ = [
    "ARM", "COMPLETIONS", "INLINE", "INLINE_BYTES_MAX", "JSON", "MESSAGE_BYTES_MAX", "POST", "RECV", "ROWS_MAX",
    "SOLICITED", "STATES", "STATUSES", "STEPPED", "TIME", "UNSIGNALED", "VERSION", "WAIT", "WC_RECV_WITH_IMM",
    "WC_SILENT", "WC_WRITE", "WC_WRITE_WITH_IMM", "WRITE", "WRITE_WITH_IMM", "WRONG", "Arm", "CompletionRow",
    "FormatError", "ProgramLimits", "Request", "address", "hosts", "pack_arm", "pack_completions", "pack_event",
    "pack_requests", "pack_time", "pack_wait", "refusal", "unpack_arm", "unpack_completions", "unpack_event",
    "unpack_inline", "unpack_requests", "unpack_time", "unpack_wait",
]  # fmt: skip

VERSION = 1
MESSAGE_BYTES_MAX = 16_384
ROWS_MAX = 256
"""Work requests or completions in one message."""
INLINE_BYTES_MAX = 1024
"""Bytes that a write may bring along."""
_PREFIX = "mrclab/uverbs/"

POST, COMPLETIONS, WAIT, TIME, ARM, INLINE, JSON = 1, 2, 3, 4, 5, 6, ord("{")
"""The first byte of a message. WAIT and TIME exist in virtual time only."""

STEPPED = "MRCLAB_UVERBS"
"""The environment variable of a program in virtual time: its socket's descriptor and its host, such as `5:h3`."""

HEAD = struct.Struct("=BxHI")
"""Kind, rows, id: both tables of rows begin with it. Work requests with an id other than 0 are answered once they are
in force, as a verb is: a receive must be there before the peer is told that it may write."""
_REQUEST = struct.Struct("=QQQIIIIIBBxx")
_COMPLETION = struct.Struct("=QIIIIBBxx")
_WAIT = struct.Struct("=BxxxIq")
_TIME = struct.Struct("=B7xQ")
_FOR_EVER = -1

WRITE, WRITE_WITH_IMM, RECV = 0, 1, 2
"""Opcodes of work requests."""
UNSIGNALED, SOLICITED, WRONG = 1, 2, 4
"""Flags of work requests. A wrong one names memory that is not the program's, and completes with that error."""
WC_WRITE, WC_WRITE_WITH_IMM, WC_RECV_WITH_IMM, WC_SILENT = 0, 1, 2, 3
"""Opcodes of completions: the third is of a write of the peer's, and the last is none: `byte_len` unsignaled writes of
the queue pair are done, and their places are free."""
_ARM = struct.Struct("=BBxxIQ")
_EVENT = struct.Struct("=I")

STATUSES = (
    "success",
    "flushed",
    "retry_exceeded",
    "remote_access_error",
    "remote_operation_error",
    "local_protection_error",
    "remote_invalid_request",
)
"""How a request ended; a completion has the place in this list."""
STATES = tuple(state.value for state in QPState)
"""Of a queue pair, as `modify_qp` and `query_qp` name them."""


class FormatError(ValueError):
    """Bytes that are no message of this format."""


class Request(NamedTuple):
    """One posted work request. A receive has `wr_id` and `qpn` only, everything else is 0."""

    wr_id: int  # 64 bits, the poster's own
    offset: int  # of the first byte, in the registered memory
    remote_addr: int  # 64 bits
    qpn: int
    length: int
    lkey: int
    rkey: int
    imm_data: int
    opcode: int
    flags: int = 0


class Arm(NamedTuple):
    """The next completion of a queue is to be an event on its channel; with `solicited`, the next solicited or failed
    one. `seen` counts the completions of the queue that have come so far: any beyond is an event at once."""

    cq: int
    seen: int
    solicited: bool


class CompletionRow(NamedTuple):
    """One completion."""

    wr_id: int
    qpn: int
    cq: int
    byte_len: int
    imm_data: int
    status: int
    opcode: int


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """The most that one program may have at a time. The agent says its own in the answer to `open`."""

    memory_bytes: int = 1 << 30
    regions: int = 256
    cqs: int = 64
    cqe: int = 65_536  # in all completion queues together
    qps: int = 512
    channels: int = 16
    hints: int = 64


def address(host: str) -> str:
    """The abstract name of a host's uverbs socket. The kernel keeps such names per network namespace, without files."""
    return f"\0{_PREFIX}{host}"


def hosts(proc_net_unix: str) -> list[str]:
    """The hosts whose uverbs sockets are open in a network namespace, from the text of its /proc/net/unix."""
    names = set()
    for line in proc_net_unix.splitlines():
        _, at, name = line.partition(f" @{_PREFIX}")
        # Connections show the same name; only the socket that listens has this flag (SO_ACCEPTCON).
        if at and line.split()[3] == "00010000":
            names.add(name)
    return sorted(names)


def refusal(error: str) -> bytes:
    """The last message to a program that is cut off: an answer to no request."""
    return json.dumps({"id": None, "ok": False, "error": error}).encode()


def pack_requests(requests: Iterable[Request], ident: int = 0) -> bytes:
    """One message of at most ROWS_MAX work requests."""
    rows = [_REQUEST.pack(*request) for request in requests]
    return HEAD.pack(POST, len(rows), ident) + b"".join(rows)


def unpack_requests(message: bytes) -> tuple[int, Iterator[Request]]:
    """The id and the work requests. Raises `FormatError` for a message whose length is not that of its rows."""
    ident, rows = _rows(message, _REQUEST.size)
    return ident, map(Request._make, _REQUEST.iter_unpack(rows))


def unpack_inline(message: bytes) -> tuple[Request, bytes]:
    """The write and its bytes. Raises `FormatError` if there are none, too many, or not as many as it says."""
    start = HEAD.size + _REQUEST.size
    if not 0 < len(message) - start <= INLINE_BYTES_MAX:
        raise FormatError(f"an inline message of {len(message)} bytes; its data must be 1 to {INLINE_BYTES_MAX} bytes")
    request = Request._make(_REQUEST.unpack_from(message, HEAD.size))
    if request.length != len(message) - start:
        raise FormatError(f"an inline write of {request.length} bytes that brings {len(message) - start}")
    return request, message[start:]


def pack_completions(rows: Iterable[CompletionRow]) -> bytes:
    """One message of at most ROWS_MAX completions."""
    packed = [_COMPLETION.pack(*row) for row in rows]
    return HEAD.pack(COMPLETIONS, len(packed), 0) + b"".join(packed)


def unpack_completions(message: bytes) -> Iterator[CompletionRow]:
    """Raises `FormatError` for a message whose length is not that of its rows."""
    return map(CompletionRow._make, _COMPLETION.iter_unpack(_rows(message, _COMPLETION.size)[1]))


def pack_wait(seen: int, until_ns: int | None) -> bytes:
    """A program of virtual time that has taken `seen` messages sleeps until a time, or None: until there is news."""
    return _WAIT.pack(WAIT, seen, _FOR_EVER if until_ns is None else until_ns)


def unpack_wait(message: bytes) -> tuple[int, int | None]:
    """`seen` and `until_ns`. Raises `FormatError`."""
    _, seen, until_ns = _unpacked(_WAIT, message)
    return seen, None if until_ns == _FOR_EVER else until_ns


def pack_time(now_ns: int) -> bytes:
    """The time at which a program of virtual time runs, until it waits again."""
    return _TIME.pack(TIME, now_ns)


def unpack_time(message: bytes) -> int:
    """The NIC's time, ns. Raises FormatError for another length."""
    now_ns: int = _TIME.unpack(message)[1]
    return now_ns


def pack_arm(arm: Arm) -> bytes:
    """The message with which a program asks to be told of the next completion."""
    return _ARM.pack(ARM, arm.solicited, arm.cq, arm.seen)


def unpack_arm(message: bytes) -> Arm:
    """Raises `FormatError` for a message of another length."""
    _, solicited, cq, seen = _unpacked(_ARM, message)
    return Arm(cq, seen, bool(solicited))


def pack_event(cq: int) -> bytes:
    """The message of a channel: the number of the queue that has an event."""
    return _EVENT.pack(cq)


def unpack_event(message: bytes) -> int:
    """Raises `FormatError` for a message of another length."""
    return int(_unpacked(_EVENT, message)[0])


def _unpacked(layout: struct.Struct, message: bytes) -> tuple[int, ...]:
    if len(message) != layout.size:
        raise FormatError(f"a message of {len(message)} bytes; {layout.size} are right for its kind")
    return layout.unpack(message)


def _rows(message: bytes, size: int) -> tuple[int, bytes]:
    if len(message) < HEAD.size:
        raise FormatError(f"a message of {len(message)} bytes; {HEAD.size} are the least")
    _, count, ident = HEAD.unpack_from(message)
    if not 0 < count <= ROWS_MAX or len(message) != HEAD.size + count * size:
        raise FormatError(f"a message of {len(message)} bytes that says {count} rows of {size}")
    return ident, message[HEAD.size :]
