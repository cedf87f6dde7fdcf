"""One host's MRC NIC without I/O: memory, queue pairs, ports and peers behind `endpoint.transport.Transport`.

Frames, port states and the time come in through the methods; frames, events and the next deadline are asked for. A
frame is taken apart in one of two ways: the usual ones by C where it is built (`endpoint.nic.codec`), all others by
the plain codecs of `endpoint.nic.frame` and `endpoint.nic.headers`, against which tests hold the C.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from random import Random
from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, Any, Final

from endpoint.mrc.algorithms import Chosen
from endpoint.mrc.arrived import Arrived, Sack
from endpoint.mrc.cc_profiles import CcProfiles
from endpoint.mrc.congestion.cc_profile import PathTraits, make_config
from endpoint.mrc.context import Context, Stamps, TrafficClasses
from endpoint.mrc.control import Control
from endpoint.mrc.hint import QpHints
from endpoint.mrc.paths.ev_profile import EvProfiles
from endpoint.mrc.paths.penalty import ReceiverPenalty
from endpoint.mrc.paths.probe_budget import REVERSE_AT_ONCE, AskingBudget, ProbeBudget
from endpoint.mrc.peer import Peer
from endpoint.mrc.peers import PeerTable
from endpoint.mrc.qp import QueuePair
from endpoint.mrc.seams.crediting import Crediting
from endpoint.nic import check, codec, icrc, packet, wire
from endpoint.nic import dialect as dialects
from endpoint.nic import frame as frames
from endpoint.nic.config import derive, make_settings
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.nic import Nic
from endpoint.nic.port import Port
from endpoint.nic.wire import IMMEDIATES, SOLICITED, TIMESTAMP, WRITES, Opcode

if TYPE_CHECKING:
    from endpoint.profile import NicProfile

RECENT: Final = 16
OPCODES: Final = frozenset(Opcode)
OPERATIONS: Final = frozenset({Opcode.ENDPOINT_REQUEST, Opcode.ENDPOINT_RESPONSE})


class Endpoint(Nic[QueuePair]):
    """`rng` is the only source of chance; `settings` are those of `endpoint.nic.config.Settings`."""

    def __init__(self, profile: NicProfile, *, rng: Random, now_ns: int = 0, **settings: Any) -> None:
        self.settings = make_settings(settings)
        limits = self.limits = derive(profile, self.settings)
        make_config(self.settings.nscc or {})
        chosen = Chosen(self.settings)
        dialect = self.dialect = dialects.spoken(self.settings.dialect, profile)
        super().__init__(
            profile,
            rng,
            now_ns,
            burst_ns=limits.burst_ns,
            events_max=self.settings.events_max,
            control_max=self.settings.control_frames_max,
        )
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
        self._arrived = Arrived(self.ports.list[0])
        self._sack = Sack()
        self._placed = 0
        """Frames of the call of `receive` that runs which were placed and asked for nothing."""
        rtt_ns, jitter_ns = limits.base_rtt_ns, limits.jitter_ns
        path = PathTraits(
            rtt_ns, rtt_ns, limits.rate_bps, limits.pmtu, jitter_ns, limits.trimming, self.settings.losses_shrink
        )
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
            classes=TrafficClasses.of(profile.dscp, profile.retransmit_priority),
            stamps=Stamps.lasting(limits.timeout_ns) if self.settings.timestamps else Stamps(),
            path=path,
            chosen=chosen,
            cc_profiles=CcProfiles(chosen.cc_profile),
            penalty=ReceiverPenalty(limits.base_rtt_ns, enabled=self.settings.rcv_penalty),
            probe_budget=ProbeBudget(self.ports, self.settings.probe_share, limits.probe_interval_ns),
            reverse_budget=ProbeBudget(self.ports, 0.0, limits.reverse_probe_ns, REVERSE_AT_ONCE),
            asking=AskingBudget(self.settings.probe_share, limits.timeout_ns // 4, now_ns),
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

    def destroy_qp(self, qp: QueuePair, now_ns: int) -> None:
        """Raises `ValueError` if the QP is not one of this endpoint's."""
        super().destroy_qp(qp, now_ns)
        if self._recent[qp.qpn % RECENT] is qp:
            self._recent[qp.qpn % RECENT] = None

    # --- frames in ---------------------------------------------------------------------------------------------

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
            arrival.rx_bytes += len(data)
            if codec.IN_C and codec.usual(
                data, self.address, self._arrivals, self._trimmed_bits, self._udp_port, self.counted
            ):
                self._take_from_c(arrival, data, now_ns)
            else:
                self._take_plainly(arrival, data, now_ns)
        return self._placed == len(frames_in) and self.scheduler.resting and not len(self.log)

    # --- by C --------------------------------------------------------------------------------------------------

    def _take_from_c(self, arrival: Port, data: bytes | memoryview, now_ns: int) -> None:
        """What C has found usual; field by field, since numbers cost nothing as long as no tuple holds them."""
        if self.counted:
            self.note_left_out(arrival, packet.UDP_OFFSET + codec.u16(data, packet.LENGTH_OFFSET) - len(data))
        kinds = codec.u16(data, packet.BTH_OFFSET)
        opcode, second = kinds >> 8, kinds & 0xFF
        qpn, psn = codec.u32(data, packet.QPN_OFFSET) & 0xFFFFFF, codec.u32(data, packet.PSN_OFFSET)
        inner, source_port = codec.u32(data, packet.INNER_OFFSET), codec.u16(data, packet.UDP_OFFSET)
        ev = frames.unstripe(source_port, inner, self.dialect)
        if wire.OP_ENDPOINT_REQUEST <= opcode <= wire.OP_ENDPOINT_RESPONSE:
            src = bytes(data[packet.SRC_OFFSET : packet.SRC_OFFSET + 16])
            self._operations.receive(arrival, data, packet.BEHIND_BTH, opcode, qpn, psn, src, ev, now_ns)
            return
        qp = self._receiving_qp(qpn)
        if qp is None:
            src = bytes(data[packet.SRC_OFFSET : packet.SRC_OFFSET + 16])
            self._refuse_again(arrival, qpn, opcode, src, ev, now_ns)
        elif not codec.has(data, packet.SRC_OFFSET, qp.peer.address):
            self.log.count("wrong_peer")
        elif opcode <= wire.OP_WRITE_ONLY_IMM:
            write = self._arrived
            write.port, write.ev, write.opcode, write.psn, write.stamp = arrival, ev, opcode, psn & 0xFFFFFF, 0
            write.mark = int(codec.u32(data, frames.ETHERNET) >> 20 & 3 == 3)
            write.flags = psn >> 24 & 0xF0
            write.va, write.rkey = codec.u64(data, packet.RETH_OFFSET), codec.u32(data, packet.RETH_OFFSET + 8)
            write.length = codec.u32(data, packet.RETH_OFFSET + 12)
            start, write.immediate = packet.WRITE_PAYLOAD_OFFSET, 0
            if opcode == wire.OP_WRITE_LAST_IMM or opcode == wire.OP_WRITE_ONLY_IMM:
                write.immediate = codec.u32(data, start)
                write.flags |= bool(second & self._solicited_bit)  # SOLICITED
                start += 4
            write.start, write.size = start, len(data) + self.left_out - start - 4 - (second >> 4 & 3)
            self._receive_write(qp, data, now_ns)
        elif not qp.sending:
            self.log.count("no_qp")
        elif opcode == wire.OP_SACK:
            self._sack_from_c(qp, data, now_ns)
        else:
            aeth = codec.u32(data, packet.BEHIND_BTH)
            qp.requester.receive_ack(now_ns, aeth >> 24, aeth & 0xFFFFFF, psn & 0xFFFFFF)

    def _sack_from_c(self, qp: QueuePair, data: bytes | memoryview, now_ns: int) -> None:
        at, sack = packet.BEHIND_BTH, self._sack
        first, answer, sack.ev = codec.u16(data, at), codec.u16(data, at + 2), codec.u32(data, at + 4)
        sack.cack, mpr, offset = codec.u32(data, at + 12) & 0xFFFFFF, codec.u16(data, at + 16), codec.u16(data, at + 18)
        sack.bitmap, state = codec.u64(data, at + 20), codec.u32(data, at + 32)
        sack.answer = answer - ((answer & 0x8000) << 1)  # both are signed
        sack.offset = offset - ((offset & 0x8000) << 1)
        sack.mark, sack.probe_response = first >> 5 & 3, bool(first & 2)
        sack.penalty, sack.mpr = state >> 24 & 0x7F, mpr & 0xFF
        self._receive_sack(qp, mpr >> 12, state, now_ns)

    # --- plainly -----------------------------------------------------------------------------------------------

    def _take_plainly(self, arrival: Port, data: bytes | memoryview, now_ns: int) -> None:
        """Any bytes."""
        if self.counted:
            self.note_left_out(arrival, frames.left_out(data))
        try:
            frame = frames.parse(data, self.dialect)
            bth = wire.Bth.unpack(data, frame.bth)
        except (frames.MalformedFrame, StructError):
            self.log.count("malformed")
            return
        if frame.dst != self.address or (frame.outer is not None and frame.outer[1] not in self.arrivals):
            if frame.dscp == self.settings.returned_dscp and frame.src == self.address and bth.opcode in WRITES:
                self._receive_returned(frame, bth, now_ns)
                return
            self.log.count("not_for_us")
            return
        if frame.udp_dport != self._udp_port and (bth.opcode not in OPCODES or frame.udp_dport not in self._udp_ports):
            self.log.count("not_for_us")
            return
        lasthop = self._trimmed.get(frame.dscp)
        # Without an outer header the switch that trims rewrites the only IPv6 length, so that the UDP length tells.
        if len(data) + self.left_out < (frame.end if lasthop is None else max(frame.end, frame.udp_end)):
            if lasthop is None or bth.opcode not in WRITES:
                self.log.count("truncated")
            elif (qp := self._qp_of(bth.dest_qpn, frame.src)) is not None:
                qp.received(now_ns)
                qp.responder.receive_trimmed(now_ns, self._fill(arrival, data, frame, bth, marked=False), lasthop)
            return
        view = memoryview(data)[: frame.end]
        if not icrc.verify(view[frame.offset :]):
            self.log.count("icrc")
            return
        try:
            self._dispatch(arrival, view, frame, bth, lasthop, now_ns)
        except StructError:
            self.log.count("malformed")

    def _fill(
        self, arrival: Port, data: bytes | memoryview, frame: frames.Frame, bth: wire.Bth, *, marked: bool
    ) -> Arrived:
        """The record of the frame at hand, as far as writes and probes have the same fields."""
        filled = self._arrived
        filled.port, filled.ev, filled.opcode, filled.psn = arrival, frame.ev, bth.opcode, bth.psn
        filled.mark = int(marked)
        filled.stamp = wire.stamp_of(data, frame.bth, bth) if bth.flags & TIMESTAMP else 0
        return filled

    def _dispatch(
        self, arrival: Port, view: memoryview, frame: frames.Frame, bth: wire.Bth, lasthop: bool | None, now_ns: int
    ) -> None:
        """A whole packet with a right ICRC, by its opcode. Raises `struct.error` if a header is cut short."""
        at = frame.bth + wire.BTH_BYTES
        if bth.opcode in OPERATIONS:
            self._operations.receive(arrival, view, at, bth.opcode, bth.dest_qpn, bth.psn, frame.src, frame.ev, now_ns)
            return
        qp = self._qp_of(bth.dest_qpn, frame.src)
        if qp is None:
            self._refuse_again(arrival, bth.dest_qpn, bth.opcode, frame.src, frame.ev, now_ns)
        elif bth.opcode in WRITES:
            # A trimmed mark on a packet that is whole: the path was congested all the same.
            self._fill(arrival, view, frame, bth, marked=frame.marked or lasthop is False)
            self._fill_write(view, frame, bth)
            self._receive_write(qp, view, now_ns)
        elif bth.opcode == Opcode.PROBE:
            probe = wire.Peth.unpack(view, at)
            asked = self._fill(arrival, view, frame, bth, marked=frame.marked)
            asked.stamp = probe.tx_timestamp
            qp.received(now_ns)
            qp.responder.receive_probe(now_ns, asked, probe.probe_id)
        elif not qp.sending:
            self.log.count("no_qp")
        elif bth.opcode == Opcode.SACK:
            self._sack_plainly(qp, view, at, now_ns)
        elif bth.opcode == Opcode.NACK:
            nack = wire.Neth.unpack(view, at)
            qp.requester.receive_nack(now_ns, nack.reason, nack.nack_psn, nack.entropy)
        elif bth.opcode == Opcode.ACKNOWLEDGE:
            aeth = wire.Aeth.unpack(view, at)
            qp.requester.receive_ack(now_ns, aeth.syndrome, aeth.msn, bth.psn)
        else:
            self.log.count("opcode")

    def _fill_write(self, view: memoryview, frame: frames.Frame, bth: wire.Bth) -> None:
        write = self._arrived
        at = frame.bth + wire.BTH_BYTES + wire.METH_BYTES + (wire.TSETH_BYTES if bth.flags & TIMESTAMP else 0)
        reth = wire.Reth.unpack(view, at)
        at += wire.RETH_BYTES
        write.va, write.rkey, write.length, write.immediate = reth.va, reth.rkey, reth.length, 0
        if bth.opcode in IMMEDIATES:
            (write.immediate,) = wire.IMMEDIATE.unpack_from(view, at)
            at += 4
        write.flags = bth.flags & 0xF0 | (SOLICITED if view[frame.bth + 1] & self._solicited_bit else 0)
        write.start, write.size = at, frame.end - icrc.SIZE - bth.pad - at

    def _sack_plainly(self, qp: QueuePair, view: memoryview, at: int, now_ns: int) -> None:
        seth = wire.Seth.unpack(view, at)
        state = wire.CcState.unpack(view[: -icrc.SIZE], at + wire.SETH_BYTES)
        sack = self._sack
        sack.cack, sack.offset, sack.bitmap, sack.ev = seth.cack_psn, seth.sack_offset, seth.bitmap, seth.entropy
        sack.mark, sack.probe_response, sack.answer = seth.mark, seth.probe_response, seth.ack_psn_offset
        sack.penalty, sack.mpr = state.rcv_cwnd_pen, seth.mpr
        self._receive_sack(qp, seth.cc_type, state.rcvd_units, now_ns)

    # --- either way --------------------------------------------------------------------------------------------

    def _receive_write(self, qp: QueuePair, data: bytes | memoryview, now_ns: int) -> None:
        if self._arrived.size < 0:
            self.log.count("malformed")
            return
        deadline_ns = qp.agenda.deadline_ns
        qp.received(now_ns)
        if qp.responder.receive_write(now_ns, self._arrived, data) and qp.agenda.deadline_ns == deadline_ns:
            self._placed += 1

    def _receive_sack(self, qp: QueuePair, kind: int, state: int, now_ns: int) -> None:
        """`kind` is the congestion type, `state` the last word of the congestion state."""
        if kind:
            qp.requester.credit.hear(kind, state, now_ns)
        qp.requester.receive_sack(now_ns, self._sack)
        qp.freshen(self._sack.ev, self._sack.mark)

    def _receive_returned(self, frame: frames.Frame, bth: wire.Bth, now_ns: int) -> None:
        """A packet of this NIC's own, which no switch could forward, for the queue pair with that peer's number."""
        for qp in self.qps.values():
            if qp.sending and qp.peer.address == frame.dst and qp.remote_qpn == bth.dest_qpn:
                qp.requester.returned.receive(now_ns, bth.psn, frame.ev)
                return
        self.log.count("no_qp")

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
