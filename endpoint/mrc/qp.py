"""MRC's queue pair: verbs over a requester, a responder, a set of EVs and their timers."""

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from endpoint.mrc.algorithms import find
from endpoint.mrc.context import Context, QpAlgorithms, QpTerms
from endpoint.mrc.flight import Repair
from endpoint.mrc.operations import EndpointOperations
from endpoint.mrc.paths.ev_events import event_state
from endpoint.mrc.paths.ev_profile import COUNT_MAX, EvMode
from endpoint.mrc.paths.ev_set import EvPath, EvRules, EvSet
from endpoint.mrc.paths.ev_state import EvCause, EvState
from endpoint.mrc.peer import Peer
from endpoint.mrc.peers import PeerTable
from endpoint.mrc.requester import Requester
from endpoint.mrc.responder import Answers, Responder
from endpoint.mrc.reverse import ReverseEvs
from endpoint.mrc.seams.hearers import Timers
from endpoint.nic import wire
from endpoint.nic.attributes import (
    CAP_DYNAMIC_MPR,
    CAP_SVC_TIME_DEST_UNSUPPORTED,
    CAP_TRIM_NACK_DEST_UNSUPPORTED,
    MPR_MAX,
    MRC_ATTRIBUTES,
    VerbError,
    check_peer,
    check_pmtu,
    take_attributes,
)
from endpoint.nic.config import NEVER, WRITE_IMM_MAX
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.message import Message
from endpoint.nic.packet import Route
from endpoint.nic.verbs import VerbQueuePair
from endpoint.transport import CompletionStatus, QPInfo

RESURRECTION_PROBES_MAX = 8
"""Background probes per QP in one go."""


def _usual_attributes(context: Context) -> dict[str, Any]:
    """The attributes that a QP can be made with, and their defaults."""
    settings, limits = context.settings, context.limits
    return {
        "mpr": limits.mpr,
        "max_write_imm": settings.max_write_imm,
        "max_send_wr": settings.max_send_wr,
        "max_recv_wr": settings.max_recv_wr,
        "psn": context.rng.getrandbits(24),
        "selection": settings.selection,
        "confirm_writes": settings.confirm_writes,
        "cc_profile_id": 0,
        "pmtu": limits.pmtu,
        "sq_sig_all": False,
        "dynamic_mpr": False,
        "qp_hint": 0,
        "ev_profile_id": 0,
        "strict": False,
    }


class QueuePair(VerbQueuePair):
    """`peer`, `evs`, `reverse` and `responder` exist from RTR on, `requester` from RTS on."""

    peer: Peer
    evs: EvSet
    reverse: ReverseEvs
    responder: Responder
    requester: Requester

    def __init__(
        self,
        context: Context,
        peers: PeerTable,
        operations: EndpointOperations,
        qpn: int,
        cq: CompletionQueue,
        attributes: Mapping[str, Any],
    ) -> None:
        settings, limits = context.settings, context.limits
        taken = take_attributes("a QP", _usual_attributes(context), attributes)
        check_pmtu(taken["pmtu"], limits.pmtu)
        find("selection", taken["selection"])
        self._selection_name: str = taken["selection"]
        context.cc_profiles.find(taken["cc_profile_id"])
        context.hints.find(taken["qp_hint"])
        context.ev_profiles.online(taken["ev_profile_id"])
        values = {
            "cc_profile_id": taken["cc_profile_id"],
            "qp_hint": taken["qp_hint"],
            "ev_profile_id": taken["ev_profile_id"],
            "sq_psn": taken["psn"],
            "max_wimm_dest": taken["max_write_imm"],
            "mpr_dest": taken["mpr"],
            "max_wimm": WRITE_IMM_MAX,
            "mpr": MPR_MAX,
            "cap": CAP_SVC_TIME_DEST_UNSUPPORTED | CAP_DYNAMIC_MPR * taken["dynamic_mpr"],
            "timeout": limits.timeout,
            "linear_cnt": settings.retry_linear,
            "exp_cnt": settings.retry_exponential,
            "domain": 0,
        }
        super().__init__(qpn, cq, taken, MRC_ATTRIBUTES, values, context)
        self._context = context
        self._peers = peers
        self._operations = operations
        self._confirm_writes: bool = taken["confirm_writes"]
        self._remote: QPInfo | None = None
        self._answering = False
        self._reverse_due_ns = NEVER
        self._received_seen = self._sent_seen = 0

    @property
    def peer_name(self) -> str | None:
        return self.peer.name if self.joined else None

    @property
    def joined(self) -> bool:
        """Whether the peer is known: RTR was reached."""
        return self._remote is not None

    @property
    def refusing(self) -> bool:
        """Whether this end has refused a packet and gone to ERROR, of which the peer may not have heard."""
        return self._answering and self.responder.refusing

    @property
    def refusal(self) -> int:
        return self.responder.syndrome if self._answering else 0

    def info(self) -> QPInfo:
        values = self.values
        granted = values["mpr_dest"], values["max_wimm_dest"]
        return QPInfo(
            self._context.host,
            self.qpn,
            values["sq_psn"],
            *granted,
            pmtu=self._own_pmtu,
            dialect=self._context.dialect.name,
            dynamic_mpr=bool(values["cap"] & CAP_DYNAMIC_MPR),
        )

    @property
    def dynamic_mpr(self) -> bool:
        """Whether both ends want the dynamic MPR; known from RTR on."""
        return bool(self.values["cap"] & CAP_DYNAMIC_MPR) and self._remote is not None and self._remote.dynamic_mpr

    # --- state -------------------------------------------------------------------------------------------------

    def _make_responder(self, peer: QPInfo, now_ns: int) -> None:
        context, settings = self._context, self._context.settings
        check_peer(peer, "qpn", "psn", "mpr", "max_write_imm")
        peer_host = self._peers.named(peer.host)
        profile = context.ev_profiles.online(self.values["ev_profile_id"])
        routes = profile.choose(peer_host.routes)
        if not routes:
            raise VerbError(f"EV profile {profile.number} has no EV that leads to {peer.host}")
        self._agree_on_dialect(peer)
        self._agree_on_pmtu(peer)
        self.peer = peer_host
        self._remote = peer
        self.evs = EvSet(
            routes,
            context.rng,
            EvRules(
                active=settings.evs_active if profile.mode is EvMode.AUTO else COUNT_MAX,
                backup=settings.evs_backup if profile.mode is EvMode.AUTO else COUNT_MAX,
                floor_share=profile.floor_share(settings.evs_min_active_share),
                rest_packets=settings.ev_rest_packets,
                swaps_congested=settings.congested_ev == "swap",
                suspects_planes=settings.plane_suspicion,
                leaves_plane=settings.retransmit_plane == "other",
                probes_needed=settings.probes_to_resurrect,
                probe_interval_ns=context.limits.probe_interval_ns,
            ),
            self._ev_changed,
        )
        self._selection = context.chosen.selection(self._selection_name, self.evs, context.rng)
        self._timers = Timers(self.agenda)
        self._timers.join(self._selection)
        self.reverse = ReverseEvs(self.peer)
        self.responder = Responder(
            context,
            self.work,
            self.reverse,
            Answers(peer.qpn, context.classes.control),
            self.rights,
            self.fail,
            epsn=peer.psn,
            pmtu=self.pmtu,
            window=self.values["mpr_dest"] * wire.MPR_UNIT,
            max_write_imm=self.values["max_wimm_dest"],
            trim_nack=peer.trim_nack and not self.values["cap"] & CAP_TRIM_NACK_DEST_UNSUPPORTED,
        )
        if self.dynamic_mpr:
            self.responder.grant(self.values["mpr_dest"])
        context.penalty.join(self.responder)
        context.crediting.join(self.qpn, self.responder)
        self._answering = True
        self.refresh_ports()
        self.deny(self.peer.denied, now_ns)
        self.peer.joined(context.ports.up, now_ns)

    def _agree_on_dialect(self, peer: QPInfo) -> None:
        """Raises `VerbError` if the peer says that it has another one. A peer that says nothing is taken to agree."""
        whole: Any = peer  # from outside: perhaps no text, which compiled code would not even read as one
        said, ours = whole.dialect, self._context.dialect.name
        if said is not None and said != ours:
            hosts = f"{peer.host} and {self._context.host}"
            raise VerbError(f"{hosts} must have the same setting 'dialect' (got {said!r:.80} and {ours!r})")

    def _make_requester(self) -> None:
        assert self._remote is not None  # RTR came before
        profile = self._context.cc_profiles.find(self.values["cc_profile_id"])
        chosen, base_rtt_ns = self._context.chosen, self.peer.row.base_rtt_ns
        path = replace(
            self._context.path,
            base_rtt_ns=base_rtt_ns,
            mtu_bytes=self.pmtu,
            sharers=self._context.hints.find(self.values["qp_hint"]).sharers,
        )
        terms = QpTerms(
            dest_qpn=self._remote.qpn,
            psn=self.values["sq_psn"],
            pmtu=self.pmtu,
            window=self._window,
            base_rtt_ns=base_rtt_ns,
            max_write_imm=self._imms_allowed,
            confirm_writes=self._confirm_writes,
            retries=self._retries,
            granted=self._remote.mpr * wire.MPR_UNIT if self.dynamic_mpr else None,
        )
        congestion, loss = chosen.congestion(profile, path), chosen.loss(base_rtt_ns, self._context.limits.jitter_ns)
        self._timers.join(congestion)
        self._timers.join(loss)
        self.requester = Requester(
            self._context,
            self.work,
            self.agenda,
            self.evs,
            QpAlgorithms(self._selection, congestion, loss),
            terms,
            self.fail,
            self._repaired,
        )
        self.agenda.sender = self.requester

    def _enqueue(self, message: Message) -> None:
        self.requester.enqueue(message)

    @property
    def remote_qpn(self) -> int:
        """The peer's number of its end; 0 before that is known."""
        return self._remote.qpn if self._remote is not None else 0

    @property
    def next_psn(self) -> int:
        return self.requester.flight.nxt

    @property
    def _window(self) -> int:
        """PSNs that may be under way: no more than this end wants, nor than the peer grants for good."""
        assert self._remote is not None  # asked for from RTR on
        theirs = MPR_MAX if self.dynamic_mpr else self._remote.mpr
        return min(self.values["mpr"], theirs) * wire.MPR_UNIT

    @property
    def _imms_allowed(self) -> int:
        assert self._remote is not None
        return min(self.values["max_wimm"], self._remote.max_write_imm)

    @property
    def _retries(self) -> tuple[int, int, int]:
        return self.values["timeout"], self.values["linear_cnt"], self.values["exp_cnt"]

    def _check_values(self, given: Mapping[str, Any]) -> None:
        if "cc_profile_id" in given:
            self._context.cc_profiles.find(given["cc_profile_id"])
        if "ev_profile_id" in given:
            self._context.ev_profiles.online(given["ev_profile_id"])
        if "qp_hint" in given:
            self._context.hints.find(given["qp_hint"])
        if "mpr_dest" in given and self.receiving and not self.dynamic_mpr:
            raise VerbError(f"QP {self.qpn}: mpr_dest can change in {self.state.name} with the dynamic MPR only")

    def _changed(self, given: Mapping[str, Any], now_ns: int) -> None:
        if self.sending:
            self._scheduler.now_ns = now_ns
        if "mpr_dest" in given and self.receiving:
            self.responder.grant(given["mpr_dest"])
        if self.sending:
            self.requester.configure(self._window, self._imms_allowed, self._retries)

    def fail(self, now_ns: int, status: CompletionStatus, cause: str, message: Message | None = None) -> None:
        if self.receiving:
            self.peer.left()
        self._leave_budgets()
        super().fail(now_ns, status, cause, message)

    def _leave_peer(self) -> None:
        if self.receiving:
            self.peer.left()
        self._leave_budgets()
        if self._answering:  # not where a selection of the user's could not be made
            self._answering = False
            self._context.penalty.leave(self.responder)
            self._context.crediting.leave(self.qpn)
        self._remote = None
        self._reverse_due_ns = NEVER
        self._received_seen = self._sent_seen = 0

    def _leave_budgets(self) -> None:
        for budget in (self._context.probe_budget, self._context.reverse_budget):
            budget.leave(self.qpn)

    # --- timers ------------------------------------------------------------------------------------------------

    def received(self, now_ns: int) -> None:
        """A write or a probe arrived: a QP that only receives has to keep its reverse EVs fresh."""
        if self._reverse_due_ns == NEVER:
            self._reverse_due_ns = now_ns + self._context.limits.reverse_probe_ns
            self.agenda.arm(self._reverse_due_ns)

    def handle_timer(self, now_ns: int) -> None:
        """Look at what is due, always in this order: retransmission and loss probes, background probes of EVs that are
        out, the refresh of reverse EVs, the algorithms' own. Pacing and port status updates are the endpoint's."""
        due_ns = self.requester.handle_timer(now_ns) if self.sending else NEVER
        if not self.receiving:
            return
        if self.evs.out_count and self.sending:
            due_ns = min(due_ns, self._probe_the_absent(now_ns))
        else:
            self._context.probe_budget.leave(self.qpn)
        if now_ns >= self._reverse_due_ns:
            self._refresh_reverse(now_ns)
        self.agenda.settle(min(due_ns, self._reverse_due_ns, self._timers.handle_timer(now_ns)))

    def _probe_the_absent(self, now_ns: int) -> int:
        """Background probes of EVs that are out, as far as the host's budget goes; returns when to come again."""
        budget = self._context.probe_budget
        next_ns = self.evs.next_probe_ns()
        if next_ns > now_ns:
            budget.leave(self.qpn)
            return next_ns
        allowed = budget.allowed(self.qpn, now_ns)
        due = self.evs.due_probes(now_ns, min(RESURRECTION_PROBES_MAX, allowed), self.requester.retry.round_trip_ns)
        for path in due:
            self.requester.probe(path, now_ns)
        next_ns = self.evs.next_probe_ns()
        budget.spend(self.qpn, len(due), more=next_ns <= now_ns and len(due) == allowed)
        next_ns = max(next_ns, budget.next_ns(self.qpn, now_ns))
        return max(next_ns, now_ns + 1)

    def _refresh_reverse(self, now_ns: int) -> None:
        """Each round trip with data in and none out: probe a random EV, of one plane after the other, as far as the
        host's budget goes. What waits for its turn or its answer will tell of EVs by itself."""
        received = self.responder.received_packets + self.responder.probes
        sent = self.requester.data_packets if self.sending else 0
        quiet, self._received_seen = received == self._received_seen, received
        silent, self._sent_seen = sent == self._sent_seen and not self.work.pending, sent
        budget = self._context.reverse_budget
        self._reverse_due_ns = NEVER if quiet else now_ns + self._context.limits.reverse_probe_ns
        if not silent:
            budget.leave(self.qpn)
        if quiet or not silent:  # a packet in fewer than one round trip in two must not cost the turn
            return
        route = self.reverse.candidate() if budget.allowed(self.qpn, now_ns) else None
        budget.spend(self.qpn, int(route is not None), more=route is None)
        if route is not None:
            self.probe_ev(route)

    def probe_ev(self, route: Route) -> None:
        """Send an EV probe; once it is answered, acknowledgements take this EV."""
        self._operations.probe_ev(self.peer, route, self.reverse.confirm)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        if self.sending:
            self.evs.host_was_late(late_ns, now_ns)
            self.requester.host_was_late(late_ns, now_ns)

    # --- planes and EVs ----------------------------------------------------------------------------------------

    @property
    def reachable(self) -> int:
        """Ports that are up here and, as far as we were told, at the peer."""
        return self.reverse.reachable

    def refresh_ports(self) -> None:
        """Our ports or the peer's have changed."""
        self.reverse.reachable = self._context.ports.up & self.peer.ports
        self.evs.set_wanted(self.reverse.reachable)
        if self.started:
            self.requester.planes_changed()

    def freshen(self, ev: int, mark: int) -> None:
        """An acknowledged data EV is good enough for the reverse direction too, unless the mark is ALWAYS_SKIP."""
        path = self.evs.paths.get(ev)
        if path is not None and mark != wire.PathMark.ALWAYS_SKIP:
            self.reverse.confirm(path.route)

    def deny(self, denied: Set[int], now_ns: int) -> None:
        """Make exactly these EVs DENIED, and those of the EV profile; acknowledgements go by others too, where there
        are any."""
        denied = denied | self._context.ev_profiles.query(self.values["ev_profile_id"]).denied
        self.reverse.avoid(denied)
        for path in self.evs.paths.values():
            if (path.state is EvState.DENIED) != (path.ev in denied):
                self.evs.signal(path, EvCause.DENY if path.ev in denied else EvCause.ALLOW, now_ns)

    def _ev_changed(self, path: EvPath, old: EvState, cause: EvCause) -> None:
        now_ns = self._context.scheduler.now_ns
        if path.state is EvState.ASSUMED_BAD:
            self.agenda.arm(now_ns)
        self._tell_watchers(path, old)
        self._context.log.emit(
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

    def _tell_watchers(self, path: EvPath, old: EvState) -> None:
        watchers = self._context.ev_watchers
        if not watchers:
            return
        number, state = self.values["ev_profile_id"], event_state(old, path.state)
        if state & self._context.ev_profiles.query(number).event_mask:
            for watcher in watchers:
                watcher.push(number, path.ev, path.port.number, state, self.qpn, self.peer.name)

    def _repaired(self, repair: Repair, now_ns: int) -> None:
        self._context.log.emit(
            now_ns,
            "repair",
            qp=self.qpn,
            peer=self.peer.name,
            packets=repair.packets,
            late=repair.late,
            sent_ns=repair.sent_ns,
            noticed_ns=repair.noticed_ns,
        )

    # --- counters ----------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        """The `qps` fields of the journal's `sample` lines; totals since the QP was made."""
        totals: dict[str, Any] = {"qp": self.qpn, "peer": self.peer_name}
        if self._answering:
            totals.update(self.responder.counters())
        if self.started:
            totals.update(self.requester.counters(), evs_out=self.evs.out_count, pending=len(self.work.pending))
        return totals

    def paths(self) -> dict[int, int]:
        """Packets sent per EV."""
        return {path.ev: path.sent for path in self.evs.paths.values() if path.sent} if self.joined else {}
