"""Credit of one NIC: its congestion control's receiving side hears what arrives, and what it grants is sent."""

from typing import Final, Protocol

from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.congestion.granter import CREDIT_UNIT, CreditGranter
from endpoint.mrc.flight import Flight
from endpoint.nic.port import PortSet
from endpoint.nic.wire import CcType

MASK: Final = 0xFFFFFF


class CreditHeard:
    """What the peer has granted to one requester so far, modulo 2^24 units."""

    def __init__(self, congestion: Congestion, flight: Flight) -> None:
        self._congestion = congestion
        self._flight = flight
        self._units = 0

    def hear(self, kind: int, state: int, now_ns: int) -> None:
        """The congestion type of a SACK, and the last word of its state."""
        more = (state - self._units) & MASK
        if kind == CcType.CREDIT and 0 < more <= MASK >> 1:  # an older SACK says less
            self._units = state & MASK
            self._congestion.on_credit(now_ns, more * CREDIT_UNIT, self._flight.inflight_bytes)


class Creditor(Protocol):
    """A responder as credit sees it."""

    qpn: int

    def credit(self, now_ns: int, size: int) -> None: ...


class Crediting:
    """Knows the responders by the numbers of their queue pairs. With None nothing is granted."""

    def __init__(self, granter: CreditGranter | None) -> None:
        self.grants_anything = granter is not None
        self._granter = granter if granter is not None else CreditGranter()
        self._responders: dict[int, Creditor] = {}

    @property
    def due_ns(self) -> int:
        """When credit is to be granted next."""
        return self._granter.due_ns

    def join(self, qpn: int, responder: Creditor) -> None:
        """From now on this queue pair's packets are counted."""
        responder.qpn = qpn
        self._responders[qpn] = responder

    def leave(self, qpn: int) -> None:
        """The queue pair is gone; one that never joined may leave too."""
        if self._responders.pop(qpn, None) is not None:
            self._granter.on_closed(qpn)

    def arrived(self, now_ns: int, responder: Creditor, size: int, marked: bool) -> None:
        """A data packet arrived whole."""
        self._granter.on_packet_arrived(now_ns, responder.qpn, size, marked)

    def trimmed(self, now_ns: int, responder: Creditor, size: int, last_hop: bool) -> None:
        """A data packet of up to `size` bytes arrived trimmed."""
        self._granter.on_packet_trimmed(now_ns, responder.qpn, size, last_hop)

    def ports_changed(self, now_ns: int, ports: PortSet) -> None:
        """Ports went down or came up."""
        self._granter.on_ports_changed(now_ns, ports.up.bit_count() / len(ports.list))

    def handle_timer(self, now_ns: int) -> None:
        """Send what is granted now."""
        if self._granter.due_ns <= now_ns:
            for qpn, size in self._granter.grants(now_ns):
                responder = self._responders.get(qpn)
                if responder is not None:
                    responder.credit(now_ns, size)
