"""Endpoint operations (OCP MRC): messages between two NICs outside of any connection.

A port status update says which ports of a NIC are up; an EV probe asks whether a path works in both directions. Each is
a request with an id of 16 bits and a response that repeats the id; neither is ever retransmitted as such.
"""

from collections.abc import Callable
from random import Random
from typing import ClassVar

from mypy_extensions import mypyc_attr

from endpoint.mrc.parameter import Parameter
from endpoint.mrc.peer import Peer
from endpoint.mrc.peers import PeerTable
from endpoint.nic import wire
from endpoint.nic.config import NEVER
from endpoint.nic.events import EventLog
from endpoint.nic.packet import Route
from endpoint.nic.port import Port, PortSet
from endpoint.nic.wire import EndpointOp, Opcode
from endpoint.transport import QueueFull

EV_PROBES_KEPT = 1024
ASKED_MAX = 4096
"""EV probes of programs under way."""
Answered = Callable[[Route, Port, int], None]
"""Told of the path, the port that the answer came by, and the round-trip time in ns."""


@mypyc_attr(allow_interpreted_subclasses=True)
class EndpointOperations:
    """`on_peer_ports(peer, before, now_ns)` is called when a peer's ports have changed from the mask `before`.

    Another rule for port status updates overrides `announce`, `heed`, `answered`, `handle_timer` and `next_timer_ns`.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(
        self,
        peers: PeerTable,
        ports: PortSet,
        log: EventLog,
        rng: Random,
        on_peer_ports: Callable[[Peer, int, int], None],
    ) -> None:
        self._peers = peers
        self._ports = ports
        self._log = log
        self._on_peer_ports = on_peer_ports
        self._request_id = rng.getrandbits(16)
        self._probes: dict[int, tuple[Peer, Route, Callable[[Route], None]]] = {}
        """EV probes under way by request id: peer, path, whom to tell of the answer."""
        self._asked: dict[int, tuple[Peer, Route, int, Answered]] = {}
        """The same that programs have asked for, with the time of sending. They displace none of the transport's."""

    def receive(
        self,
        arrival: Port,
        data: bytes | memoryview,
        at: int,
        opcode: int,
        qpn: int,
        psn: int,
        src: bytes,
        ev: int,
        now_ns: int,
    ) -> None:
        """A request or response with a right ICRC, from byte `at` on, from `src` by way of `ev`. Raises `struct.error`
        if it is cut short."""
        peer = self._peers.addressed(src) if qpn == wire.ENDPOINT_QPN else None
        if peer is None:
            self._log.count("wrong_peer" if qpn == wire.ENDPOINT_QPN else "no_qp")
            return
        request_id = psn & 0xFFFF
        if opcode == Opcode.ENDPOINT_REQUEST:
            request = wire.Erth.unpack(data, at)
            if self._heeded(peer, request_id, request, now_ns):
                peer.respond(arrival, ev, self._ports.up, request_id, request)
            return
        response = self._peers.dialect.eeth.unpack(data, at)
        if response.op == EndpointOp.PORT_STATUS_UPDATE:
            self._recall(peer, request_id, response.port_status_mask, now_ns)
            self.answered(peer, request_id, now_ns)
        elif response.op == EndpointOp.EV_PROBE:
            asked, route, answered = self._probes.get(request_id, (None, None, None))
            if asked is peer and route is not None and answered is not None:
                del self._probes[request_id]
                answered(route)
            elif (found_asked := self._asked.get(request_id)) is not None and found_asked[0] is peer:
                _, route, sent_ns, tell = self._asked.pop(request_id)
                tell(route, arrival, now_ns - sent_ns)

    def _heeded(self, peer: Peer, request_id: int, request: wire.Erth, now_ns: int) -> bool:
        """Act on a request; whether to answer."""
        if request.op == EndpointOp.EV_PROBE:
            return True
        if request.op != EndpointOp.PORT_STATUS_UPDATE:
            self._log.count("opcode")
            return False
        if not peer.users:
            self._log.count("no_qp")  # unanswered: a peer with a QP to us repeats it until we have one
            return False
        before = peer.ports
        changed = self.heed(peer, request_id, request.port_status_mask, now_ns)
        if changed is None:
            self._log.count("overtaken")
            return False
        peer.forgotten = False  # by a rule of the user's as well
        if changed:
            self._on_peer_ports(peer, before, now_ns)
        return True

    def _recall(self, peer: Peer, request_id: int, ports: int, now_ns: int) -> None:
        """Take the peer's ports from its answer to our update, where what it said before was forgotten."""
        before = peer.ports
        if peer.recalled(request_id, ports):
            self._on_peer_ports(peer, before, now_ns)

    def heed(self, peer: Peer, request_id: int, ports: int, now_ns: int) -> bool | None:
        """A port status update came. True if it changes `peer.ports`; None if it is not to be answered."""
        return peer.heard(request_id, ports, now_ns)

    def answered(self, peer: Peer, request_id: int, now_ns: int) -> None:
        """A peer has answered an update."""
        peer.answered(request_id, self._ports.up, now_ns)

    def probe_ev(self, peer: Peer, route: Route, answered: Callable[[Route], None]) -> None:
        """Send an EV probe; `answered` is called with the path once the peer has responded."""
        self._probes[self._next_id()] = (peer, route, answered)
        if len(self._probes) > EV_PROBES_KEPT:
            del self._probes[next(iter(self._probes))]
        peer.probe(route, self._request_id)

    def ask_ev(self, peer: Peer, route: Route, now_ns: int, tell: Answered) -> int:
        """Send an EV probe for a program; returns its request id, for `forget_ev`. Raises `QueueFull`."""
        if len(self._asked) >= ASKED_MAX:
            raise QueueFull(f"{ASKED_MAX} EV probes of programs are under way; wait for their answers")
        request_id = self._next_id()
        self._asked[request_id] = (peer, route, now_ns, tell)
        peer.probe(route, request_id)
        return request_id

    def forget_ev(self, request_id: int) -> None:
        """Nobody waits for this answer any more."""
        self._asked.pop(request_id, None)

    def _next_id(self) -> int:
        """A request id that no EV probe under way has, so that each answer finds its own."""
        self._request_id = (self._request_id + 1) & 0xFFFF
        while self._request_id in self._asked or self._request_id in self._probes:
            self._request_id = (self._request_id + 1) & 0xFFFF
        return self._request_id

    def announce(self, now_ns: int) -> None:
        """Tell every peer that has a QP with us which of our ports are up."""
        for peer in self._peers:
            if peer.users:
                peer.announce(self._ports.up, now_ns)

    def handle_timer(self, now_ns: int) -> None:
        """Repeat the port status updates that are unanswered and due."""
        if not self._peers.waiting:  # as nearly always
            return
        for peer in self._peers:
            if peer.due_ns <= now_ns:
                if peer.users and self._ports.up:
                    peer.announce(self._ports.up, now_ns)
                else:
                    peer.wait_until(NEVER)

    def next_timer_ns(self) -> int:
        """When `handle_timer` next has something to do; NEVER if nothing is unanswered."""
        if not self._peers.waiting:  # as nearly always, and this is asked after every packet
            return NEVER
        return min((peer.due_ns for peer in self._peers), default=NEVER)
