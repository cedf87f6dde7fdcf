"""Queue pairs as verbs see them, whatever the transport: the state machine, posting, completions (OCP MRC API names).

RESET → INIT → RTR → RTS, and ERROR from anywhere. INIT takes nothing from the peer; RTR needs the peer's attributes,
exchanged out of band. Only writes exist; everything else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from endpoint.core.config import QUEUE_MAX, WRITE_IMM_MAX
from endpoint.core.events import EventLog
from endpoint.core.memory import MemoryTable
from endpoint.core.message import Message
from endpoint.core.scheduler import Agenda, Scheduler
from endpoint.core.work import WorkQueue
from endpoint.transport import CompletionStatus, MemoryRegion, QPInfo, QPState

MESSAGE_MAX = (1 << 32) - 1

PMTU_MIN, PMTU_MAX = 256, 65535
"""Payload bytes of a full packet; the least is InfiniBand's."""

SEND_OPCODES = ("rdma_write", "rdma_write_with_imm")

STEPS: dict[QPState, QPState] = {
    QPState.RESET: QPState.INIT,
    QPState.INIT: QPState.RTR,
    QPState.RTR: QPState.RTS,
}

RANGES: dict[str, tuple[int, int]] = {
    "qpn": (0, (1 << 24) - 1),
    "psn": (0, (1 << 24) - 1),
    "mpr": (1, 64),  # units of 128 PSNs
    "max_write_imm": (1, WRITE_IMM_MAX),
    "max_send_wr": (1, QUEUE_MAX),
    "max_recv_wr": (1, QUEUE_MAX),
    "cc_profile_id": (0, (1 << 64) - 1),
    "pmtu": (PMTU_MIN, PMTU_MAX),
}
"""The range of each integer attribute of a QP."""


class VerbError(ValueError):
    """A verb was called with what the rules do not allow; nothing was changed."""


def take_attributes(kind: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes `known`, with those that are `given` in place of them. Raises `VerbError`."""
    for name in given:
        if name not in known:
            raise VerbError(f"{kind} has no attribute {name!r}; valid: {', '.join(known)}")
    taken = {**known, **given}
    for name, value in taken.items():
        if name in RANGES:
            _check(name, value, name)
        elif isinstance(known[name], bool) and type(value) is not bool:
            raise VerbError(f"{name} is {value!r}; it must be true or false")
    return taken


def check_peer(peer: QPInfo, *names: str) -> None:
    """Raises `VerbError` if one of these attributes of a peer is none that a peer can have."""
    for name in names:
        _check(name, getattr(peer, name), f"the peer's {name}")


def check_pmtu(pmtu: int, largest: int) -> None:
    """Raises `VerbError` for a PMTU that exceeds the profile's."""
    if pmtu > largest:
        raise VerbError(f"pmtu is {pmtu}; the profile's, which fits the ports, is {largest}")


def _check(name: str, value: Any, shown: str) -> None:
    low, high = RANGES[name]
    if type(value) is not int:
        raise VerbError(f"{shown} is {value!r}; it must be an integer")
    if not low <= value <= high:
        raise VerbError(f"{shown} is {value}; it must be from {low} to {high}")


class Fail(Protocol):
    """How a half of a QP ends the QP: the given, or the oldest, write completes with `status`."""

    def __call__(self, now_ns: int, status: CompletionStatus, cause: str, message: Message | None = None) -> None: ...


class VerbQueuePair:
    """A transport's QP fills in `_make_responder`, `_make_requester`, `_enqueue` and `handle_timer`."""

    def __init__(
        self, qpn: int, work: WorkQueue, pmtu: int, *, memory: MemoryTable, log: EventLog, scheduler: Scheduler
    ) -> None:
        self.qpn = qpn
        self.work = work
        self.agenda = Agenda(scheduler, work)
        self._memory = memory
        self._log = log
        self.pmtu = pmtu
        """Payload bytes of a full packet: ours, and from RTR on what both ends have agreed on."""
        self.state = QPState.RESET
        self.receiving = False
        """In RTR or RTS."""
        self.sending = False
        """In RTS."""
        self.started = False
        """RTS was reached: there is a requester."""
        self.cause = ""

    @property
    def peer_name(self) -> str | None:
        """The other host, once it is known."""
        return None

    def _agree_on_pmtu(self, peer: QPInfo) -> None:
        """Both ends take the smaller PMTU. Raises `VerbError`, with both, if the peer's is none."""
        theirs = self.pmtu if peer.pmtu is None else peer.pmtu
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

    def modify(self, state: QPState, now_ns: int, peer: QPInfo | None = None) -> None:
        """One step of the state machine. RTR needs the peer's attributes. Raises `VerbError`."""
        if state is QPState.ERROR:
            self.fail(now_ns, CompletionStatus.FLUSHED, "modified to ERROR")
            return
        step = STEPS.get(self.state)
        if step is not state:
            raise VerbError(
                f"QP {self.qpn} is in {self.state.name} and cannot go to {state.name}; "
                f"valid: {step.name + ', ' if step else ''}ERROR"
            )
        if state is QPState.RTR:
            if peer is None:
                raise VerbError(f"QP {self.qpn}: RTR needs the peer's attributes (its QPInfo)")
            self._make_responder(peer, now_ns)
        elif state is QPState.RTS:
            self._make_requester()
            self.started = True
        self._enter(state, now_ns, "modify")

    def _enter(self, state: QPState, now_ns: int, cause: str) -> None:
        old, self.state = self.state, state
        self.receiving = state in (QPState.RTR, QPState.RTS)
        self.sending = state is QPState.RTS
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
        self.work.discard()
        self.state = QPState.RESET
        self.receiving = self.sending = False
        self.agenda.close()

    # --- posting -----------------------------------------------------------------------------------------------

    def post_write(
        self,
        wr_id: int,
        region: MemoryRegion,
        offset: int,
        length: int,
        remote_va: int,
        rkey: int,
        immediate: int | None = None,
    ) -> None:
        """Write `length` bytes of `region` from `offset` to the peer. Raises `VerbError`, or `QueueFull` to wait."""
        if not self.sending:
            raise VerbError(f"QP {self.qpn} is in {self.state.name}; writes can be posted in RTS only")
        if not 0 < length <= MESSAGE_MAX:
            raise VerbError(f"a write of {length} bytes; its length must be from 1 to {MESSAGE_MAX}")
        if offset < 0 or offset + length > region.length:
            raise VerbError(f"bytes {offset} to {offset + length} are outside of a region of {region.length}")
        if not self._memory.holds(region):
            raise VerbError(f"the region with lkey {region.lkey:#x} is not registered here")
        if not 0 <= remote_va <= (1 << 64) - length:
            raise VerbError(f"remote address {remote_va:#x} and length {length} do not fit 64 bits")
        if immediate is not None and not 0 <= immediate < 1 << 32:
            raise VerbError(f"immediate {immediate:#x} does not fit 32 bits")
        self.work.reserve_write()
        message = Message(wr_id, region, offset, length, remote_va, rkey & 0xFFFFFFFF, immediate, self.pmtu)
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
