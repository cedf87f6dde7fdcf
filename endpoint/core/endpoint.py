"""One host's MRC NIC without I/O: memory, queue pairs, ports and peers behind `endpoint.transport.Transport`.

Frames, port states and the time come in through the methods; frames, events and the next deadline are asked for. The
usual frames, SRv6-encapsulated writes and SACKs, are taken apart by one fused layout in `receive`; everything else goes
the plain way through `endpoint.core.frame`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from random import Random
from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, Any
from zlib import crc32

from endpoint.core import frame as frames
from endpoint.core import icrc, packet, wire
from endpoint.core.config import NEVER, derive, make_settings
from endpoint.core.congestion import find_congestion
from endpoint.core.cq import CompletionQueue
from endpoint.core.nic import Nic
from endpoint.core.packet import Route
from endpoint.core.peer import Peer
from endpoint.core.penalty import ReceiverPenalty
from endpoint.core.port import Port
from endpoint.core.qp import QueuePair
from endpoint.core.selection import find_selection
from endpoint.core.verbs import VerbError
from endpoint.core.wire import ENDPOINT_QPN, IMMEDIATES, TIMESTAMP, WRITES, EndpointOp, Opcode, PathMark

if TYPE_CHECKING:
    from endpoint.profile import NicProfile

EV_PROBES_KEPT = 1024
ICRC_STATE = icrc.START
SACK_MIN = packet.BTH_OFFSET + packet.SACK.size + icrc.SIZE


class Endpoint(Nic[QueuePair]):
    """`rng` is the only source of chance; `settings` are those of `endpoint.core.config.Settings`."""

    def __init__(self, profile: NicProfile, *, rng: Random, now_ns: int = 0, **settings: Any) -> None:
        self.settings = make_settings(settings)
        self.limits = derive(profile, self.settings)
        find_congestion(self.settings.congestion)
        find_selection(self.settings.selection)
        super().__init__(
            profile,
            rng,
            now_ns,
            burst_ns=self.limits.burst_ns,
            events_max=self.settings.events_max,
            control_max=self.settings.control_frames_max,
        )
        dscp = profile.dscp
        self.data_class = dscp.trimmable << 2 | frames.ECN_CAPABLE
        self.retransmit_class = dscp.trimmable_retransmit << 2 | frames.ECN_CAPABLE
        self.probe_class = dscp.no_trim << 2 | frames.ECN_CAPABLE
        self.control_class = dscp.control << 2
        self._trimmed = {dscp.trimmed: False, dscp.trimmed_lasthop: True}
        """DSCP of a trimmed packet: whether the last hop trimmed it."""
        self.stamp_ns, self.stamp_resolution = 0, 0
        if self.settings.timestamps:
            # 16 bits must outlast a retransmission timeout; 128 ns is the standard's tick, longer ones are ours.
            ticks = max(1, -(-self.limits.timeout_ns // (wire.TIMESTAMP_TICK_NS << 16)))
            self.stamp_resolution = int(ticks > 1)
            self.stamp_ns = wire.TIMESTAMP_TICK_NS * ticks
        self._udp_ports = frozenset({*wire.UDP_PORTS, profile.udp_port})
        self._peers: dict[str, Peer] = {}
        self._names = {row.address.packed: name for name, row in profile.destinations.items()}
        self._ports_all = self.ports_up
        self._request_id = rng.getrandbits(16)
        self._ev_probes: dict[int, tuple[int, Peer, Route]] = {}
        """EV probes under way, by request id: QP number, peer, path."""
        self._denied: frozenset[tuple[str, int]] = frozenset()
        self._penalty = ReceiverPenalty(self.limits.base_rtt_ns)

    def create_qp(self, cq: CompletionQueue, **attributes: Any) -> QueuePair:
        """A QP in RESET. Attributes: mpr, max_write_imm, max_send_wr, max_recv_wr, psn, selection."""
        qp = QueuePair(self, self.next_qpn(), cq, attributes)
        self.qps[qp.qpn] = qp
        return qp

    # --- packets in --------------------------------------------------------------------------------------------

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> None:
        """Take frames in order of arrival. Whatever the bytes are, nothing is raised."""
        self.now_ns = now_ns
        arrival = self._by_number[port]
        unpack = packet.RECEIVE.unpack_from
        address, arrivals, udp_ports, qps, trimmed = (
            self.address,
            self.arrivals,
            self._udp_ports,
            self.qps,
            self._trimmed,
        )
        for data in frames_in:
            size = len(data)
            arrival.rx_packets += 1
            arrival.rx_bytes += size
            if size < packet.RECEIVE_MIN + icrc.SIZE:
                self._receive_plain(arrival, data, now_ns)
                continue
            (
                ethertype,
                outer,
                outer_next,
                outer_dst,
                inner,
                length,
                inner_next,
                src,
                dst,
                source_port,
                dport,
                _,
                opcode,
                second,
                qpn,
                psn,
                _,
                _,
                va,
                rkey,
                total,
            ) = unpack(data, packet.RECEIVE_OFFSET)
            if (
                ethertype != 0x86DD
                or outer_next != frames.NEXT_IPV6
                or outer >> 22 & 0x3F in trimmed
                or psn >> 24 & TIMESTAMP
                or length + 94 != size
                or not (0xC6 <= opcode <= 0xCB or opcode == 0xDC)  # the writes and SACK
            ):
                self._receive_plain(arrival, data, now_ns)
                continue
            qp = qps.get(qpn & 0xFFFFFF)
            if (
                inner_next != frames.NEXT_UDP
                or inner >> 28 != 6
                or outer >> 28 != 6
                or dst != address
                or outer_dst not in arrivals
                or dport not in udp_ports
            ):
                self.count("not_for_us")
                continue
            if qp is None or not qp.receiving:
                self.count("no_qp")
                continue
            if src != qp.peer.address:
                self.count("wrong_peer")
                continue
            view = memoryview(data)
            masked = bytearray(view[58:114])
            masked[3] = masked[42] = masked[43] = masked[48] = 0xFF
            if crc32(view[114 : size - 4], crc32(masked, ICRC_STATE)) != int.from_bytes(view[size - 4 :], "little"):
                self.count("icrc")
                continue
            if opcode == 0xDC:
                if size < SACK_MIN or not qp.sending:
                    self.count("malformed" if size < SACK_MIN else "no_qp")
                    continue
                sack = packet.SACK_BODY.unpack_from(view, packet.BTH_OFFSET + wire.BTH_BYTES)
                first, answer, entropy, _, _, cack, _, _, offset, bitmap, _, _, state = sack
                qp.requester.receive_sack(
                    now_ns, cack & 0xFFFFFF, offset, bitmap, entropy, first, answer, state >> 24 & 0x7F
                )
                self._freshen(qp, entropy)
                continue
            start, immediate = packet.WRITE_PAYLOAD_OFFSET, 0
            if opcode in IMMEDIATES:
                start += 4
                immediate = int.from_bytes(view[start - 4 : start], "big")
            end = size - 4 - (second >> 4 & 3)
            if end < start:
                self.count("malformed")
                continue
            qp.received(now_ns)
            qp.responder.receive_write(
                now_ns,
                arrival,
                1 if outer >> 20 & 3 == 3 else 0,
                (inner & 0xFFFF) << 16 | source_port,
                opcode,
                psn >> 24,
                psn & 0xFFFFFF,
                va,
                rkey,
                total,
                immediate,
                view[start:end],
                0,
            )

    def _receive_plain(self, arrival: Port, data: bytes | memoryview, now_ns: int) -> None:
        """Everything but the usual write."""
        try:
            found = frames.parse(data)
            bth = wire.Bth.unpack(data, found.bth)
        except (frames.MalformedFrame, StructError):
            self.count("malformed")
            return
        if found.udp_dport not in self._udp_ports or found.dst != self.address:
            self.count("not_for_us")
            return
        if found.outer is not None and found.outer[1] not in self.arrivals:
            self.count("not_for_us")
            return
        lasthop = self._trimmed.get(found.dscp)
        if len(data) < found.end:
            if lasthop is None or bth.opcode not in WRITES:
                self.count("truncated")
                return
            self._receive_trimmed(arrival, data, found, bth, lasthop, now_ns)
            return
        view = memoryview(data)[: found.end]
        if not icrc.verify(view[found.offset :]):
            self.count("icrc")
            return
        try:
            self._dispatch(arrival, view, found, bth, lasthop, now_ns)
        except StructError:
            self.count("malformed")

    def _receive_trimmed(
        self, arrival: Port, data: bytes | memoryview, found: frames.Frame, bth: wire.Bth, lasthop: bool, now_ns: int
    ) -> None:
        qp = self._qp_of(bth.dest_qpn, found.src)
        if qp is not None:
            qp.received(now_ns)
            qp.responder.receive_trimmed(now_ns, arrival, found.ev, bth.psn, lasthop, _stamp(data, found, bth))

    def _dispatch(
        self, arrival: Port, view: memoryview, found: frames.Frame, bth: wire.Bth, lasthop: bool | None, now_ns: int
    ) -> None:
        opcode, at = bth.opcode, found.bth + wire.BTH_BYTES
        if opcode in (Opcode.ENDPOINT_REQUEST, Opcode.ENDPOINT_RESPONSE):
            if bth.dest_qpn == ENDPOINT_QPN:
                self._endpoint_operation(arrival, view, found, bth, at, now_ns)
            else:
                self.count("no_qp")
            return
        qp = self._qp_of(bth.dest_qpn, found.src)
        if qp is None:
            return
        if opcode in WRITES:
            # A trimmed mark on a packet that is whole: the path was congested all the same.
            congested = found.marked or lasthop is False
            at += wire.METH_BYTES + (wire.TSETH_BYTES if bth.flags & TIMESTAMP else 0)
            reth = wire.Reth.unpack(view, at)
            at += wire.RETH_BYTES
            immediate = 0
            if opcode in IMMEDIATES:
                (immediate,) = wire.IMMEDIATE.unpack_from(view, at)
                at += 4
            end = found.end - icrc.SIZE - bth.pad
            if end < at:
                self.count("malformed")
                return
            qp.received(now_ns)
            qp.responder.receive_write(
                now_ns,
                arrival,
                PathMark.SKIP_ONCE if congested else PathMark.NONE,
                found.ev,
                opcode,
                bth.flags,
                bth.psn,
                reth.va,
                reth.rkey,
                reth.length,
                immediate,
                view[at:end],
                _stamp(view, found, bth),
            )
        elif opcode == Opcode.PROBE:
            probe = wire.Peth.unpack(view, at)
            qp.received(now_ns)
            qp.responder.receive_probe(
                now_ns, arrival, found.ev, bth.psn, found.marked, probe.probe_id, probe.tx_timestamp
            )
        elif not qp.sending:
            self.count("no_qp")
        elif opcode == Opcode.SACK:
            sack = wire.Seth.unpack(view, at)
            state = wire.CcState.unpack(view, at + wire.SETH_BYTES)
            first = sack.mark << 5 | sack.probe_response << 1
            qp.requester.receive_sack(
                now_ns,
                sack.cack_psn,
                sack.sack_offset,
                sack.bitmap,
                sack.entropy,
                first,
                sack.ack_psn_offset,
                state.rcv_cwnd_pen,
            )
            self._freshen(qp, sack.entropy)
        elif opcode == Opcode.NACK:
            nack = wire.Neth.unpack(view, at)
            qp.requester.receive_nack(now_ns, nack.reason, nack.nack_psn, nack.entropy)
        elif opcode == Opcode.ACKNOWLEDGE:
            aeth = wire.Aeth.unpack(view, at)
            qp.requester.receive_ack(now_ns, aeth.syndrome, aeth.msn, bth.psn)
        else:
            self.count("opcode")

    def _freshen(self, qp: QueuePair, ev: int) -> None:
        """An acknowledged data EV is good enough for the reverse direction too."""
        path = qp.evs.paths.get(ev)
        if path is not None:
            qp.responder.confirm(path.route)

    def _qp_of(self, qpn: int, src: bytes) -> QueuePair | None:
        qp = self.qps.get(qpn)
        if qp is None or not qp.receiving:
            self.count("no_qp")
            return None
        if src != qp.peer.address:
            self.count("wrong_peer")
            return None
        return qp

    # --- endpoint operations -----------------------------------------------------------------------------------

    def _endpoint_operation(
        self, arrival: Port, view: memoryview, found: frames.Frame, bth: wire.Bth, at: int, now_ns: int
    ) -> None:
        name = self._names.get(found.src)
        if name is None:
            self.count("wrong_peer")
            return
        peer = self.peer(name)
        request_id = bth.psn & 0xFFFF
        if bth.opcode == Opcode.ENDPOINT_REQUEST:
            request = wire.Erth.unpack(view, at)
            if request.op == EndpointOp.PORT_STATUS_UPDATE:
                if not peer.users:
                    self.count("no_qp")  # unanswered: who has a QP to us goes on telling until we have one too
                    return
                before = peer.ports
                changed = peer.heard(request_id, request.port_status_mask, now_ns)
                if changed is None:
                    self.count("overtaken")
                    return
                if changed:
                    self._peer_ports_changed(peer, before, now_ns)
            elif request.op != EndpointOp.EV_PROBE:
                self.count("opcode")
                return
            peer.respond(arrival, found.ev, self.ports_up, request_id, request)
            return
        response = wire.Eeth.unpack(view, at)
        if response.op == EndpointOp.PORT_STATUS_UPDATE:
            peer.answered(request_id, self.ports_up)
        elif response.op == EndpointOp.EV_PROBE:
            qpn, asked, route = self._ev_probes.get(request_id, (0, None, None))
            if asked is not peer or route is None:
                return
            del self._ev_probes[request_id]
            qp = self.qps.get(qpn)
            if qp is not None and qp.receiving and qp.peer is peer:
                qp.responder.confirm(route)

    def _peer_ports_changed(self, peer: Peer, before: int, now_ns: int) -> None:
        for port in self.ports:
            if (before ^ peer.ports) & port.bit:
                up = bool(peer.ports & port.bit)
                self.plane_event(now_ns, port, "peer", peer.name, up, "port_status_update")
        for qp in self.qps.values():
            if qp.joined and qp.peer is peer:
                qp.refresh_ports()
                qp.wake()

    def probe_ev(self, qp: QueuePair, route: Route) -> None:
        """Send an EV probe for a QP's reverse direction."""
        self._request_id = (self._request_id + 1) & 0xFFFF
        self._ev_probes[self._request_id] = (qp.qpn, qp.peer, route)
        if len(self._ev_probes) > EV_PROBES_KEPT:
            del self._ev_probes[next(iter(self._ev_probes))]
        qp.peer.probe(route, self._request_id)

    # --- ports, peers, denylist --------------------------------------------------------------------------------

    def port_changed(self, port: int, up: bool, now_ns: int) -> None:
        """Carrier came or went. A lost port is left at once, with what was queued on it, and every peer is told."""
        if self.set_port(port, up, now_ns) is None:
            return
        for qp in self.qps.values():
            if qp.joined:
                qp.refresh_ports()
                qp.wake()
        for peer in self._peers.values():
            if peer.users:
                peer.announce(self.ports_up, now_ns)

    def peer(self, name: str) -> Peer:
        """Raises `VerbError` for a host that is not in the profile."""
        found = self._peers.get(name)
        if found is None:
            row = self.profile.destinations.get(name)
            if row is None:
                known = ", ".join(sorted(self.profile.destinations)) or "none"
                raise VerbError(f"{self.host}'s profile has no paths to {name!r}; destinations: {known}")
            encapsulated = self.profile.encapsulation == "srv6"
            routes = [
                Route(
                    path.ev,
                    self._by_number[path.port],
                    path.via,
                    path.da.packed,
                    self.address,
                    row.address.packed,
                    self.profile.udp_port,
                    encapsulated,
                )
                for path in row.paths
            ]
            found = self._peers[name] = Peer(
                row,
                routes,
                self.rng,
                self.limits.probe_interval_ns,
                self.control_class,
                ports_all=self._ports_all,
            )
            found.denied = self._denied_to(name)
        return found

    def joined(self, qp: QueuePair, now_ns: int) -> None:
        """A QP has met its peer: apply the denylist, and tell the peer of our ports.

        It need not be told that all are up, unless it was told otherwise; what else it was told before, it may have
        forgotten in a new start.
        """
        peer = qp.peer
        qp.deny(peer.denied, now_ns)
        if self.ports_up != self._ports_all or peer.told != self.ports_up:
            peer.asked.clear()  # what it answered before it may have forgotten since
            peer.announce(self.ports_up, now_ns)

    def denied(self) -> Set[tuple[str, int]]:
        return self._denied

    def set_denied(self, denied: Set[tuple[str, int]], now_ns: int) -> None:
        self.now_ns = now_ns
        self._denied = frozenset(denied)
        for peer in self._peers.values():
            peer.denied = self._denied_to(peer.name)
        for qp in self.qps.values():
            if qp.joined:
                qp.deny(qp.peer.denied, now_ns)
                qp.wake()

    def _denied_to(self, host: str) -> Set[int]:
        return {ev for name, ev in self._denied if name == host}

    # --- timers and packets out --------------------------------------------------------------------------------

    def handle_timer(self, now_ns: int) -> None:
        super().handle_timer(now_ns)
        for peer in self._peers.values():
            if peer.due_ns <= now_ns:
                if peer.users and self.ports_up:
                    peer.announce(self.ports_up, now_ns)
                else:
                    peer.due_ns = NEVER

    def next_timer_ns(self) -> int | None:
        due_ns = min((peer.due_ns for peer in self._peers.values()), default=NEVER)
        other_ns = super().next_timer_ns()
        if other_ns is not None and other_ns < due_ns:
            return other_ns
        return None if due_ns >= NEVER else due_ns

    def penalty(self, now_ns: int) -> int:
        """The receiver's penalty for the next SACK."""
        rule = self._penalty
        if now_ns >= rule.due_ns and self.settings.rcv_penalty:
            rule.update((qp.responder for qp in self.qps.values() if qp.joined), now_ns)
        return rule.current


def _stamp(data: bytes | memoryview, found: frames.Frame, bth: wire.Bth) -> int:
    """The timestamp to echo; 0 if the packet carries none, or was cut before it."""
    at = found.bth + wire.BTH_BYTES + wire.METH_BYTES
    if not bth.flags & TIMESTAMP or at + wire.TSETH_BYTES > len(data):
        return 0
    return wire.Tseth.unpack(data, at).tx_timestamp
