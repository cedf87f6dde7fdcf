"""A queue pair: its state machine and verbs (names after OCP's MRC API), and its timers.

RESET → INIT → RTR → RTS, and ERROR from anywhere. INIT takes nothing from the peer; RTR needs the peer's attributes,
exchanged out of band, and makes the responder; RTS makes the requester. Only writes exist; everything else is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from endpoint.core import wire
from endpoint.core.config import NEVER
from endpoint.core.cq import CompletionQueue, QueueFull
from endpoint.core.ev_set import EvSet, Path
from endpoint.core.ev_state import EvCause, EvState
from endpoint.core.message import Message
from endpoint.core.packet import VARIANT_MASKED
from endpoint.core.peer import Peer
from endpoint.core.requester import Requester
from endpoint.core.responder import Responder
from endpoint.core.selection import make_selection
from endpoint.core.wire import Syndrome
from endpoint.transport import Completion, CompletionStatus, MemoryRegion, QPInfo, QPState

if TYPE_CHECKING:
    from endpoint.core.endpoint import Endpoint

MESSAGE_MAX = (1 << 32) - 1
RESURRECTION_PROBES_MAX = 8
"""Background probes per QP in one go."""

STEPS: dict[QPState, QPState] = {
    QPState.RESET: QPState.INIT,
    QPState.INIT: QPState.RTR,
    QPState.RTR: QPState.RTS,
}


class VerbError(ValueError):
    """A verb was called with what the rules do not allow; nothing was changed."""


class QueuePair:
    __slots__ = (
        "_peer_mpr",
        "_recv_seen",
        "_reverse_at",
        "_reverse_due_ns",
        "_sent_seen",
        "_start_psn",
        "active",
        "cause",
        "cq",
        "deadline_ns",
        "dest_masked",
        "endpoint",
        "evs",
        "max_recv_wr",
        "max_send_wr",
        "max_write_imm",
        "mpr",
        "peer",
        "peer_max_write_imm",
        "qpn",
        "reachable",
        "receives",
        "requester",
        "responder",
        "selection",
        "selection_name",
        "state",
    )

    def __init__(self, endpoint: Endpoint, qpn: int, cq: CompletionQueue, attributes: Mapping[str, Any]) -> None:
        settings = endpoint.settings
        known: dict[str, Any] = {
            "mpr": endpoint.limits.mpr,
            "max_write_imm": settings.max_write_imm,
            "max_send_wr": settings.max_send_wr,
            "max_recv_wr": settings.max_recv_wr,
            "psn": endpoint.rng.getrandbits(24),
            "selection": settings.selection,
        }
        for name in attributes:
            if name not in known:
                raise VerbError(f"a QP has no attribute {name!r}; valid: {', '.join(known)}")
        known.update(attributes)
        self.endpoint = endpoint
        self.qpn = qpn
        self.cq = cq
        self.state = QPState.RESET
        self.cause = ""
        self.mpr = int(known["mpr"])
        if not 1 <= self.mpr <= 64:
            raise VerbError(f"mpr is {self.mpr}; it must be from 1 to 64 units of 128 PSNs")
        self.max_write_imm = int(known["max_write_imm"])
        self.max_send_wr = int(known["max_send_wr"])
        self.max_recv_wr = int(known["max_recv_wr"])
        self.selection_name = str(known["selection"])
        self._start_psn = int(known["psn"]) & 0xFFFFFF
        self.receives: deque[int] = deque()
        self.dest_masked = -1
        """Destination QP as packed in a BTH, the variant byte as the ICRC has it; -1 before RTR."""
        self.peer: Peer | None = None
        self.peer_max_write_imm = 0
        self.reachable = 0
        self.deadline_ns = NEVER
        self.active = False
        self._reverse_due_ns = NEVER
        self._recv_seen = self._sent_seen = self._reverse_at = 0
        self.evs: EvSet
        self.responder: Responder
        self.requester: Requester

    # --- state -------------------------------------------------------------------------------------------------

    def info(self) -> QPInfo:
        return QPInfo(self.endpoint.host, self.qpn, self._start_psn, self.mpr, self.max_write_imm)

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
        if STEPS.get(self.state) is not state:
            step = STEPS.get(self.state)
            raise VerbError(
                f"QP {self.qpn} is in {self.state.name} and cannot go to {state.name}; "
                f"valid: {step.name + ', ' if step else ''}ERROR"
            )
        if state is QPState.RTR:
            if peer is None:
                raise VerbError(f"QP {self.qpn}: RTR needs the peer's attributes (its QPInfo)")
            self._ready_to_receive(peer, now_ns)
        elif state is QPState.RTS:
            window = self._peer_mpr * wire.MPR_UNIT
            self.requester = Requester(self, self._start_psn, window)
        self._enter(state, now_ns, "modify")

    def _ready_to_receive(self, info: QPInfo, now_ns: int) -> None:
        endpoint, settings = self.endpoint, self.endpoint.settings
        if not 1 <= info.mpr <= 64:
            raise VerbError(f"the peer's mpr is {info.mpr}; it must be from 1 to 64 units of 128 PSNs")
        peer = endpoint.peer(info.host)
        self.evs = EvSet(
            peer.routes,
            endpoint.rng,
            active=settings.evs_active,
            backup=settings.evs_backup,
            floor_share=settings.evs_min_active_share,
            probes_needed=settings.probes_to_resurrect,
            probe_interval_ns=endpoint.limits.probe_interval_ns,
            on_change=self._ev_changed,
        )
        self.selection = make_selection(self.selection_name, self.evs, endpoint.rng)
        self.peer = peer
        self._peer_mpr = info.mpr
        self.peer_max_write_imm = info.max_write_imm
        self.dest_masked = VARIANT_MASKED | info.qpn & 0xFFFFFF
        self.responder = Responder(self, info.psn & 0xFFFFFF, info.trim_nack)
        self.responder.reverse = peer.routes_on(-1)
        peer.users += 1
        self.refresh_ports()
        endpoint.joined(self, now_ns)

    def _enter(self, state: QPState, now_ns: int, cause: str) -> None:
        old, self.state = self.state, state
        fields = {"qp": self.qpn, "peer": self.peer.name if self.peer else None}
        self.endpoint.emit(now_ns, "qp", **fields, old=old.value, new=state.value, cause=cause)

    def fail(self, now_ns: int, status: CompletionStatus, cause: str, message: Message | None = None) -> None:
        """Go to ERROR: the given (or oldest) write completes with `status`, all else that is posted is flushed."""
        if self.state is QPState.ERROR:
            return
        self.cause = cause
        self._enter(QPState.ERROR, now_ns, cause)
        self.deadline_ns = NEVER
        if self.peer is not None and hasattr(self, "requester"):
            pending, self.requester.pending = self.requester.pending, {}
            guilty = message or next(iter(pending.values()), None)
            for waiting in pending.values():
                opcode = "write" if waiting.immediate is None else "write_imm"
                self.complete(waiting, status if waiting is guilty else CompletionStatus.FLUSHED, opcode)
        while self.receives:
            self.cq.push(Completion(self.receives.popleft(), self.qpn, CompletionStatus.FLUSHED, "recv_imm", 0))

    def refuse(self, now_ns: int, syndrome: Syndrome, cause: str) -> None:
        """The responder cannot accept what came: tell the peer and go to ERROR."""
        self.responder.refuse(syndrome)
        self.fail(now_ns, CompletionStatus.FLUSHED, cause)

    def close(self) -> None:
        """The QP is destroyed: posted work disappears without completions."""
        if self.peer is not None:
            self.peer.users -= 1
        if hasattr(self, "requester"):
            for _ in self.requester.pending:
                self.cq.release()
            self.requester.pending = {}
        for _ in self.receives:
            self.cq.release()
        self.receives.clear()
        self.state = QPState.RESET
        self.deadline_ns = NEVER

    # --- verbs -------------------------------------------------------------------------------------------------

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
        if self.state is not QPState.RTS:
            raise VerbError(f"QP {self.qpn} is in {self.state.name}; writes can be posted in RTS only")
        if not 0 < length <= MESSAGE_MAX:
            raise VerbError(f"a write of {length} bytes; its length must be from 1 to {MESSAGE_MAX}")
        if offset < 0 or offset + length > region.length:
            raise VerbError(f"bytes {offset} to {offset + length} are outside of a region of {region.length}")
        if not self.endpoint.memory.holds(region):
            raise VerbError(f"the region with lkey {region.lkey:#x} is not registered here")
        if not 0 <= remote_va <= (1 << 64) - length:
            raise VerbError(f"remote address {remote_va:#x} and length {length} do not fit 64 bits")
        if immediate is not None and not 0 <= immediate < 1 << 32:
            raise VerbError(f"immediate {immediate:#x} does not fit 32 bits")
        requester = self.requester
        if len(requester.pending) >= self.max_send_wr:
            raise QueueFull(f"QP {self.qpn} has {self.max_send_wr} writes posted; wait for completions")
        self.cq.reserve()
        requester.post(
            Message(wr_id, region, offset, length, remote_va, rkey & 0xFFFFFFFF, immediate, self.endpoint.limits.pmtu)
        )
        self.wake()

    def post_recv(self, wr_id: int) -> None:
        """Accept one write with immediate. Raises `VerbError`, or `QueueFull` to wait."""
        if self.state is QPState.ERROR:
            raise VerbError(f"QP {self.qpn} is in ERROR; nothing can be posted")
        if len(self.receives) >= self.max_recv_wr:
            raise QueueFull(f"QP {self.qpn} has {self.max_recv_wr} receives posted")
        self.cq.reserve()
        self.receives.append(wr_id)

    def complete(self, message: Message, status: CompletionStatus, opcode: str) -> None:
        self.cq.push(Completion(message.wr_id, self.qpn, status, opcode, message.length, message.immediate))

    # --- sending and timers ------------------------------------------------------------------------------------

    def wake(self) -> None:
        """There may be something to send."""
        if not self.active and self.state is QPState.RTS and self.requester.pending:
            self.active = True
            self.endpoint.ready.append(self)

    def arm(self, at_ns: int) -> None:
        """`handle_timer` is wanted by then. A deadline may turn out to be too early; it is never too late."""
        if at_ns < self.deadline_ns:
            self.deadline_ns = at_ns

    def received(self, now_ns: int) -> None:
        """A write arrived: a QP that only receives has to keep its reverse EVs fresh."""
        if self._reverse_due_ns == NEVER:
            self._reverse_due_ns = now_ns + self.endpoint.limits.reverse_probe_ns
            self.arm(self._reverse_due_ns)

    def handle_timer(self, now_ns: int) -> None:
        """Look at the timers in the order of `endpoint.core.timer.Timer`."""
        due_ns = self.requester.handle_timer(now_ns) if self.state is QPState.RTS else NEVER
        if self.state is QPState.ERROR:
            return
        if self.evs.out_count and self.state is QPState.RTS:
            for path in self.evs.due_probes(now_ns, RESURRECTION_PROBES_MAX):
                self.requester.probe(path, now_ns)
            next_ns = self.evs.next_probe_ns()
            if next_ns is not None:
                due_ns = min(due_ns, max(next_ns, now_ns + 1))
        if now_ns >= self._reverse_due_ns:
            self._refresh_reverse(now_ns)
        self.deadline_ns = min(due_ns, self._reverse_due_ns)

    def _refresh_reverse(self, now_ns: int) -> None:
        """Each round trip with data in and none out: probe a random EV, of one plane after the other."""
        received, sent = self.responder.received_packets, self.requester.data_packets if self._sends else 0
        quiet, self._recv_seen = received == self._recv_seen, received
        silent, self._sent_seen = sent == self._sent_seen, sent
        if quiet:
            self._reverse_due_ns = NEVER
            return
        self._reverse_due_ns = now_ns + self.endpoint.limits.reverse_probe_ns
        if silent and self.peer is not None:
            choices = self.peer.routes_on(self.reachable)
            if choices:
                self._reverse_at = (self._reverse_at + 1) % len(choices)
                self.endpoint.probe_ev(self, list(choices.values())[self._reverse_at], now_ns)

    @property
    def _sends(self) -> bool:
        return self.state is QPState.RTS

    # --- planes and EVs ----------------------------------------------------------------------------------------

    def refresh_ports(self) -> None:
        """Our ports or the peer's have changed."""
        assert self.peer is not None
        self.reachable = self.endpoint.ports_up & self.peer.ports
        self.evs.set_wanted(self.reachable)

    def deny(self, denied: set[int], now_ns: int) -> None:
        """Make exactly these EVs DENIED."""
        for path in self.evs.paths.values():
            if (path.state is EvState.DENIED) != (path.ev in denied):
                self.evs.signal(path, EvCause.DENY if path.ev in denied else EvCause.ALLOW, now_ns)

    def _ev_changed(self, path: Path, old: EvState, cause: EvCause) -> None:
        assert self.peer is not None
        now_ns = self.endpoint.now_ns
        if path.state is EvState.ASSUMED_BAD:
            self.arm(now_ns)
        self.endpoint.emit(
            now_ns,
            "ev",
            qp=self.qpn,
            peer=self.peer.name,
            ev=path.ev,
            plane=path.plane.number,
            via=path.route.via,
            old=old.value,
            new=path.state.value,
            cause=cause.value,
        )

    # --- counters ----------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        """The `qps` fields of the journal's `sample` lines; totals since the QP was made."""
        found: dict[str, Any] = {"qp": self.qpn, "peer": self.peer.name if self.peer else None}
        if hasattr(self, "requester"):
            requester = self.requester
            found.update(
                cwnd_bytes=requester.cc.window_bytes,
                inflight_bytes=requester.inflight_bytes,
                rtt_ns=requester.rtt_ns,
                acked_bytes=requester.acked_bytes,
                data_packets=requester.data_packets,
                retransmits=requester.retransmits,
                rto=requester.timeouts,
                trims=requester.trims,
                ecn=requester.marks,
                nacks=requester.nacks,
                skips=requester.skips,
                probes=requester.probes_sent,
                spurious=requester.spurious,
                evs_out=self.evs.out_count,
            )
        if self.dest_masked >= 0:
            responder = self.responder
            found.update(
                received_bytes=responder.received_bytes,
                received_packets=responder.received_packets,
                duplicates=responder.duplicates,
                received_trimmed=responder.trimmed,
                received_marked=responder.marked,
                sacks_sent=responder.sacks_sent,
                nacks_sent=responder.nacks_sent,
            )
        return found

    def paths(self) -> dict[int, int]:
        """Packets sent per EV."""
        return {path.ev: path.sent for path in self.evs.paths.values() if path.sent} if self.peer else {}
