"""The baseline's queue pair: verbs over one path."""

from collections.abc import Mapping
from typing import Any

from endpoint.nic.attributes import ROCE_ATTRIBUTES, check_peer, check_pmtu, take_attributes
from endpoint.nic.config import NEVER
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.message import Message
from endpoint.nic.packet import Route
from endpoint.nic.verbs import VerbQueuePair
from endpoint.profile import Destination
from endpoint.roce.context import Context
from endpoint.roce.requester import Requester
from endpoint.roce.responder import Answers, Responder
from endpoint.transport import QPInfo


class QueuePair(VerbQueuePair):
    """`route`, `peer_address` and `responder` exist from RTR on, `requester` from RTS on."""

    route: Route
    _row: Destination
    peer_address: bytes
    responder: Responder
    requester: Requester

    def __init__(self, context: Context, qpn: int, cq: CompletionQueue, attributes: Mapping[str, Any]) -> None:
        settings = context.settings
        known: dict[str, Any] = {
            "max_send_wr": settings.max_send_wr,
            "max_recv_wr": settings.max_recv_wr,
            "psn": context.rng.getrandbits(24),
            "pmtu": context.limits.pmtu,
            "sq_sig_all": False,
            "strict": False,
        }
        taken = take_attributes("a RoCE QP", known, attributes)
        check_pmtu(taken["pmtu"], context.limits.pmtu)
        values = {"sq_psn": taken["psn"], "timeout": context.limits.timeout, "domain": 0}
        values["retry_cnt"] = settings.retry_count
        super().__init__(qpn, cq, taken, ROCE_ATTRIBUTES, values, context)
        self._context = context
        self._dest_qpn = -1
        self._peer_name: str | None = None

    @property
    def peer_name(self) -> str | None:
        return self._peer_name

    @property
    def joined(self) -> bool:
        """Whether the peer is known: RTR was reached."""
        return self._dest_qpn >= 0

    @property
    def refusal(self) -> int:
        return self.responder.syndrome if self.joined else 0

    def info(self) -> QPInfo:
        """RC has no PSN window and no limit of writes with immediate: the fields are filled with what fits MRC's."""
        return QPInfo(
            self._context.profile.host,
            self.qpn,
            self.values["sq_psn"],
            mpr=64,
            max_write_imm=self._max_recv_wr,
            pmtu=self._own_pmtu,
        )

    def _make_responder(self, peer: QPInfo, now_ns: int) -> None:
        check_peer(peer, "qpn", "psn")
        context = self._context
        route, row = context.choose_route(peer.host)
        self._agree_on_pmtu(peer)
        self.route, self._row = route, row
        self.peer_address = row.address.packed
        self._peer_name = peer.host
        answers = Answers(self.route, peer.qpn, context.control_class)
        self.responder = Responder(context, self.work, answers, self.rights, self.fail, peer.psn, self.pmtu)
        self._dest_qpn = peer.qpn

    def _make_requester(self) -> None:
        self.requester = Requester(
            self._context,
            self.work,
            self.agenda,
            self.route,
            self.fail,
            dest_qpn=self._dest_qpn,
            psn=self.values["sq_psn"],
            pmtu=self.pmtu,
            base_rtt_ns=self._row.base_rtt_ns,
            retries=self._retries,
        )
        self.agenda.sender = self.requester

    @property
    def next_psn(self) -> int:
        return self.requester.top

    @property
    def _retries(self) -> tuple[int, int]:
        return self.values["timeout"], self.values["retry_cnt"]

    def _changed(self, given: Mapping[str, Any], now_ns: int) -> None:
        if self.sending:
            self._scheduler.now_ns = now_ns
            self.requester.configure(*self._retries)

    def _leave_peer(self) -> None:
        self._dest_qpn, self._peer_name = -1, None

    def _enqueue(self, message: Message) -> None:
        self.requester.enqueue(message)

    def handle_timer(self, now_ns: int) -> None:
        due_ns = self.requester.handle_timer(now_ns) if self.sending else NEVER
        if self.receiving:
            self.agenda.settle(due_ns)

    def host_was_late(self, late_ns: int, now_ns: int) -> None:
        if self.sending:
            self.requester.host_was_late(late_ns, now_ns)

    # --- counters ----------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        """The `qps` fields of the journal's `sample` lines; totals since the QP was made."""
        totals: dict[str, Any] = {"qp": self.qpn, "peer": self.peer_name}
        if self.joined:
            totals.update(self.responder.counters())
        if self.started:
            totals.update(self.requester.counters())
        return totals

    def paths(self) -> dict[int, int]:
        """All packets went by the one path, named by its EV on the wire."""
        return {self.route.ev: self.requester.data_packets} if self.started else {}
