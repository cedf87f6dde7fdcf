"""MRC's queue pair: verbs over a requester, a responder, a set of EVs and their timers."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from endpoint.core import wire
from endpoint.core.config import NEVER
from endpoint.core.cq import CompletionQueue
from endpoint.core.ev_set import EvSet, Path
from endpoint.core.ev_state import EvCause, EvState
from endpoint.core.message import Message
from endpoint.core.packet import VARIANT_MASKED
from endpoint.core.peer import Peer
from endpoint.core.requester import Requester
from endpoint.core.responder import Responder
from endpoint.core.selection import find_selection
from endpoint.core.verbs import VerbQueuePair, check_peer, take_attributes
from endpoint.core.wire import Syndrome
from endpoint.transport import CompletionStatus, QPInfo

if TYPE_CHECKING:
    from endpoint.core.endpoint import Endpoint

RESURRECTION_PROBES_MAX = 8
"""Background probes per QP in one go."""


class QueuePair(VerbQueuePair):
    """`peer`, `evs`, `selection` and `responder` exist from RTR on, `requester` from RTS on."""

    peer: Peer
    evs: EvSet
    responder: Responder
    requester: Requester

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
        taken = take_attributes("a QP", known, attributes)
        self._selection = find_selection(taken["selection"])
        super().__init__(endpoint, qpn, cq, taken["max_send_wr"], taken["max_recv_wr"], endpoint.limits.pmtu)
        self.endpoint = endpoint
        self.mpr: int = taken["mpr"]
        self.max_write_imm: int = taken["max_write_imm"]
        self._start_psn: int = taken["psn"]
        self.dest_masked = -1
        """Destination QP as packed in a BTH, the variant byte as the ICRC has it; -1 before RTR."""
        self._peer_mpr = 0
        self.peer_max_write_imm = 0
        self.reachable = 0
        """Ports that are up here and, as far as we were told, at the peer."""
        self._reverse_due_ns = NEVER
        self._received_seen = self._sent_seen = self._reverse_at = 0

    @property
    def peer_name(self) -> str | None:
        return self.peer.name if self.joined else None

    @property
    def joined(self) -> bool:
        """Whether the peer is known: RTR was reached."""
        return self.dest_masked >= 0

    def info(self) -> QPInfo:
        return QPInfo(self.endpoint.host, self.qpn, self._start_psn, self.mpr, self.max_write_imm)

    # --- state -------------------------------------------------------------------------------------------------

    def _make_responder(self, peer: QPInfo, now_ns: int) -> None:
        endpoint, settings = self.endpoint, self.endpoint.settings
        check_peer(peer, "qpn", "psn", "mpr", "max_write_imm")
        self._peer_mpr = peer.mpr
        self.peer = endpoint.peer(peer.host)
        self.evs = EvSet(
            self.peer.routes,
            endpoint.rng,
            active=settings.evs_active,
            backup=settings.evs_backup,
            floor_share=settings.evs_min_active_share,
            probes_needed=settings.probes_to_resurrect,
            probe_interval_ns=endpoint.limits.probe_interval_ns,
            on_change=self._ev_changed,
        )
        self.selection = self._selection(self.evs, endpoint.rng)
        self.peer_max_write_imm = peer.max_write_imm
        self.dest_masked = VARIANT_MASKED | peer.qpn
        self.responder = Responder(self, peer.psn, peer.trim_nack)
        self.responder.reverse = self.peer.routes_on(-1)
        self.peer.users += 1
        self.refresh_ports()
        endpoint.joined(self, now_ns)

    def _make_requester(self) -> None:
        self.sender = self.requester = Requester(self, self._start_psn, self._peer_mpr * wire.MPR_UNIT)

    def _enqueue(self, message: Message) -> None:
        self.requester.enqueue(message)

    def refuse(self, now_ns: int, syndrome: Syndrome, cause: str) -> None:
        """The responder cannot accept what came: tell the peer and go to ERROR."""
        self.responder.refuse(syndrome)
        self.fail(now_ns, CompletionStatus.FLUSHED, cause)

    def fail(self, now_ns: int, status: CompletionStatus, cause: str, message: Message | None = None) -> None:
        if self.receiving:
            self.peer.left()
        super().fail(now_ns, status, cause, message)

    def close(self) -> None:
        if self.receiving:
            self.peer.left()
        super().close()

    # --- timers ------------------------------------------------------------------------------------------------

    def received(self, now_ns: int) -> None:
        """A write or a probe arrived: a QP that only receives has to keep its reverse EVs fresh."""
        if self._reverse_due_ns == NEVER:
            self._reverse_due_ns = now_ns + self.endpoint.limits.reverse_probe_ns
            self.arm(self._reverse_due_ns)

    def handle_timer(self, now_ns: int) -> None:
        """Look at what is due, always in this order: retransmission and loss probes, background probes of EVs that are
        out, the refresh of reverse EVs. Pacing and port status updates are the endpoint's."""
        due_ns = self.requester.handle_timer(now_ns) if self.sending else NEVER
        if not self.receiving:
            return
        if self.evs.out_count and self.sending:
            for path in self.evs.due_probes(now_ns, RESURRECTION_PROBES_MAX):
                self.requester.probe(path, now_ns)
            due_ns = min(due_ns, max(self.evs.next_probe_ns(), now_ns + 1))
        if now_ns >= self._reverse_due_ns:
            self._refresh_reverse(now_ns)
        self.deadline_ns = min(due_ns, self._reverse_due_ns)

    def _refresh_reverse(self, now_ns: int) -> None:
        """Each round trip with data in and none out: probe a random EV, of one plane after the other."""
        received = self.responder.received_packets + self.responder.probes
        sent = self.requester.data_packets if self.sending else 0
        quiet, self._received_seen = received == self._received_seen, received
        silent, self._sent_seen = sent == self._sent_seen, sent
        if quiet:
            self._reverse_due_ns = NEVER
            return
        self._reverse_due_ns = now_ns + self.endpoint.limits.reverse_probe_ns
        if silent:
            choices = list(self.peer.routes_on(self.reachable).values())
            if choices:
                self._reverse_at = (self._reverse_at + 1) % len(choices)
                self.endpoint.probe_ev(self, choices[self._reverse_at])

    # --- planes and EVs ----------------------------------------------------------------------------------------

    def refresh_ports(self) -> None:
        """Our ports or the peer's have changed."""
        self.reachable = self.endpoint.ports_up & self.peer.ports
        self.evs.set_wanted(self.reachable)
        if self.started:
            self.requester.planes_changed()

    def deny(self, denied: Set[int], now_ns: int) -> None:
        """Make exactly these EVs DENIED; acknowledgements go by others too, where there are any."""
        self.responder.avoid(denied)
        for path in self.evs.paths.values():
            if (path.state is EvState.DENIED) != (path.ev in denied):
                self.evs.signal(path, EvCause.DENY if path.ev in denied else EvCause.ALLOW, now_ns)

    def _ev_changed(self, path: Path, old: EvState, cause: EvCause) -> None:
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
        found: dict[str, Any] = {"qp": self.qpn, "peer": self.peer_name}
        if self.joined:
            found.update(self.responder.counters())
        if self.started:
            found.update(self.requester.counters(), evs_out=self.evs.out_count)
        return found

    def paths(self) -> dict[int, int]:
        """Packets sent per EV."""
        return {path.ev: path.sent for path in self.evs.paths.values() if path.sent} if self.joined else {}
