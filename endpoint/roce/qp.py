"""The baseline's queue pair: verbs over one path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from endpoint.core import wire as shared
from endpoint.core.config import NEVER
from endpoint.core.cq import CompletionQueue
from endpoint.core.message import Message
from endpoint.core.packet import Route
from endpoint.core.psn import PSN_MASK
from endpoint.core.verbs import VerbQueuePair, check_peer, take_attributes
from endpoint.roce import wire
from endpoint.roce.requester import Requester
from endpoint.roce.responder import Responder
from endpoint.transport import QPInfo

if TYPE_CHECKING:
    from endpoint.roce.endpoint import Endpoint


class QueuePair(VerbQueuePair):
    """`route`, `peer_address` and `responder` exist from RTR on, `requester` from RTS on."""

    route: Route
    peer_address: bytes
    responder: Responder
    requester: Requester

    def __init__(self, endpoint: Endpoint, qpn: int, cq: CompletionQueue, attributes: Mapping[str, Any]) -> None:
        settings = endpoint.settings
        known: dict[str, Any] = {
            "max_send_wr": settings.max_send_wr,
            "max_recv_wr": settings.max_recv_wr,
            "psn": endpoint.rng.getrandbits(24),
        }
        taken = take_attributes("a RoCE QP", known, attributes)
        super().__init__(endpoint, qpn, cq, taken["max_send_wr"], taken["max_recv_wr"], endpoint.limits.pmtu)
        self.endpoint = endpoint
        self.dest_qpn = -1
        self._peer_name: str | None = None
        self._start_psn: int = taken["psn"]

    @property
    def peer_name(self) -> str | None:
        return self._peer_name

    @property
    def joined(self) -> bool:
        """Whether the peer is known: RTR was reached."""
        return self.dest_qpn >= 0

    def info(self) -> QPInfo:
        """RC has no PSN window and no limit of writes with immediate: the fields are filled with what fits MRC's."""
        return QPInfo(self.endpoint.host, self.qpn, self._start_psn, mpr=64, max_write_imm=self.max_recv_wr)

    def _make_responder(self, peer: QPInfo, now_ns: int) -> None:
        check_peer(peer, "qpn", "psn")
        self.route = self.endpoint.choose_route(peer.host)
        self.peer_address = self.endpoint.peer_address(peer.host)
        self._peer_name = peer.host
        self.dest_qpn = peer.qpn
        self.responder = Responder(self, peer.psn)

    def _make_requester(self) -> None:
        self.sender = self.requester = Requester(self, self._start_psn)

    def _enqueue(self, message: Message) -> None:
        self.requester.enqueue(message)

    def handle_timer(self, now_ns: int) -> None:
        due_ns = self.requester.handle_timer(now_ns) if self.sending else NEVER
        if self.receiving:
            self.deadline_ns = due_ns

    # --- answers -----------------------------------------------------------------------------------------------------

    def send_ack(self, syndrome: int, psn: int, msn: int) -> None:
        """Acknowledge through `psn`, or refuse it, by the syndrome."""
        bth = shared.Bth(wire.Opcode.ACKNOWLEDGE, self.dest_qpn, psn & PSN_MASK, variant=0xFF)
        self._send_control(bth.pack() + shared.Aeth(syndrome, msn & PSN_MASK).pack())

    def send_cnp(self) -> None:
        """Tell the peer that a packet of its was marked."""
        self._send_control(shared.Bth(wire.Opcode.CNP, self.dest_qpn, 0, variant=0xFF).pack() + wire.CNP_PAYLOAD)

    def _send_control(self, transport: bytes) -> None:
        self.route.port.queue_control(self.route.seal(bytearray(transport), self.endpoint.control_class))

    # --- counters ----------------------------------------------------------------------------------------------------

    def counters(self) -> dict[str, Any]:
        """The `qps` fields of the journal's `sample` lines; totals since the QP was made."""
        found: dict[str, Any] = {"qp": self.qpn, "peer": self.peer_name}
        if self.joined:
            found.update(self.responder.counters())
        if self.started:
            found.update(self.requester.counters())
        return found

    def paths(self) -> dict[int, int]:
        """All packets went by the one path, named by its EV on the wire."""
        return {self.route.ev: self.requester.data_packets} if self.started else {}
