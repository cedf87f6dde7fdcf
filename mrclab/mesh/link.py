"""A link: messages to and from one other rank, over one queue pair per direction.

A message travels in chunks. Each chunk is a write with immediate into the next slot of the receiver's inbox, a ring of
`SLOTS` slots. The receiver gives slots back by immediates in the other direction of the same queue pair, so a sender
never has more than `SLOTS` chunks under way and a receive is always posted: MRC has no RNR.
"""

import struct
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

from mrclab.context import Context
from mrclab.cq import CQ, WC, WCOpcode, WCStatus
from mrclab.qp import SendWR

SLOTS = 16
SLOT_BYTES = 1 << 16
HEADER = struct.Struct("<IIQQ8x")  # group, part, sequence, bytes of the whole message
PAYLOAD_BYTES = SLOT_BYTES - HEADER.size
"""A multiple of 16, so no item of a tensor is cut."""
_SCRATCH = SLOTS * SLOT_BYTES  # the place of writes whose bytes mean nothing: credits and pings
_SCRATCH_BYTES = 64
_CREDITS = 4  # messages with credits that can be under way: each gives half of the slots back
_PING = 1 << 32  # a wr_id that no slot has


Call = tuple[int, int]
"""A call of a group: the group's number, and the number of the call, which is the same at all ranks."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Which message a chunk belongs to: `group` and `part` have 32 bits, `sequence` has 64, whose lowest 16 count the
    messages of one call."""

    group: int
    sequence: int
    part: int = 0

    @property
    def call(self) -> Call:
        return self.group, self.sequence >> 16


Deliver = Callable[[Tag, int, memoryview], None]
"""Takes the tag, the bytes of the whole message, and the next chunk, which is valid only during the call."""


class LinkError(RuntimeError):
    """A queue pair has failed: the other rank is dead or cannot be reached."""


class MeshLink:
    """One rank's end. `info` goes to the other rank, whose `info` goes into `connect`."""

    def __init__(self, context: Context, cq: CQ, deliver: Deliver) -> None:
        self._deliver = deliver
        with ExitStack() as made:
            self._staging = made.enter_context(closing(context.reg_mr(_SCRATCH + _SCRATCH_BYTES)))
            self._inbox = made.enter_context(closing(context.reg_mr(_SCRATCH + _SCRATCH_BYTES)))
            self._out = made.enter_context(closing(context.create_qp(cq, max_send_wr=SLOTS + 1, max_recv_wr=_CREDITS)))
            self._in = made.enter_context(closing(context.create_qp(cq, max_send_wr=_CREDITS, max_recv_wr=SLOTS)))
            self._out.post_recv(*range(_CREDITS))
            self._in.post_recv(*range(SLOTS))
            self._made = made.pop_all()
        self.numbers = (self._out.qp_num, self._in.qp_num)
        self._remote: Mapping[str, Any] = {}
        self._sent = self._credits = self._unacknowledged = 0
        self._received = self._owed = self._credit_writes = 0
        self.pinged_ns: int | None = None
        """Since when a ping has been under way."""

    def info(self) -> dict[str, Any]:
        """A plain value (JSON-safe) for the other rank's `connect`."""
        return {
            "out": self._out.info(),
            "in": self._in.info(),
            "inbox": self._inbox.info(),
            "staging": self._staging.info(),
        }

    def connect(self, remote: Mapping[str, Any]) -> None:
        """The other rank's `info`. Both ends must be connected before either posts."""
        self._remote = remote
        self._in.connect(remote["out"])
        self._out.connect(remote["in"])
        self._credits = SLOTS

    def close(self) -> None:
        """Give queue pairs and memory back."""
        self._made.close()

    def room(self) -> bool:
        """Whether a chunk can be posted now: the receiver has a free slot, and so has the staging memory."""
        return self._credits > 0 and self._unacknowledged < SLOTS

    @property
    def idle(self) -> bool:
        """Whether everything that was posted has been acknowledged."""
        return not self._unacknowledged and not self._credit_writes and self.pinged_ns is None

    def payload(self) -> memoryview:
        """The place of the next chunk's bytes, `PAYLOAD_BYTES` long: fill it and call `post`."""
        first = self._sent % SLOTS * SLOT_BYTES
        return self._staging.buf[first + HEADER.size : first + SLOT_BYTES]

    def post(self, tag: Tag, total: int, length: int) -> None:
        """Send the next chunk, `length` bytes of a message of `total` bytes; `room` must be true."""
        slot = self._sent % SLOTS
        first = slot * SLOT_BYTES
        HEADER.pack_into(self._staging.buf, first, tag.group, tag.part, tag.sequence, total)
        inbox = self._remote["inbox"]
        size = HEADER.size + length
        self._out.post_send(
            SendWR(slot, self._staging, first, size, inbox["addr"] + first, inbox["rkey"], imm_data=slot)
        )
        self._sent += 1
        self._credits -= 1
        self._unacknowledged += 1

    def ping(self, now_ns: int) -> None:
        """Write one byte that means nothing, unless one is under way already: a NIC that lives acknowledges it."""
        if self.pinged_ns is None:
            inbox = self._remote["inbox"]
            self._out.post_send(SendWR(_PING, self._staging, _SCRATCH, 1, inbox["addr"] + _SCRATCH, inbox["rkey"]))
            self.pinged_ns = now_ns

    def completed(self, completion: WC) -> None:
        """Take in a completion of either queue pair. Raises `LinkError` if it failed."""
        if completion.status is not WCStatus.SUCCESS:
            raise LinkError(completion.status.value)
        arrived = completion.opcode is WCOpcode.RECV_RDMA_WITH_IMM
        if completion.qp_num == self._in.qp_num:
            if arrived:
                self._arrived(completion.byte_len)
            else:
                self._credit_writes -= 1
                self._give_back()
        elif arrived:
            self._out.post_recv(0)
            self._credits += completion.imm_data or 0
        elif completion.wr_id == _PING:
            self.pinged_ns = None
        else:
            self._unacknowledged -= 1

    def _arrived(self, length: int) -> None:
        first = self._received % SLOTS * SLOT_BYTES
        group, part, sequence, total = HEADER.unpack_from(self._inbox.buf, first)
        chunk = self._inbox.buf[first + HEADER.size : first + length]
        try:
            self._deliver(Tag(group, sequence, part), total, chunk)
        finally:
            chunk.release()
        self._received += 1
        self._owed += 1
        self._give_back()

    def _give_back(self) -> None:
        """Return slots to the sender, half of them at a time, so that credits cost few messages."""
        if self._owed < SLOTS // 2 or self._credit_writes == _CREDITS:
            return
        count, self._owed = self._owed, 0
        self._in.post_recv(*range(count))
        staging = self._remote["staging"]
        place = staging["addr"] + _SCRATCH
        self._in.post_send(SendWR(0, self._inbox, _SCRATCH, 1, place, staging["rkey"], imm_data=count))
        self._credit_writes += 1
