"""Queue pairs as verbs see them, whatever the transport: the state machine, posting, completions (OCP MRC API names).

RESET → INIT → RTR → RTS, and ERROR from anywhere. INIT takes nothing from the peer; RTR needs the peer's attributes,
exchanged out of band. Only writes exist; everything else is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from endpoint.core.config import NEVER, QUEUE_MAX, WRITE_IMM_MAX
from endpoint.core.cq import CompletionQueue
from endpoint.core.message import Message
from endpoint.transport import Completion, CompletionStatus, MemoryRegion, QPInfo, QPState, QueueFull

if TYPE_CHECKING:
    from endpoint.core.nic import Nic, Sender

MESSAGE_MAX = (1 << 32) - 1

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
}
"""What the integer attributes of a QP may be."""


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
    return taken


def check_peer(peer: QPInfo, *names: str) -> None:
    """Raises `VerbError` if one of these attributes of a peer is none that a peer can have."""
    for name in names:
        _check(name, getattr(peer, name), f"the peer's {name}")


def _check(name: str, value: Any, shown: str) -> None:
    low, high = RANGES[name]
    if type(value) is not int:
        raise VerbError(f"{shown} is {value!r}; it must be an integer")
    if not low <= value <= high:
        raise VerbError(f"{shown} is {value}; it must be from {low} to {high}")


class VerbQueuePair:
    """A transport's QP fills in `_make_responder`, `_make_requester` and `handle_timer`."""

    nic: Nic[Any]
    sender: Sender

    def __init__(
        self, nic: Nic[Any], qpn: int, cq: CompletionQueue, max_send_wr: int, max_recv_wr: int, pmtu: int
    ) -> None:
        self.nic = nic
        self.qpn = qpn
        self.cq = cq
        self.state = QPState.RESET
        self.receiving = False
        """In RTR or RTS."""
        self.sending = False
        """In RTS."""
        self.started = False
        """RTS was reached: there is a requester."""
        self.cause = ""
        self.max_send_wr = max_send_wr
        self.max_recv_wr = max_recv_wr
        self._pmtu = pmtu
        self.receives: deque[int] = deque()
        self.pending: dict[int, Message] = {}
        """Every write that has not completed, by index, in order of posting."""
        self._posted = self._posted_imm = 0
        self.deadline_ns = NEVER
        self.active = False
        """In the endpoint's ring of QPs that may have something to send."""

    @property
    def peer_name(self) -> str | None:
        """The other host, once it is known."""
        return None

    # --- for a transport to fill in ----------------------------------------------------------------------------

    def _make_responder(self, peer: QPInfo, now_ns: int) -> None:
        raise NotImplementedError

    def _make_requester(self) -> None:
        raise NotImplementedError

    def _enqueue(self, message: Message) -> None:
        raise NotImplementedError

    def handle_timer(self, now_ns: int) -> None:
        """Do what is due and set `deadline_ns` anew."""
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
        self.nic.emit(now_ns, "qp", qp=self.qpn, peer=self.peer_name, old=old.value, new=state.value, cause=cause)

    def fail(self, now_ns: int, status: CompletionStatus, cause: str, message: Message | None = None) -> None:
        """Go to ERROR: the given (or oldest) write completes with `status`, all else that is posted is flushed."""
        if self.state is QPState.ERROR:
            return
        self.cause = cause
        self._enter(QPState.ERROR, now_ns, cause)
        self.deadline_ns = NEVER
        pending, self.pending = self.pending, {}
        guilty = message or next(iter(pending.values()), None)
        for waiting in pending.values():
            self._report(waiting, status if waiting is guilty else CompletionStatus.FLUSHED)
        while self.receives:
            self.cq.push(Completion(self.receives.popleft(), self.qpn, CompletionStatus.FLUSHED, "recv_imm", 0))

    def close(self) -> None:
        """The QP is destroyed: posted work disappears without completions."""
        for _ in range(len(self.pending) + len(self.receives)):
            self.cq.release()
        self.pending = {}
        self.receives.clear()
        self.state = QPState.RESET
        self.receiving = self.sending = False
        self.deadline_ns = NEVER

    # --- posting and completing --------------------------------------------------------------------------------

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
        if not self.nic.memory.holds(region):
            raise VerbError(f"the region with lkey {region.lkey:#x} is not registered here")
        if not 0 <= remote_va <= (1 << 64) - length:
            raise VerbError(f"remote address {remote_va:#x} and length {length} do not fit 64 bits")
        if immediate is not None and not 0 <= immediate < 1 << 32:
            raise VerbError(f"immediate {immediate:#x} does not fit 32 bits")
        if len(self.pending) >= self.max_send_wr:
            raise QueueFull(f"QP {self.qpn} has {self.max_send_wr} writes posted; wait for completions")
        self.cq.reserve()
        message = Message(wr_id, region, offset, length, remote_va, rkey & 0xFFFFFFFF, immediate, self._pmtu)
        message.index = self._posted
        message.imm_index = self._posted_imm
        self._posted += 1
        self._posted_imm += immediate is not None
        self.pending[message.index] = message
        self._enqueue(message)
        self.wake()

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
        if len(self.receives) >= self.max_recv_wr:
            raise QueueFull(f"QP {self.qpn} has {self.max_recv_wr} receives posted")
        self.cq.reserve()
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
        self.cq.push(Completion(wr_id, self.qpn, CompletionStatus.SUCCESS, "recv_imm", length, immediate))
        return True

    def _report(self, message: Message, status: CompletionStatus) -> None:
        opcode = "write" if message.immediate is None else "write_imm"
        self.cq.push(Completion(message.wr_id, self.qpn, status, opcode, message.length, message.immediate))

    # --- sending -----------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """There may be something to send."""
        if not self.active and self.sending and self.pending:
            self.active = True
            self.nic.ready.append(self)
            if self.deadline_ns == NEVER:
                self.deadline_ns = self.nic.now_ns  # no port may ever take the packet: the retry rule counts anyway

    def arm(self, at_ns: int) -> None:
        """`handle_timer` is wanted by then. A deadline may turn out to be too early; it is never too late.

        A QP in ERROR has none: it may have failed for one message in the midst of sending others.
        """
        if at_ns < self.deadline_ns and self.receiving:
            self.deadline_ns = at_ns
