"""One host's MRC NIC without I/O: memory, queue pairs, ports and peers behind `endpoint.transport.Transport`.

Frames, port states and the time come in through the methods; frames, events and the next deadline are asked for.
`endpoint.mrc.receiver` takes frames apart.
"""

from __future__ import annotations

from collections.abc import Set
from random import Random
from typing import TYPE_CHECKING, Any

from endpoint.mrc.algorithms import Chosen
from endpoint.mrc.cc_profiles import CcProfiles
from endpoint.mrc.congestion.cc_profile import PathTraits, make_config
from endpoint.mrc.context import Context, Stamps, TrafficClasses
from endpoint.mrc.control import Control
from endpoint.mrc.hint import QpHints
from endpoint.mrc.paths.ev_profile import EvProfiles
from endpoint.mrc.paths.penalty import ReceiverPenalty
from endpoint.mrc.paths.probe_budget import ProbeBudget
from endpoint.mrc.peer import Peer
from endpoint.mrc.peers import PeerTable
from endpoint.mrc.qp import QueuePair
from endpoint.mrc.receiver import Receiver
from endpoint.mrc.seams.crediting import Crediting
from endpoint.nic import dialect as dialects
from endpoint.nic.config import derive, make_settings
from endpoint.nic.cq import CompletionQueue

if TYPE_CHECKING:
    from endpoint.profile import NicProfile


class Endpoint(Receiver):
    """`rng` is the only source of chance; `settings` are those of `endpoint.nic.config.Settings`."""

    def __init__(self, profile: NicProfile, *, rng: Random, now_ns: int = 0, **settings: Any) -> None:
        self.settings = make_settings(settings)
        limits = self.limits = derive(profile, self.settings)
        make_config(self.settings.nscc or {})
        chosen = Chosen(self.settings)
        dialect = dialects.spoken(self.settings.dialect, profile)
        super().__init__(profile, rng, now_ns, dialect, limits, self.settings)
        rtt_ns, jitter_ns = limits.base_rtt_ns, limits.jitter_ns
        path = PathTraits(rtt_ns, rtt_ns, limits.rate_bps, limits.pmtu, jitter_ns=jitter_ns, trimming=limits.trimming)
        self._crediting = Crediting(chosen.granter(path))
        self._context = Context(
            host=profile.host,
            settings=self.settings,
            limits=limits,
            rng=rng,
            ports=self.ports,
            memory=self.memory,
            scheduler=self.scheduler,
            log=self.log,
            classes=TrafficClasses.of(profile.dscp),
            stamps=Stamps.lasting(limits.timeout_ns) if self.settings.timestamps else Stamps(),
            path=path,
            chosen=chosen,
            cc_profiles=CcProfiles(chosen.cc_profile),
            penalty=ReceiverPenalty(limits.base_rtt_ns, enabled=self.settings.rcv_penalty),
            probe_budget=ProbeBudget(self.ports, self.settings.probe_share, limits.probe_interval_ns),
            crediting=self._crediting,
            dialect=dialect,
            solicited_bit=self._solicited_bit,
            hints=QpHints(),
            ev_profiles=EvProfiles(self._known_evs),
            ev_watchers=[],
        )
        self.peers = PeerTable(
            profile,
            self.ports,
            rng,
            dialect,
            interval_ns=limits.probe_interval_ns,
            control_class=self._context.classes.control,
        )
        self._operations = chosen.operations(self.peers, self.ports, self.log, rng, self._peer_ports_changed)
        self.control = Control(self._context, self.qps, self.peers, self._operations)

    def create_qp(self, cq: CompletionQueue, **attributes: Any) -> QueuePair:
        """A QP in RESET. Attributes: mpr, max_write_imm (granted by this end: MPR_DEST, MAX_WIMM_DEST), max_send_wr,
        max_recv_wr, psn, selection, confirm_writes, cc_profile_id, pmtu, sq_sig_all, dynamic_mpr, qp_hint."""
        qp = QueuePair(self._context, self.peers, self._operations, self.next_qpn(), cq, attributes)
        self.qps[qp.qpn] = qp
        return qp

    # --- ports and denylist ------------------------------------------------------------------------------------

    def _known_evs(self) -> frozenset[tuple[int, int]]:
        """Every EV of the profile with its port, to any host."""
        return frozenset((path.ev, path.port) for row in self.profile.destinations.values() for path in row.paths)

    def _ports_settled(self, now_ns: int, up: bool) -> None:
        """A lost port is left at once, with what was queued on it, and every peer is told."""
        self._crediting.ports_changed(now_ns, self.ports)
        for qp in self.qps.values():
            if qp.joined:
                qp.refresh_ports()
                qp.agenda.wake()
        self._operations.announce(now_ns)

    def _peer_ports_changed(self, peer: Peer, before: int, now_ns: int) -> None:
        for port in self.ports:
            if (before ^ peer.ports) & port.bit:
                up = bool(peer.ports & port.bit)
                self.log.plane_event(now_ns, port, "peer", peer.name, up, "port_status_update")
        for qp in self.qps.values():
            if qp.joined and qp.peer is peer:
                qp.refresh_ports()
                qp.agenda.wake()

    def denied(self) -> Set[tuple[str, int]]:
        return self.peers.denied

    def set_denied(self, denied: Set[tuple[str, int]], now_ns: int) -> None:
        self.scheduler.now_ns = now_ns
        self.peers.deny(denied)
        for qp in self.qps.values():
            if qp.joined:
                qp.deny(qp.peer.denied, now_ns)
                qp.agenda.wake()

    # --- timers ------------------------------------------------------------------------------------------------

    def handle_timer(self, now_ns: int) -> None:
        super().handle_timer(now_ns)
        self._operations.handle_timer(now_ns)
        self._crediting.handle_timer(now_ns)

    def timers_ns(self) -> tuple[int, int]:
        due_ns, pacing_ns = super().timers_ns()
        due_ns = min(due_ns, self._operations.next_timer_ns())  # two by two: compiled code calls no function for these
        due_ns = min(due_ns, self._crediting.due_ns)
        return due_ns, pacing_ns
