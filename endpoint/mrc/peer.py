"""Another host, as seen from this one: its paths, which of its ports it says are up, and what it was told of our ports.

Port status updates are endpoint operations: they belong to no connection, are sent on every live plane at once, and
are repeated as a new request until any one of them is answered. Port n of every host is on the same plane, so the
peer's mask says directly which of our ports still lead to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from enum import Enum
from random import Random
from typing import TYPE_CHECKING

from endpoint.mrc.paths.shuffling import choose
from endpoint.nic import wire
from endpoint.nic.config import NEVER
from endpoint.nic.dialect import Dialect
from endpoint.nic.headers import Header
from endpoint.nic.packet import Route
from endpoint.nic.wire import EndpointOp

if TYPE_CHECKING:
    from endpoint import profile
    from endpoint.nic.port import Port


IDS = 1 << 16
BEHIND_MAX = 64
"""An id this little behind the newest, or less, is older than the newest; one further behind is another count."""
UNDER_WAY_INTERVALS = 8
"""No frame is under way for longer than this."""
REMEMBERED_INTERVALS = 64
REMEMBERED_MAX = 64


class UpdateRelation(Enum):
    """How an update relates to the updates heard before."""

    NEWS = "news"
    REPEATED = "repeated"
    OVERTAKEN = "overtaken"


class HeardUpdates:
    """Which updates of one peer are news, by their ids. `interval_ns` is the time between repetitions of an update.

    A repetition has an id that was heard lately. An update that a newer one has overtaken on the way was usually never
    heard; where a peer counts its ids up as ours does, an id a little behind the newest gives it away. A peer that
    draws its ids at random is misjudged by that once in a thousand times, for a few round trips.
    """

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = interval_ns
        self._heard: dict[int, int] = {}
        """When each id was first heard, oldest first."""
        self._newest = 0
        self._newest_ns = -(1 << 62)

    def standing(self, request_id: int, now_ns: int) -> UpdateRelation:
        """Judge an update by its id; news is remembered."""
        heard_ns = self._heard.pop(request_id, None)
        if heard_ns is not None and now_ns < heard_ns + REMEMBERED_INTERVALS * self._interval_ns:
            self._heard[request_id] = heard_ns
            return UpdateRelation.REPEATED
        recent = now_ns < self._newest_ns + UNDER_WAY_INTERVALS * self._interval_ns
        if recent and (self._newest - request_id) % IDS <= BEHIND_MAX:
            return UpdateRelation.OVERTAKEN
        self._heard[request_id] = now_ns
        if len(self._heard) > REMEMBERED_MAX:
            del self._heard[next(iter(self._heard))]
        self._newest, self._newest_ns = request_id, now_ns
        return UpdateRelation.NEWS


REQUEST_IDS = 1 << 16
OWN_IDS_KEPT = 64
PORTS_ALL = (1 << 32) - 1


class Peer:
    """`interval_ns` is the time between repetitions, `ports_all` the mask of our ports, which a peer takes to be up.

    Our updates have ids that count up from a random one, so that a new start does not use the same again. An update
    that comes too late is not answered: its sender repeats it. `dialect` says where a response has its operation.
    """

    def __init__(
        self,
        row: profile.Destination,
        routes: list[Route],
        rng: Random,
        interval_ns: int,
        control_class: int,
        dialect: Dialect,
        waiting: set[str],
        *,
        ports_all: int,
    ) -> None:
        self.row = row
        self.name = row.host
        self.address: bytes = row.address.packed
        self.routes = routes
        self.by_ev = {route.ev: route for route in routes}
        self._by_port: dict[int, list[Route]] = {}
        for route in routes:
            self._by_port.setdefault(route.port.number, []).append(route)
        self._rng = rng
        self._interval_ns = interval_ns
        self._control_class = control_class
        self._dialect = dialect
        self._waiting = waiting
        self._ports_all = ports_all
        self.denied: Set[int] = frozenset()
        """EVs that a controller has taken out."""
        self.users = 0
        """QPs to this peer that can receive."""
        self.ports = PORTS_ALL
        """The peer's own ports that it says are up."""
        self.forgotten = False
        """Whether the peer has said that ports are down, all QPs went since, and it has said nothing new."""
        self._heard = HeardUpdates(interval_ns)
        self._update_id = rng.randrange(REQUEST_IDS)
        self._own_ids: deque[int] = deque(maxlen=OWN_IDS_KEPT)
        """Ids of our last updates."""
        self.told: int | None = ports_all
        """Our ports as the peer knows them; None while it may have heard another update or not."""
        self.asked: dict[int, int] = {}
        """Updates under way: request id to the mask it carried."""
        self.due_ns = NEVER
        """When an unanswered update is repeated."""

    def wait_until(self, due_ns: int) -> None:
        """Set when an unanswered update is repeated; `waiting` holds the names of all peers with such a time."""
        self.due_ns = due_ns
        if due_ns == NEVER:
            self._waiting.discard(self.name)
        else:
            self._waiting.add(self.name)

    def routes_on(self, ports: int, denied: Set[int] | None = None) -> dict[int, Route]:
        """A random route for each port in the mask, by port number; a denied one only where there is no other. `denied`
        is a queue pair's, which may deny more than the peer's list."""
        denied = self.denied if denied is None else denied
        by_port = {number: routes for number, routes in self._by_port.items() if routes[0].port.bit & ports}
        if denied:
            for number, routes in by_port.items():
                by_port[number] = [route for route in routes if route.ev not in denied] or routes
        bits = self._rng.getrandbits
        return {number: choose(routes, bits) for number, routes in by_port.items()}

    # --- telling the peer of our ports -------------------------------------------------------------------------

    def joined(self, ports: int, now_ns: int) -> None:
        """Another QP can receive from this peer: tell the peer if any of our ports is down, or was said to be.

        What the peer answered before, it may have forgotten in a new start. Where we have forgotten what the peer said,
        the answer to our update says it again.
        """
        self.users += 1
        if ports != self._ports_all or self.told != ports or self.forgotten:
            self.asked.clear()
            self.announce(ports, now_ns)

    def announce(self, ports: int, now_ns: int) -> None:
        """Send our port mask; `due_ns` is when to repeat it under another id. First on every port that is up on both
        sides; what was not answered, on every port that is up here: what we know of the peer may be out of date, as
        what the peer knows of us, so that each would tell by ports that have died on the other side."""
        again = ports in self.asked.values()
        request_id = self._update_id = (self._update_id + 1) % REQUEST_IDS
        self._own_ids.append(request_id)
        if ports != self.told:
            self.told = None
        shared = 0 if again else ports & self.ports
        for route in self.routes_on(shared).values() or self.routes_on(ports).values():
            self.tell(route, request_id, ports)
        if not again:
            self.asked.clear()  # an answer to what was true before another update says nothing
        self.asked[request_id] = ports
        if len(self.asked) > 8:
            del self.asked[next(iter(self.asked))]
        self.wait_until(now_ns + self._interval_ns)

    def answered(self, request_id: int, ports: int, now_ns: int) -> None:
        """A response came: it ends the announcement if it answers an update that says what is true now.

        A response to an update that we never sent means that the peer has heeded one of a process before this: tell
        the peer again.
        """
        if self.asked.get(request_id) == ports:
            self.told = ports
            self.asked.clear()
            self.wait_until(NEVER)
        elif request_id not in self._own_ids and self.users:
            self.told = None
            self.wait_until(min(self.due_ns, now_ns + self._interval_ns))

    def tell(self, route: Route, request_id: int, ports: int) -> None:
        """Send one update with our port mask by one path."""
        self._request(route, request_id, EndpointOp.PORT_STATUS_UPDATE, ports)

    def probe(self, route: Route, request_id: int) -> None:
        """Send an EV probe."""
        self._request(route, request_id, EndpointOp.EV_PROBE, 0)

    def _request(self, route: Route, request_id: int, op: EndpointOp, ports: int) -> None:
        self._send(route, wire.OP_ENDPOINT_REQUEST, request_id, wire.Erth(op, ports))

    def _send(self, route: Route, opcode: int, request_id: int, operation: Header) -> None:
        bth = wire.Bth(opcode, wire.ENDPOINT_QPN, request_id, variant=0xFF)
        route.port.queue_control(route.seal(bytearray(bth.pack() + operation.pack()), self._control_class))

    # --- what the peer tells -----------------------------------------------------------------------------------

    def heard(self, request_id: int, ports: int, now_ns: int) -> bool | None:
        """A port status update came. True if it changes anything; None if it is not to be heeded or answered.

        Not heeded is an update that a newer has overtaken, or that says another thing by the same id.
        """
        standing = self._heard.standing(request_id, now_ns)
        if standing is not UpdateRelation.NEWS:
            return False if standing is UpdateRelation.REPEATED and ports == self.ports else None
        return self._says(ports)

    def recalled(self, request_id: int, ports: int) -> bool:
        """A response came, with the peer's ports: heeded where they were forgotten. True if it changes anything."""
        heeded = self.forgotten and self.users > 0 and request_id in self.asked and ports != 0
        return heeded and self._says(ports)

    def _says(self, ports: int) -> bool:
        changed = ports != self.ports
        self.ports, self.forgotten = ports, False
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
        response = self._dialect.eeth(request.op, ports, request.tx_timestamp, request.tsr)
        self._send(route, wire.OP_ENDPOINT_RESPONSE, request_id, response)

    def left(self) -> None:
        """A QP is gone. With the last one goes what the peer has said, which may start anew with all ports up and then
        says nothing. A peer that does not start anew takes it for known, so the next QP asks."""
        self.users -= 1
        if not self.users:
            self.forgotten = self.forgotten or self.ports & self._ports_all != self._ports_all
            self.ports = PORTS_ALL
