"""The way back: which EV the acknowledgements of one QP take, one for each port (paper §2.4).

An EV is confirmed when our data or probe on it was answered. Until then a port's EV is a guess, and gives way to
the EV that a packet came by, which has at least worked in one direction.
"""

from collections.abc import Set

from endpoint.mrc.peer import Peer
from endpoint.nic.packet import Route
from endpoint.nic.port import Port


class ReverseEvs:
    """`routes` has the EV for acknowledgements by port number, `reachable` the bits of ports that lead to the peer."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.routes: dict[int, Route] = peer.routes_on(-1)
        self._denied: Set[int] = frozenset()
        self._confirmed = 0
        self._at = 0
        self.reachable = 0

    def confirm(self, route: Route) -> None:
        """An EV has been acknowledged or has answered: acknowledgements go by it from now on, unless it is denied."""
        if route.ev not in self._denied:
            self.routes[route.port.number] = route
            self._confirmed |= route.port.bit

    def avoid(self, denied: Set[int]) -> None:
        """Exactly these EVs are denied, by whichever list: choose others in their place."""
        self._denied = denied
        for number, route in self.routes.items():
            if route.ev in denied:
                self.routes[number] = self._peer.routes_on(route.port.bit, denied)[number]
                self._confirmed &= ~route.port.bit

    def choose(self, port: Port, ev: int) -> Route | None:
        """For an answer to what came by `port` on `ev`: that port's EV, else the EV of any live port."""
        if port.bit & self.reachable:
            if not port.bit & self._confirmed:
                route = self._peer.back_on(port, ev)
                if route is not None and ev not in self._denied:
                    return route
            route = self.routes.get(port.number)
            if route is not None:
                return route
        return next(iter(self.live()), None)

    def same_way(self, port: Port, ev: int) -> Route | None:
        """For an answer to a probe, which asks whether its own path works: the EV that the probe came by."""
        if port.bit & self.reachable:
            route = self._peer.back_on(port, ev)
            if route is not None:
                return route
        return self.choose(port, ev)

    def live(self) -> list[Route]:
        """The EVs whose ports lead to the peer."""
        reachable = self.reachable
        return [route for route in self.routes.values() if route.port.bit & reachable]

    def candidate(self) -> Route | None:
        """A random EV to try out with a probe, of one live plane after the other; None if no plane is live."""
        choices = list(self._peer.routes_on(self.reachable, self._denied).values())
        if not choices:
            return None
        self._at = (self._at + 1) % len(choices)
        return choices[self._at]
