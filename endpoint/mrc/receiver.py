"""The receiving side of an MRC NIC: frames taken apart, and handed to queue pairs and endpoint operations.

The usual frames, SRv6-encapsulated writes and SACKs, are taken apart by one fused layout, or by one call in C where
that is built (`endpoint.nic.codec`); everything else goes the plain way through `endpoint.nic.frame`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, Final

from endpoint.mrc.operations import EndpointOperations
from endpoint.mrc.peers import PeerTable
from endpoint.mrc.qp import QueuePair
from endpoint.nic import check, codec, icrc, packet, wire
from endpoint.nic import dialect as dialects
from endpoint.nic import ev as evs
from endpoint.nic import frame as frames
from endpoint.nic.config import Limits, Settings
from endpoint.nic.nic import Nic
from endpoint.nic.port import Port
from endpoint.nic.wire import IMMEDIATES, SOLICITED, TIMESTAMP, WRITES, Opcode, PathMark

if TYPE_CHECKING:
    from endpoint.profile import NicProfile

SACK_MIN: Final = packet.BTH_OFFSET + packet.SACK.size + icrc.SIZE
USUAL_MIN: Final = packet.RECEIVE_MIN + icrc.SIZE
RECENT: Final = 16
OPCODES: Final = frozenset(Opcode)
OPERATIONS: Final = (Opcode.ENDPOINT_REQUEST, Opcode.ENDPOINT_RESPONSE)


class Receiver(Nic[QueuePair]):
    """The receiving half of an MRC NIC, which sets the attributes without a value here (`endpoint.mrc.endpoint`)."""

    peers: PeerTable
    _operations: EndpointOperations
    _placed: int
    """Frames of the call of `receive` that runs which were placed and asked for nothing."""

    def __init__(
        self,
        profile: NicProfile,
        rng: Random,
        now_ns: int,
        dialect: dialects.Dialect,
        limits: Limits,
        settings: Settings,
    ) -> None:
        super().__init__(
            profile,
            rng,
            now_ns,
            burst_ns=limits.burst_ns,
            events_max=settings.events_max,
            control_max=settings.control_frames_max,
        )
        self.dialect = dialect
        self.client_check = dialect.client_check
        self._solicited_bit = 0x40 if dialect.migrated_first else 0x80
        self._trimmed = {profile.dscp.trimmed: False, profile.dscp.trimmed_lasthop: True}
        """DSCP of a trimmed packet: whether the last hop trimmed it."""
        self._trimmed_bits = sum(1 << dscp for dscp in self._trimmed)  # and below: as `codec.usual` takes them
        self._arrivals = b"".join(sorted(self.arrivals))
        self._udp_port = dialect.udp_port_of(profile)
        self._udp_ports = frozenset({*dialects.UDP_PORTS, profile.udp_port})
        self._recent: list[QueuePair | None] = [None] * RECENT
        """QPs by the last bits of their numbers: quicker to look in than a dictionary."""
        self._usual_ev = dialect.ev_bits == dialects.EV_BITS
        """Whether a receiver finds an EV where the fused layout has it at hand."""

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> bool:
        """Take frames in order of arrival; True: they ask for nothing. Whatever the bytes are, nothing is raised."""
        self.scheduler.now_ns = now_ns
        arrival = self.ports.numbered(port)
        if not arrival.enabled:
            self.log.count("port_disabled", len(frames_in))
            return False
        arrival.rx_packets += len(frames_in)
        self._placed = 0
        listed: list[bytes | memoryview] = frames_in if isinstance(frames_in, list) else list(frames_in)
        if self.client_check:
            listed = [check.taken(data) for data in listed]
        for data in listed:
            size = len(data)
            arrival.rx_bytes += size
            if not self._receive_usual(arrival, data, size, now_ns):
                self._receive_plain(arrival, data, now_ns)
        return self._placed == len(frames_in) and self.scheduler.resting and not len(self.log)

    def _receive_usual(self, arrival: Port, data: bytes | memoryview, size: int, now_ns: int) -> bool:
        """A write or a SACK with an outer header, without trim and TSETH, or what else C reads; False for the rest."""
        if codec.USUAL is not None and codec.usual(
            data, self.address, self._arrivals, self._trimmed_bits, self._udp_port, self.counted
        ):
            self._take_from_c(arrival, data, size, now_ns)
            return True
        if self.counted:
            self.note_left_out(arrival, frames.left_out(data))
        if size < USUAL_MIN:
            return False
        (
            ethertype, outer, outer_next, outer_dst, inner, length, inner_next, src, dst,
            source_port, dport, opcode, second, qpn, psn, va, rkey, total,
        ) = packet.RECEIVE.unpack_from(data, packet.RECEIVE_OFFSET)  # fmt: skip
        if (
            ethertype != frames.ETHERTYPE_IPV6
            or outer_next != frames.NEXT_IPV6
            or outer >> 22 & 0x3F in self._trimmed
            or psn >> 24 & TIMESTAMP
            or length + packet.UDP_OFFSET != size + self.left_out
            or not (wire.OP_WRITE_FIRST <= opcode <= wire.OP_WRITE_ONLY_IMM or opcode == wire.OP_SACK)
        ):
            return False
        if (
            inner_next != frames.NEXT_UDP
            or inner >> 28 != 6
            or outer >> 28 != 6
            or dst != self.address
            or outer_dst not in self.arrivals
            or dport not in self._udp_ports
        ):
            self.log.count("not_for_us")
            return True
        qp = self.qps.get(qpn & 0xFFFFFF)
        if qp is None or not qp.receiving or src != qp.peer.address:
            if qp is not None and qp.refusing:
                return False
            self._qp_of(qpn & 0xFFFFFF, src)  # for the count
            return True
        if not icrc.verify(memoryview(data)[packet.INNER_OFFSET :]):
            self.log.count("icrc")
            return True
        self._take_usual(arrival, qp, data, opcode, second, psn, source_port, inner, outer, va, rkey, total, now_ns)
        return True

    def _take_from_c(self, arrival: Port, data: bytes | memoryview, size: int, now_ns: int) -> None:
        """What C has found usual; field by field, since numbers cost nothing as long as no tuple holds them."""
        if self.counted:
            self.note_left_out(arrival, packet.UDP_OFFSET + codec.u16(data, packet.LENGTH_OFFSET) - size)
        kinds = codec.u16(data, packet.BTH_OFFSET)
        opcode, second = kinds >> 8, kinds & 0xFF
        qpn, psn = codec.u32(data, packet.QPN_OFFSET) & 0xFFFFFF, codec.u32(data, packet.PSN_OFFSET)
        inner, outer = codec.u32(data, packet.INNER_OFFSET), codec.u32(data, frames.ETHERNET)
        port = codec.u16(data, packet.UDP_OFFSET)
        if wire.OP_ENDPOINT_REQUEST <= opcode <= wire.OP_ENDPOINT_RESPONSE:
            src = bytes(data[packet.SRC_OFFSET : packet.SRC_OFFSET + 16])
            ev = evs.unstripe(port, inner, self.dialect)
            self._operations.receive(arrival, data, packet.BEHIND_BTH, opcode, qpn, psn, src, ev, now_ns)
            return
        qp = self._receiving_qp(qpn)
        if qp is None:
            src = bytes(data[packet.SRC_OFFSET : packet.SRC_OFFSET + 16])
            self._refuse_again(arrival, qpn, opcode, src, evs.unstripe(port, inner, self.dialect), now_ns)
            return
        if not codec.has(data, packet.SRC_OFFSET, qp.peer.address):
            self.log.count("wrong_peer")
            return
        va = rkey = total = 0
        if opcode <= wire.OP_WRITE_ONLY_IMM:
            va, rkey = codec.u64(data, packet.RETH_OFFSET), codec.u32(data, packet.RETH_OFFSET + 8)
            total = codec.u32(data, packet.RETH_OFFSET + 12)
        elif opcode == wire.OP_ACKNOWLEDGE:
            total = codec.u32(data, packet.BEHIND_BTH)
        self._take_usual(arrival, qp, data, opcode, second, psn, port, inner, outer, va, rkey, total, now_ns)

    def _take_usual(
        self, arrival: Port, qp: QueuePair, data: bytes | memoryview, opcode: int, second: int, psn: int,
        source_port: int, inner: int, outer: int, va: int, rkey: int, total: int, now_ns: int,
    ) -> None:  # fmt: skip
        """A usual frame with a right ICRC, for a QP that is there."""
        if opcode == wire.OP_SACK:
            self._usual_sack(qp, data, now_ns)
            return
        if opcode == wire.OP_ACKNOWLEDGE:
            if qp.sending:
                qp.requester.receive_ack(now_ns, total >> 24, total & 0xFFFFFF, psn & 0xFFFFFF)
            else:
                self.log.count("no_qp")
            return
        start, immediate, flags = packet.WRITE_PAYLOAD_OFFSET, 0, psn >> 24 & 0xF0
        if opcode == wire.OP_WRITE_LAST_IMM or opcode == wire.OP_WRITE_ONLY_IMM:
            start += 4
            immediate = int.from_bytes(data[start - 4 : start], "big")
            flags |= bool(second & self._solicited_bit)  # SOLICITED
        size = len(data) + self.left_out - start - 4 - (second >> 4 & 3)
        if size < 0:
            self.log.count("malformed")
            return
        deadline_ns = qp.agenda.deadline_ns
        qp.received(now_ns)
        mark, psn24 = int(outer >> 20 & 3 == 3), psn & 0xFFFFFF
        ev = (inner & 0xFFFF) << 16 | source_port if self._usual_ev else evs.unstripe(source_port, inner, self.dialect)
        placed = qp.responder.receive_write(
            now_ns, arrival, mark, ev, opcode, flags, psn24, va, rkey, total, immediate, data, start, size, 0
        )
        if placed and qp.agenda.deadline_ns == deadline_ns:
            self._placed += 1

    def _usual_sack(self, qp: QueuePair, view: bytes | memoryview, now_ns: int) -> None:
        if len(view) < SACK_MIN or not qp.sending:
            self.log.count("malformed" if len(view) < SACK_MIN else "no_qp")
            return
        at = packet.BEHIND_BTH
        first, answer, ev = codec.u16(view, at), codec.u16(view, at + 2), codec.u32(view, at + 4)
        cack, mpr, offset = codec.u32(view, at + 12), codec.u16(view, at + 16), codec.u16(view, at + 18)
        bitmap, state = codec.u64(view, at + 20), codec.u32(view, at + 32)
        answer -= (answer & 0x8000) << 1  # both are signed
        offset -= (offset & 0x8000) << 1
        penalty = state >> 24 & 0x7F
        if mpr > 0xFF:  # a congestion type beside the MPR
            qp.requester.credit.hear(mpr >> 12, state, now_ns)
            mpr &= 0xFF
        qp.requester.receive_sack(now_ns, cack & 0xFFFFFF, offset, bitmap, ev, first, answer, penalty, mpr)
        qp.freshen(ev, first >> 5 & 3)

    def _receive_plain(self, arrival: Port, data: bytes | memoryview, now_ns: int) -> None:
        """Everything but the usual frames."""
        try:
            found = frames.parse(data, self.dialect)
            bth = wire.Bth.unpack(data, found.bth)
        except (frames.MalformedFrame, StructError):
            self.log.count("malformed")
            return
        if found.dst != self.address or (found.outer is not None and found.outer[1] not in self.arrivals):
            self.log.count("not_for_us")
            return
        if found.udp_dport != self._udp_port and (bth.opcode not in OPCODES or found.udp_dport not in self._udp_ports):
            self.log.count("not_for_us")
            return
        lasthop = self._trimmed.get(found.dscp)
        # Without an outer header the switch that trims rewrites the only IPv6 length, so that the UDP length tells.
        if len(data) + self.left_out < (found.end if lasthop is None else max(found.end, found.udp_end)):
            if lasthop is None or bth.opcode not in WRITES:
                self.log.count("truncated")
                return
            self._receive_trimmed(arrival, data, found, bth, lasthop, now_ns)
            return
        view = memoryview(data)[: found.end]
        if not icrc.verify(view[found.offset :]):
            self.log.count("icrc")
            return
        try:
            self._dispatch(arrival, view, found, bth, lasthop, now_ns)
        except StructError:
            self.log.count("malformed")

    def _receive_trimmed(
        self, arrival: Port, data: bytes | memoryview, found: frames.Frame, bth: wire.Bth, lasthop: bool, now_ns: int
    ) -> None:
        qp = self._qp_of(bth.dest_qpn, found.src)
        if qp is not None:
            qp.received(now_ns)
            stamp = wire.stamp_of(data, found.bth, bth)
            qp.responder.receive_trimmed(now_ns, arrival, found.ev, bth.psn, lasthop, stamp)

    def _dispatch(
        self, arrival: Port, view: memoryview, found: frames.Frame, bth: wire.Bth, lasthop: bool | None, now_ns: int
    ) -> None:
        """A whole packet with a right ICRC, by its opcode. Raises `struct.error` if a header is cut short."""
        at = found.bth + wire.BTH_BYTES
        if bth.opcode in OPERATIONS:
            self._operations.receive(arrival, view, at, bth.opcode, bth.dest_qpn, bth.psn, found.src, found.ev, now_ns)
            return
        qp = self._qp_of(bth.dest_qpn, found.src)
        if qp is None:
            self._refuse_again(arrival, bth.dest_qpn, bth.opcode, found.src, found.ev, now_ns)
            return
        if bth.opcode in WRITES:
            # A trimmed mark on a packet that is whole: the path was congested all the same.
            self._receive_write(qp, arrival, view, found, bth, found.marked or lasthop is False, now_ns)
        elif bth.opcode == Opcode.PROBE:
            probe = wire.Peth.unpack(view, at)
            qp.received(now_ns)
            qp.responder.receive_probe(
                now_ns, arrival, found.ev, bth.psn, found.marked, probe.probe_id, probe.tx_timestamp
            )
        elif not qp.sending:
            self.log.count("no_qp")
        elif bth.opcode == Opcode.SACK:
            self._receive_sack(qp, view, at, now_ns)
        elif bth.opcode == Opcode.NACK:
            nack = wire.Neth.unpack(view, at)
            qp.requester.receive_nack(now_ns, nack.reason, nack.nack_psn, nack.entropy)
        elif bth.opcode == Opcode.ACKNOWLEDGE:
            aeth = wire.Aeth.unpack(view, at)
            qp.requester.receive_ack(now_ns, aeth.syndrome, aeth.msn, bth.psn)
        else:
            self.log.count("opcode")

    def _receive_write(
        self,
        qp: QueuePair,
        arrival: Port,
        view: memoryview,
        found: frames.Frame,
        bth: wire.Bth,
        congested: bool,
        now_ns: int,
    ) -> None:
        at = found.bth + wire.BTH_BYTES + wire.METH_BYTES + (wire.TSETH_BYTES if bth.flags & TIMESTAMP else 0)
        reth = wire.Reth.unpack(view, at)
        at += wire.RETH_BYTES
        immediate = 0
        if bth.opcode in IMMEDIATES:
            (immediate,) = wire.IMMEDIATE.unpack_from(view, at)
            at += 4
        end = found.end - icrc.SIZE - bth.pad
        if end < at:
            self.log.count("malformed")
            return
        qp.received(now_ns)
        qp.responder.receive_write(
            now_ns,
            arrival,
            PathMark.SKIP_ONCE if congested else PathMark.NONE,
            found.ev,
            bth.opcode,
            bth.flags & 0xF0 | (SOLICITED if view[found.bth + 1] & self._solicited_bit else 0),
            bth.psn,
            reth.va,
            reth.rkey,
            reth.length,
            immediate,
            view,
            at,
            end - at,
            wire.stamp_of(view, found.bth, bth),
        )

    def _receive_sack(self, qp: QueuePair, view: memoryview, at: int, now_ns: int) -> None:
        if packet.BEHIND_BTH + len(view) - at < SACK_MIN:  # as if encapsulated
            self.log.count("malformed")
            return
        sack = wire.Seth.unpack(view, at)
        state = wire.CcState.unpack(view, at + wire.SETH_BYTES)
        first = sack.mark << 5 | sack.probe_response << 1
        qp.requester.credit.hear(sack.cc_type, state.rcvd_units, now_ns)
        qp.requester.receive_sack(
            now_ns,
            sack.cack_psn,
            sack.sack_offset,
            sack.bitmap,
            sack.entropy,
            first,
            sack.ack_psn_offset,
            state.rcv_cwnd_pen,
            sack.mpr,
        )
        qp.freshen(sack.entropy, sack.mark)

    def _refuse_again(self, arrival: Port, qpn: int, opcode: int, src: bytes, ev: int, now_ns: int) -> None:
        """A packet for a QP that cannot receive: a write or a probe shows that the peer has not heard of a refusal."""
        qp = self.qps.get(qpn)
        if qp is not None and qp.refusing and src == qp.peer.address and (opcode in WRITES or opcode == Opcode.PROBE):
            qp.responder.refuse_again(now_ns, arrival, ev)

    def _qp_of(self, qpn: int, src: bytes) -> QueuePair | None:
        """The QP that a packet from `src` is for; None, and counted, if there is none."""
        qp = self._receiving_qp(qpn)
        if qp is not None and src != qp.peer.address:
            self.log.count("wrong_peer")
            return None
        return qp

    def _receiving_qp(self, qpn: int) -> QueuePair | None:
        """The QP of this number; None, and counted, if there is none that can receive."""
        qp = self._recent[qpn % RECENT]
        if qp is None or qp.qpn != qpn or not qp.receiving:
            qp = self._recent[qpn % RECENT] = self.qps.get(qpn)
        if qp is None or not qp.receiving:
            self.log.count("no_qp")
            return None
        return qp

    def destroy_qp(self, qp: QueuePair, now_ns: int) -> None:
        """Raises `ValueError` if the QP is not one of this endpoint's."""
        super().destroy_qp(qp, now_ns)
        if self._recent[qp.qpn % RECENT] is qp:
            self._recent[qp.qpn % RECENT] = None
