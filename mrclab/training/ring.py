"""A ring all-reduce over writes with immediate: the sum of a vector of float32 over all ranks, the same bits on each.

Each chunk is summed once, around the ring in the order of ranks, and then handed around: so the result depends on
nothing that the network does. A write lands in the place of its step and of the round's parity. The left neighbour can
be one round ahead and never two, for its next round needs something of this one: so no place is overwritten early.

A rank that waits asks both neighbours for a sign of life, as `mrclab.mesh` does: a killed rank's NIC says nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrclab.context import Context
from mrclab.cq import WCOpcode, WCStatus
from mrclab.errors import JobFailedError
from mrclab.mesh.engine import QUIET_RTTS
from mrclab.mesh.link import SLOT_BYTES, SLOTS
from mrclab.mesh.mesh import SILENT_RTTS, patient_rtt_ns
from mrclab.qp import QP, SendWR
from mrclab.training.model import Floats

ITEM_BYTES = 4


@dataclass
class Neighbour:
    """A neighbour in the ring, and since when a ping to it has been under way."""

    rank: int
    qp: QP
    inbox: Mapping[str, Any]
    pinged_ns: int | None = None


class RingAllReduce:
    """`items` float32 over `ranks` ranks, of which this is number `rank`. `info` goes to both neighbours."""

    def __init__(self, context: Context, rank: int, ranks: int, items: int) -> None:
        self.rank = rank
        self.ranks = ranks
        self._context = context
        self._items = items
        self._chunk = -(-items // ranks)
        self._steps = 2 * (ranks - 1)
        self._round = 0
        self._unacknowledged = 0
        self._arrived = 0
        receives = 2 * self._steps
        self._cq = context.create_cq(2 * receives + self._steps)
        self._right = context.create_qp(self._cq, max_send_wr=self._steps + 1, max_recv_wr=1)
        self._left = context.create_qp(self._cq, max_send_wr=1, max_recv_wr=receives)
        self._left.post_recv(*range(receives))
        self._work_mr = context.reg_mr(ranks * self._chunk * ITEM_BYTES, remote_write=False)
        self._inbox_mr = context.reg_mr((2 * self._steps * self._chunk + 1) * ITEM_BYTES)
        self._work: Floats = np.frombuffer(self._work_mr.buf, np.float32).reshape(ranks, self._chunk)
        inbox: Floats = np.frombuffer(self._inbox_mr.buf, np.float32)[:-1]  # the last place takes pings
        self._inbox = inbox.reshape(2, self._steps, self._chunk)
        self._neighbours: dict[int, Neighbour] = {}  # by the number of the queue pair to it
        rtt_ns = patient_rtt_ns(context)
        self._quiet_ns = QUIET_RTTS * rtt_ns
        # A ping to the right waits behind what was sent there: as long as in a mesh for each `SLOTS` slots of it.
        sent_bytes = self._steps * self._chunk * ITEM_BYTES
        self._silent_ns = round(SILENT_RTTS * rtt_ns * max(1.0, sent_bytes / (SLOTS * SLOT_BYTES)))

    def info(self) -> dict[str, Any]:
        """A plain value: what the right neighbour's and the left neighbour's `connect` need."""
        return {"right": self._right.info(), "left": self._left.info(), "inbox": self._inbox_mr.info()}

    def connect(self, infos: Sequence[Mapping[str, Any]]) -> None:
        """The `info` of every rank, in order."""
        right, left = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        self._left.connect(infos[left]["right"])
        self._right.connect(infos[right]["left"])
        self._neighbours = {
            self._left.qp_num: Neighbour(left, self._left, infos[left]["inbox"]),
            self._right.qp_num: Neighbour(right, self._right, infos[right]["inbox"]),
        }

    def sum(self, vector: Floats) -> Floats:
        """The sum over all ranks; every rank has to call it. Raises `JobFailedError`."""
        self._work.reshape(-1)[: self._items] = vector
        result = np.empty_like(self._work)
        inbox = self._inbox[self._round & 1]
        for step in range(self._steps):
            chunk = (self.rank - step) % self.ranks
            if step < self.ranks:  # a sum that is growing, or at last the whole one: from where it was added up
                self._send(step, chunk * self._chunk, from_inbox=False)
            else:  # handed on as it came
                self._send(step, ((self._round & 1) * self._steps + step - 1) * self._chunk, from_inbox=True)
            self._receive()
            came = (chunk - 1) % self.ranks
            if step < self.ranks - 1:
                self._work[came] += inbox[step]
                result[came] = self._work[came]
            else:
                result[came] = inbox[step]
        while self._unacknowledged:  # what was sent must stay as it is until then
            self._look()
        self._left.post_recv(*range(self._steps))
        self._round += 1
        summed: Floats = result.reshape(-1)[: self._items]
        return summed

    def _send(self, step: int, first: int, *, from_inbox: bool) -> None:
        size = self._chunk * ITEM_BYTES
        place = ((self._round & 1) * self._steps + step) * size
        source = self._inbox_mr if from_inbox else self._work_mr
        inbox = self._neighbours[self._right.qp_num].inbox
        request = SendWR(step, source, first * ITEM_BYTES, size, inbox["addr"] + place, inbox["rkey"], imm_data=step)
        self._right.post_send(request)
        self._unacknowledged += 1

    def _receive(self) -> None:
        """Wait for the next write of the left neighbour; they complete in the order of posting."""
        while not self._arrived:
            self._look()
        self._arrived -= 1

    def _look(self) -> None:
        completions = self._cq.wait(self._quiet_ns / 1e9)
        for completion in completions:
            neighbour = self._neighbours[completion.qp_num]
            if completion.status is not WCStatus.SUCCESS:
                status = completion.status.value
                raise JobFailedError(f"rank {self.rank}: the queue pair to rank {neighbour.rank} failed: {status}")
            if completion.opcode is WCOpcode.RECV_RDMA_WITH_IMM:
                self._arrived += 1
            elif completion.opcode is WCOpcode.RDMA_WRITE:
                neighbour.pinged_ns = None
            else:
                self._unacknowledged -= 1
        if not completions:
            self._ping()

    def _ping(self) -> None:
        """Write one byte that means nothing to each neighbour, unless it owes an answer, and not for too long."""
        now_ns = self._context.now_ns()
        for neighbour in self._neighbours.values():
            if neighbour.pinged_ns is None:
                place = neighbour.inbox["addr"] + 2 * self._steps * self._chunk * ITEM_BYTES
                neighbour.qp.post_send(SendWR(0, self._work_mr, 0, 1, place, neighbour.inbox["rkey"]))
                neighbour.pinged_ns = now_ns
            elif now_ns - neighbour.pinged_ns > self._silent_ns:
                silent_s = self._silent_ns / 1e9
                raise JobFailedError(f"rank {self.rank}: rank {neighbour.rank} has not answered for {silent_s:g} s")
