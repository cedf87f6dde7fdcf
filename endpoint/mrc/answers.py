"""The packets that a responder sends: selective acknowledgements, refusals of packets, transport acknowledgements."""

from __future__ import annotations

from typing import Final

from endpoint.mrc.congestion.granter import CREDIT_UNIT
from endpoint.nic import codec, packet, wire
from endpoint.nic.packet import VARIANT_MASKED, Route
from endpoint.nic.wire import PSN_MASK, NackReason, Opcode, Syndrome

SACK_TYPE: Final = int(wire.PdsType.SACK) << 12
NACK_TYPE: Final = int(wire.PdsType.NACK) << 12
CREDIT_CC: Final = int(wire.CcType.CREDIT) << 4
NACK_CC: Final = int(wire.CcType.NACK) << 4


class Answers:
    """Queues control frames for the QP `dest_qpn` of the peer, in the traffic class of control packets."""

    def __init__(self, dest_qpn: int, traffic_class: int) -> None:
        self._dest_masked = VARIANT_MASKED | dest_qpn
        self._traffic_class = traffic_class
        self.mpr = 0
        """The dynamic MPR as SACKs say it, in units of 128 PSNs; 0: off."""
        self.granted_bytes = -1
        """Credit granted so far, where this host's congestion control grants any; -1: SACKs say what was received."""
        self.sacks_sent = self.nacks_sent = 0

    def sack(
        self,
        route: Route,
        cack: int,
        start: int,
        bitmap: int,
        ev: int,
        signals: int,
        answer: int,
        stamp: int,
        beyond: int,
        congestion: int,
    ) -> None:
        """A SACK: everything up to `cack` has arrived, and bit i of `bitmap` says whether cack + start + i has.

        `signals` are the path mark and the probe response in the SETH's first 16 bits, `answer` its offset of the
        causing PSN or its probe id; `beyond` counts PSNs above `cack`, `congestion` is the CC_STATE's last word.
        """
        self.sacks_sent += 1
        first = SACK_TYPE | signals
        cack &= PSN_MASK
        kind = 0
        if self.granted_bytes >= 0:
            kind = CREDIT_CC
            congestion = congestion & ~0xFFFFFF | self.granted_bytes // CREDIT_UNIT & 0xFFFFFF
        elif codec.IN_C:
            frame = codec.sack(
                route.headers, self._traffic_class, self._dest_masked, cack, first, answer, ev, self.mpr, start, bitmap,
                stamp, beyond, congestion,
            )  # fmt: skip
            route.port.queue_control(frame)
            return
        transport = bytearray(packet.SACK.size)
        packet.SACK.pack_into(
            transport, 0,
            wire.OP_SACK, 0, 0xFFFF, self._dest_masked, cack,
            first, answer, ev, 0, 0, cack, kind, self.mpr, start, bitmap,
            stamp, beyond, congestion,
        )  # fmt: skip
        route.port.queue_control(route.seal(transport, self._traffic_class))

    def nack(self, route: Route, psn: int, ev: int, reason: NackReason, stamp: int) -> None:
        """Refuse the packet `psn` that came on `ev`."""
        transport = bytearray(packet.NACK.size)
        psn &= PSN_MASK
        packet.NACK.pack_into(
            transport, 0,
            Opcode.NACK, 0, wire.P_KEY_DEFAULT, self._dest_masked, psn,
            NACK_TYPE, reason, 0, ev, 0, 0, psn, NACK_CC, 0, stamp,
        )  # fmt: skip
        route.port.queue_control(route.seal(transport, self._traffic_class))
        self.nacks_sent += 1

    def transport_ack(self, route: Route, syndrome: Syndrome, psn: int, msn: int) -> None:
        """Through `psn` everything has arrived and `msn` messages are complete; or, by the syndrome, the QP ends."""
        transport = bytearray(packet.ACKNOWLEDGE.size)
        psn &= PSN_MASK
        packet.ACKNOWLEDGE.pack_into(
            transport, 0,
            wire.OP_ACKNOWLEDGE, 0, wire.P_KEY_DEFAULT, self._dest_masked, psn,
            syndrome << 24 | msn & 0xFFFFFF,
        )  # fmt: skip
        route.port.queue_control(route.seal(transport, self._traffic_class))
