"""The packets that a RoCE responder sends: acknowledgements, refusals, congestion notifications, on the QP's path."""

from __future__ import annotations

from endpoint.nic import wire as shared
from endpoint.nic.packet import Route
from endpoint.nic.psn import PSN_MASK
from endpoint.roce import wire


class Answers:
    """Queues control frames for the QP `dest_qpn` of the peer."""

    def __init__(self, route: Route, dest_qpn: int, traffic_class: int) -> None:
        self._route = route
        self._dest_qpn = dest_qpn
        self._traffic_class = traffic_class

    def ack(self, syndrome: int, psn: int, msn: int) -> None:
        """Acknowledge through `psn`, or refuse it, by the syndrome; `msn` messages are complete."""
        bth = shared.Bth(wire.Opcode.ACKNOWLEDGE, self._dest_qpn, psn & PSN_MASK, variant=0xFF)
        self._send(bth.pack() + shared.Aeth(syndrome, msn & PSN_MASK).pack())

    def cnp(self) -> None:
        """Tell the peer that one of its packets was marked."""
        self._send(shared.Bth(wire.Opcode.CNP, self._dest_qpn, 0, variant=0xFF).pack() + wire.CNP_PAYLOAD)

    def _send(self, transport: bytes) -> None:
        self._route.port.queue_control(self._route.seal(bytearray(transport), self._traffic_class))
