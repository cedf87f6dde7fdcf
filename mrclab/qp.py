"""Queue pairs: one end of a reliable connection that carries writes, with or without an immediate."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common import door
from mrclab.connection import Connection
from mrclab.cq import CQ, WC, WCOpcode
from mrclab.errors import QueueFullError, RefusedError
from mrclab.memory import MR


class QPState(enum.Enum):
    """States of a queue pair (InfiniBand Architecture, volume 1, chapter 10, without the SQ states)."""

    RESET = "reset"
    INIT = "init"
    RTR = "rtr"
    RTS = "rts"
    ERR = "error"


@dataclass(frozen=True, slots=True)
class SendWR:
    """A write of `length` bytes of `mr` from byte `offset` to the peer's `remote_addr` under its `rkey`.

    With `imm_data`, 32 bits, it takes one of the peer's receives, whose completion carries the value. Writes with
    immediate complete at the peer in the order of posting, each after everything that was posted before.
    """

    wr_id: int
    mr: MR
    offset: int
    length: int
    remote_addr: int
    rkey: int
    imm_data: int | None = None


@dataclass(frozen=True, slots=True)
class QPAttr:
    """What `QP.query` finds: `cause` is why the QP is in ERR; `counters` are totals of the transport since it was made
    (the `qps` fields of `sample` lines in docs/contracts.md)."""

    qp_state: QPState
    cause: str
    counters: Mapping[str, Any]


class QP:
    """One end of a connection, in RESET; made by `Context.create_qp`. `qp_num` has 24 bits."""

    def __init__(self, connection: Connection, cq: CQ, attributes: Mapping[str, Any]) -> None:
        made = connection.call("create_qp", cq=cq.number, attributes=dict(attributes))
        self.qp_num: int = made["qpn"]
        self.cq = cq
        self.state = QPState.RESET
        """As this end last asked for it; a failure shows in completions and in `query`."""
        self.max_send_wr: int = made["max_send_wr"]
        self.max_recv_wr: int = made["max_recv_wr"]
        self._info: dict[str, Any] = made["info"]
        self._connection = connection
        self._sends = self._receives = 0

    def info(self) -> dict[str, Any]:
        """What the peer's `connect` needs, as a plain value (JSON-safe). How it gets there is the program's affair."""
        return dict(self._info)

    # --- states ------------------------------------------------------------------------------------------------

    def connect(self, peer: Mapping[str, Any]) -> None:
        """RESET → INIT → RTR → RTS with the peer's `info()`. Raises `RefusedError`."""
        self.to_init()
        self.to_rtr(peer)
        self.to_rts()

    def to_init(self) -> None:
        self.modify(QPState.INIT)

    def to_rtr(self, peer: Mapping[str, Any]) -> None:
        """Ready to receive from the peer whose `info()` this is."""
        self.modify(QPState.RTR, peer)

    def to_rts(self) -> None:
        """Ready to send. The peer has to be in RTR before it gets anything."""
        self.modify(QPState.RTS)

    def modify(self, state: QPState, peer: Mapping[str, Any] | None = None) -> None:
        """One step of the state machine. Raises `RefusedError` with the steps that there are."""
        extra = {} if peer is None else {"peer": dict(peer)}
        self.state = QPState(self._connection.call("modify_qp", qpn=self.qp_num, state=state.value, **extra)["state"])

    def query(self) -> QPAttr:
        """Ask the NIC."""
        found = self._connection.call("query_qp", qpn=self.qp_num)
        self.state = QPState(found["state"])
        return QPAttr(self.state, found["cause"], found["counters"])

    def close(self) -> None:
        """Destroy the QP; what is posted on it disappears without completions."""
        self._connection.call("destroy_qp", qpn=self.qp_num)
        self.cq.forget(self.qp_num, self._sends + self._receives)
        self._sends = self._receives = 0

    # --- work requests -----------------------------------------------------------------------------------------

    def post_send(self, *requests: SendWR) -> None:
        """Post writes, any number in one go. Raises `RefusedError` or `QueueFullError`; then none is posted."""
        if self.state not in (QPState.RTS, QPState.ERR):
            raise RefusedError(f"QP {self.qp_num} is in {self.state.name}; writes can be posted in RTS only")
        rows = [self._row(request) for request in requests]
        self._room("writes", self._sends, self.max_send_wr, len(rows))
        self._connection.post(rows)
        self._sends += len(rows)
        self.cq.outstanding += len(rows)

    def post_recv(self, *wr_ids: int) -> None:
        """Accept a write with immediate for each of these numbers; they are in force when this returns.

        Raises `RefusedError` or `QueueFullError`. MRC has no RNR: a write with immediate that finds no receive ends the
        connection, so post them before `connect` and tell the peer of later ones.
        """
        for wr_id in wr_ids:
            _within("wr_id", wr_id, 64)
        self._room("receives", self._receives, self.max_recv_wr, len(wr_ids))
        # Before RTR nothing can arrive, and the verb that goes there is answered after these.
        wait = self.state not in (QPState.RESET, QPState.INIT)
        self._connection.post((_receive(wr_id, self.qp_num) for wr_id in wr_ids), wait=wait)
        self._receives += len(wr_ids)
        self.cq.outstanding += len(wr_ids)

    def completed(self, completion: WC) -> None:
        """A completion of this QP was polled: its place in the queue is free."""
        if completion.opcode is WCOpcode.RECV_RDMA_WITH_IMM:
            self._receives -= 1
        else:
            self._sends -= 1

    def _row(self, request: SendWR) -> door.Request:
        if not 0 <= request.offset <= request.mr.length - request.length or request.length < 1:
            raise RefusedError(
                f"a write of {request.length} bytes from byte {request.offset} of a region of {request.mr.length}"
            )
        imm_data = 0 if request.imm_data is None else request.imm_data
        _within("wr_id", request.wr_id, 64)
        _within("remote_addr + length", request.remote_addr + request.length - 1, 64)
        _within("length", request.length, 32)
        _within("rkey", request.rkey, 32)
        _within("imm_data", imm_data, 32)
        opcode = door.WRITE if request.imm_data is None else door.WRITE_WITH_IMM
        place = request.offset, request.remote_addr, self.qp_num, request.length
        return door.Request(request.wr_id, *place, request.mr.lkey, request.rkey, imm_data, opcode)

    def _room(self, what: str, posted: int, limit: int, more: int) -> None:
        if posted + more > limit:
            raise QueueFullError(f"QP {self.qp_num} has {posted} of at most {limit} {what} posted; poll completions")
        if self.cq.outstanding + more > self.cq.cqe:
            raise QueueFullError(f"{self.cq.outstanding} of {self.cq.cqe} places of the CQ are taken; poll it")


def _receive(wr_id: int, qp_num: int) -> door.Request:
    return door.Request(wr_id, 0, 0, qp_num, 0, 0, 0, 0, door.RECV)


def _within(name: str, value: int, bits: int) -> None:
    if not 0 <= value < 1 << bits:
        raise RefusedError(f"{name} is {value}; it must be from 0 to 2^{bits} - 1")
