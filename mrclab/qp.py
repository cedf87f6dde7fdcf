"""Queue pairs: one end of a reliable connection that carries writes, with or without an immediate."""

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from common import uverbs
from common.states import QPState as QPState
from mrclab.connection import Connection
from mrclab.cq import CQ, WC, WCOpcode
from mrclab.errors import QueueFullError, RefusedError
from mrclab.memory import MR


@dataclass(frozen=True, slots=True)
class SendWR:
    """A write of `length` bytes of `mr` from byte `offset` to the peer's `remote_addr` under its `rkey`. A write of no
    bytes needs no `mr`, and its `remote_addr` and `rkey` are not checked.

    With `imm_data`, 32 bits, it takes one of the peer's receives, whose completion carries the value. Writes with
    immediate complete at the peer in the order of posting, each after everything that was posted before.
    """

    wr_id: int
    mr: MR | None
    offset: int
    length: int
    remote_addr: int
    rkey: int
    imm_data: int | None = None
    signaled: bool = True
    """False: completes only if it fails; the next signaled write of the queue pair tells of its end as well."""
    solicited: bool = False
    """With an immediate: the peer's completion is a solicited one (`CQ.req_notify`)."""


@dataclass(frozen=True, slots=True)
class QPAttr:
    """The answer of `QP.query`: `cause` is why the QP is in ERR; `counters` are totals of the transport since RESET
    (the `qps` fields of `sample` lines in docs/contracts.md); `attributes` are those that `modify` takes."""

    qp_state: QPState
    cause: str
    counters: Mapping[str, Any]
    attributes: Mapping[str, int]


class QPAttrMask(enum.IntFlag):
    """The attributes of a queue pair as the API's masks have them (`mrc_qp_attr_mask`); for `QP.query`."""

    MAX_WIMM = 1 << 0
    MAX_WIMM_DEST = 1 << 1
    MPR = 1 << 2
    MPR_DEST = 1 << 3
    TIMEOUT = 1 << 4
    EV_PROFILE_ID = 1 << 5
    CC_PROFILE_ID = 1 << 6
    HINT = 1 << 7
    RETRY_CNT = 1 << 8
    CAP = 1 << 9


_MASKED = {QPAttrMask.HINT: ("qp_hint",), QPAttrMask.RETRY_CNT: ("linear_cnt", "exp_cnt", "retry_cnt")}
"""The names under a bit, where they are not the bit's own in small letters."""


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
        self.closed: Callable[[], object] = lambda: None
        """Called when the QP is destroyed."""
        self._connection = connection
        self._sends = self._receives = 0

    def info(self) -> dict[str, Any]:
        """The values that the peer's `connect` needs (JSON-safe). How it gets there is the program's affair."""
        return dict(self._info)

    # --- states ------------------------------------------------------------------------------------------------

    def connect(self, peer: Mapping[str, Any]) -> None:
        """RESET → INIT → RTR → RTS with the peer's `info()`. Raises `RefusedError`."""
        self.to_init()
        self.to_rtr(peer)
        self.to_rts()

    def to_init(self, **attributes: Any) -> None:
        """May set `ev_profile_id`, `cc_profile_id`, `qp_hint`, `sq_psn`, and what `to_rtr` may."""
        self.modify(QPState.INIT, **attributes)

    def to_rtr(self, peer: Mapping[str, Any], **attributes: Any) -> None:
        """Ready to receive from the peer whose `info()` this is. May set `mpr_dest`, `max_wimm_dest` and `cap`; the way
        to INIT is the better place, since the peer learns of them by `info()`."""
        self.modify(QPState.RTR, peer, **attributes)

    def to_rts(self, **attributes: Any) -> None:
        """Ready to send. The peer has to be in RTR before it gets anything. May set `timeout`, `linear_cnt`, `exp_cnt`
        (RoCE: `retry_cnt`), `mpr` and `max_wimm`."""
        self.modify(QPState.RTS, **attributes)

    def to_reset(self) -> None:
        """Begin a new life under the same number: what is posted, or has completed and was not polled, is forgotten.
        `info()` is another then, and the peer has to be reset as well."""
        self.modify(QPState.RESET)

    def modify(
        self,
        state: QPState | None = None,
        peer: Mapping[str, Any] | None = None,
        *,
        cur_state: QPState | None = None,
        **attributes: Any,
    ) -> None:
        """One step of the state machine, or none, with attributes: the names that are given are the API's mask.
        `cur_state` is the state that the QP must be in. In SQD what was posted before ends, and later
        posts wait for RTS. Raises `RefusedError`, with what is valid; nothing is changed.
        """
        extra: dict[str, Any] = {"attributes": attributes} if attributes else {}
        if peer is not None:
            extra["peer"] = dict(peer)
        for name, value in (("state", state), ("cur_state", cur_state)):
            if value is not None:
                extra[name] = value.value
        made = self._connection.call("modify_qp", qpn=self.qp_num, **extra)
        self.state, self._info = QPState(made["state"]), made["info"]
        if state is QPState.RESET:
            self._forget()

    def query(self, mask: QPAttrMask | None = None) -> QPAttr:
        """Ask the NIC: for all attributes, or those of the mask."""
        reply = self._connection.call("query_qp", qpn=self.qp_num)
        self.state = QPState(reply["state"])
        attributes = reply["attributes"]
        if mask is not None:
            wanted = {name for bit in mask for name in _MASKED.get(bit, ((bit.name or "").lower(),))}
            attributes = {name: value for name, value in attributes.items() if name in wanted}
        return QPAttr(self.state, reply["cause"], reply["counters"], attributes)

    def close(self) -> None:
        """Destroy the QP; what is posted on it disappears without completions."""
        self._connection.call("destroy_qp", qpn=self.qp_num)
        self._forget()
        self.closed()

    def _forget(self) -> None:
        self.cq.forget(self.qp_num, self._sends + self._receives)
        self._sends = self._receives = 0

    def silenced(self, count: int) -> None:
        """So many unsignaled writes are done: their places are free."""
        self._sends -= count
        self.cq.outstanding -= count

    # --- work requests -----------------------------------------------------------------------------------------

    def post_send(self, *requests: SendWR) -> None:
        """Post writes, any number in one go. Raises `RefusedError` or `QueueFullError`; then none is posted."""
        if self.state not in (QPState.RTS, QPState.SQD, QPState.ERR):
            raise RefusedError(f"QP {self.qp_num} is in {self.state.name}; writes can be posted in RTS and SQD only")
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

    def _row(self, request: SendWR) -> uverbs.Request:
        room = request.mr.length if request.mr else 0
        if request.length and not 0 <= request.offset <= room - request.length:
            raise RefusedError(f"a write of {request.length} bytes from byte {request.offset} of a region of {room}")
        offset, lkey = (request.offset, request.mr.lkey) if request.length and request.mr else (0, 0)
        imm_data = 0 if request.imm_data is None else request.imm_data
        _within("wr_id", request.wr_id, 64)
        _within("remote_addr + length", request.remote_addr + max(request.length - 1, 0), 64)
        _within("length", request.length, 32)
        _within("rkey", request.rkey, 32)
        _within("imm_data", imm_data, 32)
        opcode = uverbs.WRITE if request.imm_data is None else uverbs.WRITE_WITH_IMM
        flags = (0 if request.signaled else uverbs.UNSIGNALED) | (uverbs.SOLICITED if request.solicited else 0)
        place = offset, request.remote_addr, self.qp_num, request.length
        return uverbs.Request(request.wr_id, *place, lkey, request.rkey, imm_data, opcode, flags)

    def _room(self, what: str, posted: int, limit: int, more: int) -> None:
        if posted + more > limit:
            raise QueueFullError(f"QP {self.qp_num} has {posted} of at most {limit} {what} posted; poll completions")
        if self.cq.outstanding + more > self.cq.cqe:
            raise QueueFullError(f"{self.cq.outstanding} of {self.cq.cqe} places of the CQ are taken; poll it")


def _receive(wr_id: int, qp_num: int) -> uverbs.Request:
    return uverbs.Request(wr_id, 0, 0, qp_num, 0, 0, 0, 0, uverbs.RECV)


def _within(name: str, value: int, bits: int) -> None:
    if not 0 <= value < 1 << bits:
        raise RefusedError(f"{name} is {value}; it must be from 0 to 2^{bits} - 1")
