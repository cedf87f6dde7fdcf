"""The RoCEv2 baseline as a transport: one host's NIC, with the same verbs, ports and pacing as MRC's.

A QP takes one path for good: a port, and a UDP source port that is the QP's share of the entropy that switches hash
(ECMP). With an SRv6 profile the path is one of its uSID lists, at random. Meant for the plan's single-plane
equivalent, where the profile has one port and no encapsulation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from random import Random
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, Any

from endpoint.nic import frame as frames
from endpoint.nic import icrc
from endpoint.nic import wire as shared
from endpoint.nic.config import NEVER, derive, timeout_exceeding
from endpoint.nic.config import Settings as CoreSettings
from endpoint.nic.cq import CompletionQueue
from endpoint.nic.dialect import UDP_PORTS
from endpoint.nic.nic import Nic
from endpoint.nic.port import Port
from endpoint.roce import wire
from endpoint.roce.config import make_settings
from endpoint.roce.context import Context
from endpoint.roce.qp import QueuePair

if TYPE_CHECKING:
    from endpoint.profile import NicProfile


GROUP_ADDRESS = bytes.fromhex("0180c2000001")
MAC_CONTROL = 0x8808
OPCODE = 0x0101
QUANTUM_BITS = 512
_FRAME = Struct("!6s6sHHH8H")
_ETHERTYPE = slice(12, 14)


def is_mac_control(frame: bytes | memoryview) -> bool:
    return frame[_ETHERTYPE] == b"\x88\x08"


def pause_times(frame: bytes | memoryview) -> dict[int, int]:
    """The quanta of each priority that a frame is about; none for a frame that is malformed or no PFC."""
    if len(frame) < _FRAME.size:
        return {}
    address, _, ethertype, opcode, vector, *times = _FRAME.unpack_from(frame)
    if address != GROUP_ADDRESS or ethertype != MAC_CONTROL or opcode != OPCODE:
        return {}
    return {priority: quanta for priority, quanta in enumerate(times) if vector >> priority & 1}


class FlowControl:
    """The pauses of one port, whose `paused_ns` says until when the data of the baseline must wait (IEEE 802.1Qbb).

    A PFC frame (802.3, annex 31D) is `destination 01:80:C2:00:00:01 | source | 0x8808 | 0x0101 | class-enable vector |
    eight times`; times are quanta of 512 bit times, and 0 ends a pause. Acknowledgements and notifications are of
    another priority and are never paused.
    """

    def __init__(self, port: Port, classes: int) -> None:
        """`classes` are the lossless priorities, bit n for priority n: the baseline's data is of one of these."""
        self._port = port
        self._classes = classes
        self._since_ns = NEVER
        self._until_ns: dict[int, int] = {}
        self.received = self.resumed = self.ignored = self.paused_ns = 0

    def obey(self, frame: bytes | memoryview, now_ns: int) -> None:
        """A MAC control frame has come. Whatever its bytes are, only lossless priorities are paused."""
        times = {p: quanta for p, quanta in pause_times(frame).items() if self._classes >> p & 1}
        if not times:
            self.ignored += 1
            return
        if any(times.values()):
            self.received += 1
        else:
            self.resumed += 1
        self.settle(now_ns)
        for priority, quanta in times.items():
            self._until_ns[priority] = now_ns - (-quanta * QUANTUM_BITS * 1_000_000_000 // self._port.rate_bps)
        self._port.paused_ns = until_ns = max(self._until_ns.values())
        self._since_ns = now_ns if until_ns > now_ns else NEVER

    def settle(self, now_ns: int) -> None:
        """Count the pause up to `now_ns`."""
        until_ns = self._port.paused_ns
        if self._since_ns != NEVER:
            end_ns = min(now_ns, until_ns)
            self.paused_ns += max(0, end_ns - self._since_ns)
            self._since_ns = end_ns if end_ns < until_ns else NEVER

    def counters(self) -> Mapping[str, int]:
        """Totals, as a switch port has them under the same names."""
        return {
            "pause_received": self.received,
            "resume_received": self.resumed,
            "pause_ignored": self.ignored,
            "paused_ns": self.paused_ns,
        }


class RoceEndpoint(Nic[QueuePair]):
    """`rng` is the only source of chance; `settings` are those of `endpoint.roce.config.Settings`."""

    def __init__(self, profile: NicProfile, *, rng: Random, now_ns: int = 0, **settings: Any) -> None:
        self.settings = make_settings(settings)
        jitter_ns = profile.jitter_ns if self.settings.jitter_ns is None else self.settings.jitter_ns
        timeout = self.settings.timeout
        if timeout is None:
            timeout = timeout_exceeding(self.settings.timeout_rtts * (profile.base_rtt_ns + jitter_ns))
        self.limits = derive(profile, CoreSettings(jitter_ns=jitter_ns, timeout=timeout))
        super().__init__(
            profile,
            rng,
            now_ns,
            burst_ns=self.limits.burst_ns,
            events_max=self.settings.events_max,
            control_max=self.settings.control_frames_max,
        )
        self._context = Context(
            self.limits, rng, self.ports, self.memory, self.scheduler, self.log, profile, self.settings
        )
        self._flow_control = {port.number: FlowControl(port, profile.pfc_classes) for port in self.ports}
        self._udp_ports = frozenset({*UDP_PORTS, profile.udp_port})

    def create_qp(self, cq: CompletionQueue, **attributes: Any) -> QueuePair:
        """A QP in RESET. Attributes: max_send_wr, max_recv_wr, psn."""
        qp = QueuePair(self._context, self.next_qpn(), cq, attributes)
        self.qps[qp.qpn] = qp
        return qp

    def _ports_settled(self, now_ns: int, up: bool) -> None:
        """QPs on a lost port wait for it, and for their retries to run out."""
        for qp in self.qps.values():
            if up:
                qp.agenda.wake()
            elif qp.sending and not qp.route.port.up:
                qp.requester.port_lost(now_ns)

    def counters(self) -> dict[str, Any]:
        """As any NIC's; where there is flow control, with the pauses of each port."""
        totals = super().counters()
        for row in totals["ports"] if self.profile.pfc_classes else ():
            flow = self._flow_control[row["port"]]
            flow.settle(self.scheduler.now_ns)
            row.update(flow.counters())
        return totals

    def set_denied(self, denied: Set[tuple[str, int]], now_ns: int) -> None:
        """RoCE knows no EVs: there is nothing to deny, and the list stays empty."""

    # --- packets in --------------------------------------------------------------------------------------------------

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> bool:
        """Take frames in order of arrival. Whatever the bytes are, nothing is raised. False: there may be work."""
        self.scheduler.now_ns = now_ns
        arrival = self.ports.by_number[port]
        if not arrival.enabled:
            self.log.count("port_disabled", len(frames_in))
            return False
        for data in frames_in:
            arrival.rx_packets += 1
            arrival.rx_bytes += len(data)
            if self.counted:
                self.note_left_out(arrival, frames.left_out(data))
            try:
                frame = frames.parse(data)
                bth = shared.Bth.unpack(data, frame.bth)
                self._dispatch(memoryview(data)[: frame.end], frame, bth, now_ns)
            except (frames.MalformedFrame, StructError):
                if self.profile.pfc_classes and is_mac_control(data):
                    self._flow_control[port].obey(data, now_ns)
                else:
                    self.log.count("malformed")
        return False

    def _dispatch(self, view: memoryview, frame: frames.Frame, bth: shared.Bth, now_ns: int) -> None:
        destination = frame.outer[1] if frame.outer is not None else frame.dst
        if frame.udp_dport not in self._udp_ports or frame.dst != self.address or destination not in self.arrivals:
            self.log.count("not_for_us")
            return
        if len(view) + self.left_out < frame.end:
            self.log.count("truncated")
            return
        if not icrc.verify(view[frame.offset :]):
            self.log.count("icrc")
            return
        qp = self.qps.get(bth.dest_qpn)
        if qp is None or not qp.receiving:
            self.log.count("no_qp")
            return
        if frame.src != qp.peer_address:
            self.log.count("wrong_peer")
            return
        at = frame.bth + shared.BTH_BYTES
        if bth.opcode in wire.WRITES:
            self._receive_write(qp, view, frame, bth, now_ns)
        elif not qp.sending:
            self.log.count("no_qp")
        elif bth.opcode == wire.Opcode.ACKNOWLEDGE:
            aeth = shared.Aeth.unpack(view, at)
            qp.requester.receive_ack(now_ns, aeth.syndrome, bth.psn, aeth.msn)
        elif bth.opcode == wire.Opcode.CNP:
            qp.requester.receive_cnp(now_ns)
            qp.agenda.wake()
        else:
            self.log.count("opcode")

    def _receive_write(
        self, qp: QueuePair, view: memoryview, frame: frames.Frame, bth: shared.Bth, now_ns: int
    ) -> None:
        at = frame.bth + shared.BTH_BYTES
        reth = None
        if bth.opcode in wire.FIRSTS:
            reth = shared.Reth.unpack(view, at)
            at += shared.RETH_BYTES
        immediate = 0
        if bth.opcode in wire.IMMEDIATES:
            (immediate,) = shared.IMMEDIATE.unpack_from(view, at)
            at += 4
        end = frame.end - icrc.SIZE - bth.pad
        if end < at:
            self.log.count("malformed")
            return
        flags = bth.flags & 0xF0 | (shared.SOLICITED if bth.solicited else 0)
        qp.responder.receive_write(
            now_ns, bth.opcode, flags, bth.psn, frame.marked, reth, immediate, view, at, end - at
        )
