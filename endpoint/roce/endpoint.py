"""The RoCEv2 baseline as a transport: one host's NIC, with the same verbs, ports and pacing as MRC's.

A QP takes one path for good: a port, and a UDP source port that is the QP's share of the entropy that switches hash
(ECMP). With an SRv6 profile the path is one of its uSID lists, at random. Meant for the plan's single-plane
equivalent, where the profile has one port and no encapsulation.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from random import Random
from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, Any

from endpoint.core import frame as frames
from endpoint.core import icrc
from endpoint.core import wire as shared
from endpoint.core.config import Settings as CoreSettings
from endpoint.core.config import derive, timeout_exceeding
from endpoint.core.cq import CompletionQueue
from endpoint.core.nic import Nic
from endpoint.core.packet import Route
from endpoint.core.verbs import VerbError
from endpoint.roce import wire
from endpoint.roce.config import make_settings
from endpoint.roce.qp import QueuePair

if TYPE_CHECKING:
    from endpoint.profile import NicProfile

SOURCE_PORT_FIRST = 0xC000
SOURCE_PORTS = 0x4000
"""RoCEv2 puts its entropy into 14 bits of the UDP source port (annex A17)."""


class Endpoint(Nic[QueuePair]):
    """`rng` is the only source of chance; `settings` are those of `endpoint.roce.config.Settings`."""

    def __init__(self, profile: NicProfile, *, rng: Random, now_ns: int = 0, **settings: Any) -> None:
        self.settings = make_settings(settings)
        jitter_ns = profile.jitter_ns if self.settings.jitter_ns is None else self.settings.jitter_ns
        timeout = self.settings.timeout
        if timeout is None:
            timeout = timeout_exceeding(8 * (profile.base_rtt_ns + jitter_ns))
        self.limits = derive(profile, CoreSettings(jitter_ns=jitter_ns, timeout=timeout))
        super().__init__(
            profile,
            rng,
            now_ns,
            burst_ns=self.limits.burst_ns,
            events_max=self.settings.events_max,
            control_max=self.settings.control_frames_max,
        )
        self.data_class = profile.dscp.roce << 2 | frames.ECN_CAPABLE
        self.control_class = profile.dscp.control << 2
        self._udp_ports = frozenset({*shared.UDP_PORTS, profile.udp_port})

    def create_qp(self, cq: CompletionQueue, **attributes: Any) -> QueuePair:
        """A QP in RESET. Attributes: max_send_wr, max_recv_wr, psn."""
        qp = QueuePair(self, self.next_qpn(), cq, attributes)
        self.qps[qp.qpn] = qp
        return qp

    def choose_route(self, host: str) -> Route:
        """The path of a new QP. Raises `VerbError` for a host that is not in the profile."""
        row = self.profile.destinations.get(host)
        if row is None:
            known = ", ".join(sorted(self.profile.destinations)) or "none"
            raise VerbError(f"{self.host}'s profile has no paths to {host!r}; destinations: {known}")
        path = self.rng.choice(row.paths)
        encapsulated = self.profile.encapsulation == "srv6"
        entropy = SOURCE_PORT_FIRST + self.rng.randrange(SOURCE_PORTS)
        port = next(port for port in self.ports if port.number == path.port)
        addresses = (path.da.packed, self.address, row.address.packed)
        return Route(entropy, port, path.via, *addresses, self.profile.udp_port, encapsulated)

    def peer_address(self, host: str) -> bytes:
        """The inner address of a host of the profile."""
        return self.profile.destinations[host].address.packed

    def port_changed(self, port: int, up: bool, now_ns: int) -> None:
        """Carrier came or went. QPs on a lost port wait for it, and for their retries to run out."""
        if self.set_port(port, up, now_ns) is not None and up:
            for qp in self.qps.values():
                qp.wake()

    def set_denied(self, denied: Set[tuple[str, int]], now_ns: int) -> None:
        """RoCE knows no EVs: there is nothing to deny, and the list stays empty."""

    # --- packets in --------------------------------------------------------------------------------------------------

    def receive(self, port: int, frames_in: Sequence[bytes | memoryview], now_ns: int) -> None:
        """Take frames in order of arrival. Whatever the bytes are, nothing is raised."""
        self.now_ns = now_ns
        arrival = self._by_number[port]
        for data in frames_in:
            arrival.rx_packets += 1
            arrival.rx_bytes += len(data)
            try:
                found = frames.parse(data)
                bth = shared.Bth.unpack(data, found.bth)
                self._dispatch(memoryview(data)[: found.end], found, bth, now_ns)
            except (frames.MalformedFrame, StructError):
                self.count("malformed")

    def _dispatch(self, view: memoryview, found: frames.Frame, bth: shared.Bth, now_ns: int) -> None:
        destination = found.outer[1] if found.outer is not None else found.dst
        if found.udp_dport not in self._udp_ports or found.dst != self.address or destination not in self.arrivals:
            self.count("not_for_us")
            return
        if len(view) < found.end:
            self.count("truncated")
            return
        if not icrc.verify(view[found.offset :]):
            self.count("icrc")
            return
        qp = self.qps.get(bth.dest_qpn)
        if qp is None or not qp.receiving:
            self.count("no_qp")
            return
        if found.src != qp.peer_address:
            self.count("wrong_peer")
            return
        opcode, at = bth.opcode, found.bth + shared.BTH_BYTES
        if opcode in wire.WRITES:
            reth = None
            if opcode in wire.FIRSTS:
                reth = shared.Reth.unpack(view, at)
                at += shared.RETH_BYTES
            immediate = 0
            if opcode in wire.IMMEDIATES:
                (immediate,) = shared.IMMEDIATE.unpack_from(view, at)
                at += 4
            end = found.end - icrc.SIZE - bth.pad
            if end < at:
                self.count("malformed")
                return
            qp.responder.receive_write(now_ns, opcode, bth.flags, bth.psn, found.marked, reth, immediate, view[at:end])
        elif not qp.sending:
            self.count("no_qp")
        elif opcode == wire.Opcode.ACKNOWLEDGE:
            qp.requester.receive_ack(now_ns, shared.Aeth.unpack(view, at).syndrome, bth.psn)
        elif opcode == wire.Opcode.CNP:
            qp.requester.receive_cnp(now_ns)
            qp.wake()
        else:
            self.count("opcode")
