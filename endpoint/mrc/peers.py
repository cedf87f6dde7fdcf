"""The other hosts of the profile, each made when it is first needed, and the denylist of EVs to them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from random import Random
from typing import TYPE_CHECKING

from endpoint.mrc.peer import Peer
from endpoint.nic.attributes import VerbError
from endpoint.nic.dialect import Dialect
from endpoint.nic.packet import Route
from endpoint.nic.port import PortSet

if TYPE_CHECKING:
    from endpoint.profile import NicProfile


class PeerTable:
    """Peers by name and by inner address. `interval_ns` is the time between repetitions of a port status update."""

    def __init__(
        self,
        profile: NicProfile,
        ports: PortSet,
        rng: Random,
        dialect: Dialect,
        *,
        interval_ns: int,
        control_class: int,
    ) -> None:
        self._profile = profile
        self._ports = ports
        self._rng = rng
        self.dialect = dialect
        self._interval_ns = interval_ns
        self._control_class = control_class
        self._peers: dict[str, Peer] = {}
        self.waiting: set[str] = set()
        """The names of the peers to which an update has to be repeated."""
        self._by_address: dict[bytes, Peer] = {}
        self.denied: frozenset[tuple[str, int]] = frozenset()
        """(destination host, EV) of every EV that a controller has taken out."""

    @property
    def host(self) -> str:
        """The name of this host."""
        return self._profile.host

    def __iter__(self) -> Iterator[Peer]:
        """The peers that were met so far."""
        return iter(self._peers.values())

    def named(self, name: str) -> Peer:
        """Raises `VerbError` for a host that is not in the profile."""
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = self._make(name)
        return peer

    def addressed(self, address: bytes) -> Peer | None:
        """The peer with this inner address; None if no host of the profile has it."""
        peer = self._by_address.get(address)
        if peer is None:  # a host that this one does not write to
            name = self._profile.names.get(address)
            if name is not None and self._profile.destination(name) is not None:
                return self.named(name)
        return peer

    def deny(self, denied: Set[tuple[str, int]]) -> None:
        """Replace the denylist."""
        self.denied = frozenset(denied)
        for peer in self:
            peer.denied = self._denied_to(peer.name)

    def _make(self, name: str) -> Peer:
        profile = self._profile
        row = profile.destination(name)
        if row is None:
            known = ", ".join(sorted(profile.destinations)) or "none"
            raise VerbError(f"{profile.host}'s profile has no paths to {name!r}; destinations: {known}")
        encapsulated = profile.encapsulation == "srv6"
        source, destination = profile.address.packed, row.address.packed
        routes = [
            Route(
                path.ev,
                self._ports.by_number[path.port],
                path.via,
                path.da.packed,
                source,
                destination,
                self.dialect.udp_port_of(profile),
                encapsulated,
                self.dialect,
            )
            for path in row.paths
        ]
        peer = Peer(
            row,
            routes,
            self._rng,
            self._interval_ns,
            self._control_class,
            self.dialect,
            self.waiting,
            ports_all=self._ports.all,
        )
        peer.denied = self._denied_to(name)
        self._by_address[peer.address] = peer
        return peer

    def _denied_to(self, host: str) -> Set[int]:
        return {ev for name, ev in self.denied if name == host}
