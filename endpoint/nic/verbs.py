"""Queue pairs as verbs see them, for any transport: the state machine, posting, completions (OCP MRC API names).

RESET → INIT → RTR → RTS ⇄ SQD, and from anywhere ERROR and RESET. INIT takes nothing from the peer; RTR needs the
peer's attributes, exchanged out of band. In SQD all writes that were posted before end, and those posted there begin in
RTS. Only writes exist; everything else is refused.

A QP that was reset has the same number and begins a new life: nothing is posted, nothing is counted, and the PSNs start
far behind those of the life before, so that both ends take packets of that life for what they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from endpoint.nic.attributes import PMTU_MAX, PMTU_MIN, VerbError, When, check_modification
from endpoint.nic.config import Limits
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.events import EventLog
from endpoint.nic.memory import FOREIGN, NOTHING, MemoryTable, Rights
from endpoint.nic.message import Message
from endpoint.nic.port import PortSet
from endpoint.nic.scheduler import Agenda, Scheduler
from endpoint.nic.wire import PSN_MASK
from endpoint.nic.work import WorkQueue
from endpoint.transport import CompletionStatus, MemoryRegion, QPInfo, QPState

MESSAGE_MAX = (1 << 32) - 1

RESET_PSNS = 1 << 22
"""A new life begins this far, or up to half as far again, behind the PSNs of the last one: a packet still under way
lies beyond the new window and ahead of it, and is dropped in silence."""

SEND_OPCODES = ("rdma_write", "rdma_write_with_imm")

STEPS: dict[QPState, tuple[QPState, ...]] = {
    QPState.RESET: (QPState.INIT, QPState.ERROR),
    QPState.INIT: (QPState.RTR, QPState.ERROR, QPState.RESET),
    QPState.RTR: (QPState.RTS, QPState.ERROR, QPState.RESET),
    QPState.RTS: (QPState.SQD, QPState.ERROR, QPState.RESET),
    QPState.SQD: (QPState.RTS, QPState.ERROR, QPState.RESET),
    QPState.ERROR: (QPState.RESET, QPState.ERROR),
}
STAYS = (QPState.RESET, QPState.INIT, QPState.RTS, QPState.SQD)
"""A step from one of these to itself changes attributes only."""


class Fail(Protocol):
    """How a half of a QP ends the QP: the given, or the oldest, write completes with `status`."""

    def __call__(self, now_ns: int, status: CompletionStatus, cause: str, message: Message | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class NicContext:
    """The things that all queue pairs of one NIC share: handed to every QP, and by a QP to its halves."""

    limits: Limits
    rng: Random
    ports: PortSet
    memory: MemoryTable
    scheduler: Scheduler
    log: EventLog


class VerbQueuePair:
    """A transport's QP fills in `_make_responder`, `_make_requester`, `_enqueue`, `next_psn` and `handle_timer`.

    `taken` has the attributes that the QP was made with, `known` says which can be modified; `values` are those of now,
    by name.
    """

    def __init__(
        self,
        qpn: int,
        cq: CompletionQueue,
        taken: Mapping[str, Any],
        known: Mapping[str, When],
        values: dict[str, int],
        context: NicContext,
    ) -> None:
        self.qpn = qpn
        self._cq = cq
        self._max_send_wr: int = taken["max_send_wr"]
        self._max_recv_wr: int = taken["max_recv_wr"]
        self._sq_sig_all: bool = taken["sq_sig_all"]
        self._own_pmtu: int = taken["pmtu"]
        self._known = known
        self.values = values
        self._scheduler = context.scheduler
        self._memory = context.memory
        self._log = context.log
        self._rng = context.rng
        self.work = WorkQueue(qpn, cq, self._max_send_wr, self._max_recv_wr)
        self.agenda = Agenda(self._scheduler, self.work)
        self.pmtu = self._own_pmtu
        """Payload bytes of a full packet: ours, and from RTR on what both ends have agreed on."""
        self.state = QPState.RESET
        self.receiving = False
        """In RTR, RTS or SQD."""
        self.sending = False
        """In RTS or SQD."""
        self.rights = Rights(taken["strict"])
        self.started = False
        """RTS was reached: there is a requester."""
        self.cause = ""

    @property
    def silenced(self) -> int:
        """Unsignaled writes that are done, since the QP was in RESET."""
        return self.work.silenced

    @property
    def drained(self) -> bool:
        return self.state is QPState.SQD and not self.work.pending

    @property
    def forgiven(self) -> int:
        return self.rights.forgiven

    @property
    def peer_name(self) -> str | None:
        """The other host, once it is known."""
        return None

    @property
    def refusal(self) -> int:
        """The syndrome with which this end has refused a request of the peer, and gone to ERROR; 0: it has not."""
        return 0

    def _agree_on_pmtu(self, peer: QPInfo) -> None:
        """Both ends take the smaller PMTU. Raises `VerbError`, with both, if the peer's is none."""
        said: Any = peer  # from outside: perhaps no integer, which compiled code would not even read as one
        theirs: Any = self.pmtu if said.pmtu is None else said.pmtu
        if type(theirs) is not int or not PMTU_MIN <= theirs <= PMTU_MAX:
            raise VerbError(
                f"the peer's PMTU is {theirs!r} and ours {self.pmtu}; they can agree on {PMTU_MIN} to {PMTU_MAX} bytes"
            )
        self.pmtu = min(self.pmtu, theirs)

    # --- for a transport to fill in ----------------------------------------------------------------------------

    def _make_responder(self, peer: QPInfo, now_ns: int) -> None:
        raise NotImplementedError

    def _make_requester(self) -> None:
        raise NotImplementedError

    def _leave_peer(self) -> None:
        """Forget the peer and both halves: the QP goes to RESET, or is destroyed."""
        raise NotImplementedError

    @property
    def next_psn(self) -> int:
        """The PSN after the last one that was used; in RTS and after it."""
        raise NotImplementedError

    def _check_values(self, given: Mapping[str, Any]) -> None:
        """Raises `VerbError` for what the ranges alone do not rule out."""

    def _changed(self, given: Mapping[str, Any], now_ns: int) -> None:
        """These values are new in a QP that stays in its state: let the halves know."""

    def _enqueue(self, message: Message) -> None:
        raise NotImplementedError

    def handle_timer(self, now_ns: int) -> None:
        """Do what is due and set the agenda's deadline anew."""
        raise NotImplementedError

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        """This host did not run for `late_ns`, until now: no timer may count that time."""
        raise NotImplementedError

    # --- state -------------------------------------------------------------------------------------------------

    def connect(self, peer: QPInfo, now_ns: int) -> None:
        """RESET → INIT → RTR → RTS with the peer's attributes."""
        self.modify(QPState.INIT, now_ns)
        self.modify(QPState.RTR, now_ns, peer=peer)
        self.modify(QPState.RTS, now_ns)

    def modify(
        self,
        state: QPState | None,
        now_ns: int,
        peer: QPInfo | None = None,
        *,
        cur_state: QPState | None = None,
        **attributes: Any,
    ) -> None:
        """One step of the state machine, or none, with attributes to set on the way; RTR needs the peer's attributes.

        `cur_state` is the state that the caller believes the QP to be in. Raises `VerbError`; nothing is changed then.
        """
        if cur_state is not None and cur_state is not self.state:
            raise VerbError(f"QP {self.qpn} is in {self.state.name}, not in {cur_state.name}; nothing was modified")
        if state is self.state and state in STAYS:
            state = None
        if state is not None and state not in STEPS[self.state]:
            valid = ", ".join(step.name for step in STEPS[self.state])
            raise VerbError(f"QP {self.qpn} is in {self.state.name} and cannot go to {state.name}; valid: {valid}")
        check_modification(self.qpn, self._known, attributes, self.state, state)
        self._check_values(attributes)
        if state is QPState.ERROR:
            self.fail(now_ns, CompletionStatus.FLUSHED, "modified to ERROR")
        elif state is QPState.RESET:
            self._reset(now_ns)
        elif state is None:
            self.values.update(attributes)
            self._changed(attributes, now_ns)
        else:
            self._step(state, now_ns, peer, attributes)
        self.rights.domain = self.values["domain"]

    def _step(self, state: QPState, now_ns: int, peer: QPInfo | None, attributes: Mapping[str, Any]) -> None:
        before = dict(self.values)
        self.values.update(attributes)
        try:
            if state is QPState.RTR:
                if peer is None:
                    raise VerbError(f"QP {self.qpn}: RTR needs the peer's attributes (its QPInfo)")
                self._make_responder(peer, now_ns)
            elif state is QPState.RTS and not self.started:
                self._make_requester()
                self.started = True
        except VerbError:
            self.values.update(before)
            raise
        self._enter(state, now_ns, "modify")
        if self.work.waiting:
            self._scheduler.now_ns = now_ns
            for message in self.work.resume():
                self._enqueue(message)
            self.agenda.wake()

    def _reset(self, now_ns: int) -> None:
        """Begin a new life. Posted work disappears without completions; completed work stays to be polled.

        The scheduler may still have the old agenda in a turn; it finds nothing posted there.
        """
        if self.started:
            self.values["sq_psn"] = (self.next_psn - RESET_PSNS - self._rng.randrange(RESET_PSNS // 2)) & PSN_MASK
        self._leave_peer()
        self.work.discard()
        self.agenda.close()
        self.work = WorkQueue(self.qpn, self._cq, self._max_send_wr, self._max_recv_wr)
        self.agenda = Agenda(self._scheduler, self.work)
        self.pmtu = self._own_pmtu
        self.started = False
        self.cause = ""
        self._enter(QPState.RESET, now_ns, "modify")

    def _enter(self, state: QPState, now_ns: int, cause: str) -> None:
        old, self.state = self.state, state
        self.sending = state in (QPState.RTS, QPState.SQD)
        self.receiving = self.sending or state is QPState.RTR
        self._log.emit(now_ns, "qp", qp=self.qpn, peer=self.peer_name, old=old.value, new=state.value, cause=cause)

    def fail(self, now_ns: int, status: CompletionStatus, cause: str, message: Message | None = None) -> None:
        """Go to ERROR: the given (or oldest) write completes with `status`, all else that is posted is flushed."""
        if self.state is QPState.ERROR:
            return
        self.cause = cause
        self._enter(QPState.ERROR, now_ns, cause)
        self.agenda.close()
        self.work.flush(status, message)

    def close(self) -> None:
        """The QP is destroyed: posted work disappears without completions."""
        self._leave_peer()
        self.work.discard()
        self.state = QPState.RESET
        self.receiving = self.sending = False
        self.agenda.close()

    # --- posting -----------------------------------------------------------------------------------------------

    def post_write(
        self,
        wr_id: int,
        region: MemoryRegion | None,
        offset: int,
        length: int,
        remote_va: int,
        rkey: int,
        immediate: int | None = None,
        *,
        signaled: bool = True,
        solicited: bool = False,
    ) -> None:
        """Write `length` bytes of `region` from `offset` to the peer. Raises `VerbError`, or `QueueFull` to wait.

        A write that is not `signaled` completes only if it fails; the next signaled one tells of its end. `solicited`
        makes the completion of the peer's receive a solicited one. A write of no bytes needs no region, and its place
        and keys are checked by neither end (InfiniBand, C9-88).
        """
        if not self.sending:
            raise VerbError(f"QP {self.qpn} is in {self.state.name}; writes can be posted in RTS and SQD only")
        if not 0 <= length <= MESSAGE_MAX:
            raise VerbError(f"a write of {length} bytes; its length must be from 0 to {MESSAGE_MAX}")
        if not length:
            region, offset = NOTHING, 0
        if region is None:
            raise VerbError(f"a write of {length} bytes needs a region")
        if offset < 0 or offset + length > region.length:
            raise VerbError(f"bytes {offset} to {offset + length} are outside of a region of {region.length}")
        if region is not FOREIGN and not self._memory.holds(region):
            raise VerbError(f"the region with lkey {region.lkey:#x} is not registered here")
        if not 0 <= remote_va <= (1 << 64) - max(length, 1):
            raise VerbError(f"remote address {remote_va:#x} and length {length} do not fit 64 bits")
        if immediate is not None and not 0 <= immediate < 1 << 32:
            raise VerbError(f"immediate {immediate:#x} does not fit 32 bits")
        self.work.reserve_write()
        message = Message(wr_id, region, offset, length, remote_va, rkey & 0xFFFFFFFF, immediate, self.pmtu)
        message.signaled = signaled or self._sq_sig_all
        message.solicited = solicited and immediate is not None
        if self.state is QPState.SQD:
            self.work.waiting.append(message)
            return
        self.work.add_write(message)
        self._enqueue(message)
        self.agenda.wake()

    def post_send(self, opcode: str, wr_id: int, *arguments: Any, **named: Any) -> None:
        """The verb by opcode, with the arguments of `post_write`. Raises `VerbError` for all but the two writes."""
        if opcode not in SEND_OPCODES:
            raise VerbError(f"{opcode} is not offered: MRC carries writes only; valid: {', '.join(SEND_OPCODES)}")
        immediate = named.get("immediate", arguments[5] if len(arguments) > 5 else None)
        if (immediate is None) is (opcode == "rdma_write_with_imm"):
            raise VerbError(f"{opcode} {'needs an' if immediate is None else 'takes no'} immediate")
        self.post_write(wr_id, *arguments, **named)

    def post_recv(self, wr_id: int) -> None:
        """Accept one write with immediate. Raises `VerbError`, or `QueueFull` to wait."""
        if self.state is QPState.ERROR:
            raise VerbError(f"QP {self.qpn} is in ERROR; nothing can be posted")
        self.work.add_receive(wr_id)
