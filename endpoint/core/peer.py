"""Another host, as seen from this one: its paths, which of its ports it says are up, and what it was told of ours.

Port status updates are endpoint operations: they belong to no connection, are sent on every live plane at once, and
are repeated as a new request until any one of them is answered. Port n of every host is on the same plane, so the
peer's mask says directly which of our ports still lead to it.
"""

from __future__ import annotations

from collections.abc import Set
from random import Random
from typing import TYPE_CHECKING

from endpoint.core import wire
from endpoint.core.config import NEVER
from endpoint.core.packet import Route
from endpoint.core.psn import expand
from endpoint.core.wire import EndpointOp, Opcode

if TYPE_CHECKING:
    from endpoint import profile
    from endpoint.core.port import Port

REQUEST_BITS = 16
OVERTAKEN_INTERVALS = 4096
"""An update this much younger than the last has not been overtaken by it: its id, of 16 bits, may have gone round.

Fewer than half of the ids are used up meanwhile, and no frame is under way for that long."""
PORTS_ALL = (1 << 32) - 1


class Peer:
    """`interval_ns` is the time between repetitions, `ports_all` the mask of our ports, which a peer takes to be up.

    A peer tells old updates from new by their ids. They count intervals of the clock, or faster where ports flap often,
    so that they grow over a new start too. An update that comes too late is not answered: whoever is not heeded goes
    on telling.
    """

    __slots__ = (
        "_control_class",
        "_interval_ns",
        "_ports_all",
        "_remote_id",
        "_remote_ns",
        "_rng",
        "_update_id",
        "address",
        "asked",
        "by_ev",
        "denied",
        "due_ns",
        "name",
        "ports",
        "routes",
        "row",
        "told",
        "users",
    )

    def __init__(
        self,
        row: profile.Destination,
        routes: list[Route],
        rng: Random,
        interval_ns: int,
        control_class: int,
        *,
        ports_all: int,
    ) -> None:
        self.row = row
        self.name = row.host
        self.address: bytes = row.address.packed
        self.routes = routes
        self.by_ev = {route.ev: route for route in routes}
        self._rng = rng
        self._interval_ns = interval_ns
        self._control_class = control_class
        self._ports_all = ports_all
        self.denied: Set[int] = frozenset()
        """EVs that a controller has taken out."""
        self.users = 0
        """QPs to this peer that can receive."""
        self.ports = PORTS_ALL
        """The peer's own ports that it says are up."""
        self._remote_id: int | None = None
        self._remote_ns = 0
        self._update_id = 0
        self.told: int | None = ports_all
        """Our ports as the peer knows them; None while it may have heard another update or not."""
        self.asked: dict[int, int] = {}
        """Updates under way: request id to the mask it carried."""
        self.due_ns = NEVER

    def routes_on(self, ports: int) -> dict[int, Route]:
        """A random route for each port in the mask, by port number; a denied one only where there is no other."""
        by_port: dict[int, list[Route]] = {}
        for route in self.routes:
            if route.port.bit & ports:
                by_port.setdefault(route.port.number, []).append(route)
        if self.denied:
            for number, routes in by_port.items():
                by_port[number] = [route for route in routes if route.ev not in self.denied] or routes
        return {number: self._rng.choice(routes) for number, routes in by_port.items()}

    # --- telling the peer of our ports -------------------------------------------------------------------------

    def joined(self, ports: int, now_ns: int) -> None:
        """Another QP can receive from this peer: tell the peer if any of our ports is down, or was said to be.

        What the peer answered before, it may have forgotten in a new start.
        """
        self.users += 1
        if ports != self._ports_all or self.told != ports:
            self.asked.clear()
            self.announce(ports, now_ns)

    def announce(self, ports: int, now_ns: int) -> None:
        """Send our port mask on every port that is up; `due_ns` is when to repeat it under another id."""
        self._update_id = max(self._update_id + 1, now_ns // self._interval_ns)
        request_id = self._update_id & ((1 << REQUEST_BITS) - 1)
        if ports != self.told:
            self.told = None
        for route in self.routes_on(ports & self.ports).values() or self.routes_on(ports).values():
            self._request(route, request_id, EndpointOp.PORT_STATUS_UPDATE, ports)
        if ports not in self.asked.values():
            self.asked.clear()  # an answer to what was true before another update says nothing
        self.asked[request_id] = ports
        if len(self.asked) > 8:
            del self.asked[next(iter(self.asked))]
        self.due_ns = now_ns + self._interval_ns

    def answered(self, request_id: int, ports: int) -> bool:
        """A response came. True if it ends the announcement: it answers an update that says what is true now."""
        if request_id not in self.asked:
            return False
        if self.asked[request_id] != ports:
            return False
        self.told = ports
        self.asked.clear()
        self.due_ns = NEVER
        return True

    def probe(self, route: Route, request_id: int) -> None:
        """Send an EV probe."""
        self._request(route, request_id, EndpointOp.EV_PROBE, 0)

    def _request(self, route: Route, request_id: int, op: EndpointOp, ports: int) -> None:
        transport = bytearray(
            wire.Bth(Opcode.ENDPOINT_REQUEST, wire.ENDPOINT_QPN, request_id, variant=0xFF).pack()
            + wire.Erth(op, ports).pack()
        )
        route.port.queue_control(route.seal(transport, self._control_class))

    # --- what the peer tells -----------------------------------------------------------------------------------

    def heard(self, request_id: int, ports: int, now_ns: int) -> bool | None:
        """A port status update came. True if it changes anything; None if it is not to be heeded or answered.

        That is one that a newer has overtaken, or that says another thing by the same id, after a new start.
        """
        serial = request_id
        if self._remote_id is not None and now_ns < self._remote_ns + OVERTAKEN_INTERVALS * self._interval_ns:
            serial = expand(request_id, self._remote_id, REQUEST_BITS)
            if serial <= self._remote_id:
                return False if serial == self._remote_id and ports == self.ports else None
        self._remote_id, self._remote_ns = serial, now_ns
        changed = ports != self.ports
        self.ports = ports
        return changed

    def back_on(self, port: Port, ev: int) -> Route | None:
        """The way back over the switches that a packet came by: the EV names the same spine in either direction."""
        route = self.by_ev.get(ev)
        return route if route is not None and route.port is port else None

    def respond(self, arrival: Port, ev: int, ports: int, request_id: int, request: wire.Erth) -> None:
        """Answer on the control class, by the way it came if its port is up: any other may be dead."""
        route = self.back_on(arrival, ev) if arrival.bit & ports else None
        if route is None:
            choices = self.routes_on(arrival.bit & ports) or self.routes_on(ports)
            if not choices:
                return
            route = next(iter(choices.values()))
        transport = bytearray(
            wire.Bth(Opcode.ENDPOINT_RESPONSE, wire.ENDPOINT_QPN, request_id, variant=0xFF).pack()
            + wire.Eeth(request.op, ports, request.tx_timestamp, request.tsr).pack()
        )
        route.port.queue_control(route.seal(transport, self._control_class))

    def left(self) -> None:
        """A QP is gone. With the last one goes what the peer has said: it tells the next one if a port is down."""
        self.users -= 1
        if not self.users:
            self.ports = PORTS_ALL
