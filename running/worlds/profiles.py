"""NIC profiles of simulated hosts: as in `topo.profile`, but destinations and paths are made when they are first read.

A thousand hosts are a million destinations of each other and have 134 million paths; a permutation uses a thousandth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv6Address
from typing import overload

from endpoint import profile
from endpoint.profile import Destination, NicProfile, ProfilePath, ProfilePort
from topo.address import host_address
from topo.node import Host
from topo.plan import Plan
from topo.profile import nic_profile, pair_rtt_ns, path_rows


class Shared(dict[tuple[int, str], tuple[ProfilePath, ...]]):
    """Paths by the leaf of the sender and the name of the receiver: all hosts under one leaf have the same ones."""

    OF_ONE_HOST = False  # no host is told of how many others in its process have asked for


class Paths(Sequence[ProfilePath]):
    """Every path from one host to another, read as `endpoint.profile` reads them."""

    __slots__ = ("_here", "_made", "_plan", "_ports", "_shared", "_there")

    def __init__(self, plan: Plan, here: Host, there: Host, ports: tuple[ProfilePort, ...], shared: Shared) -> None:
        self._plan = plan
        self._here = here
        self._there = there
        self._ports = ports
        self._shared = shared
        self._made: tuple[ProfilePath, ...] | None = None

    def _all(self) -> tuple[ProfilePath, ...]:
        if self._made is None:
            place = self._plan.leaf_of(self._here), self._there.name
            if place not in self._shared:
                rows = path_rows(self._plan, self._here, self._there)
                self._shared[place] = profile.paths(rows, self._ports)
            self._made = self._shared[place]
        return self._made

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[ProfilePath]:
        return iter(self._all())

    @overload
    def __getitem__(self, place: int) -> ProfilePath: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ProfilePath]: ...
    def __getitem__(self, place: int | slice) -> ProfilePath | Sequence[ProfilePath]:
        return self._all()[place]


class Destinations(Mapping[str, Destination]):
    """Every other host, in the plan's order. `addresses` has all hosts by name with their addresses."""

    __slots__ = ("_addresses", "_here", "_made", "_plan", "_ports", "_shared")

    def __init__(
        self,
        plan: Plan,
        here: Host,
        ports: tuple[ProfilePort, ...],
        addresses: Mapping[str, tuple[Host, IPv6Address]],
        shared: Shared,
    ) -> None:
        self._plan = plan
        self._here = here
        self._ports = ports
        self._addresses = addresses
        self._shared = shared
        self._made: dict[str, Destination] = {}

    def __len__(self) -> int:
        return len(self._addresses) - 1

    def __iter__(self) -> Iterator[str]:
        own = self._here.name
        return (name for name in self._addresses if name != own)

    def __contains__(self, name: object) -> bool:
        return name in self._addresses and name != self._here.name

    def __getitem__(self, name: str) -> Destination:
        found = self._made.get(name)
        if found is None:
            if name not in self:
                raise KeyError(name)
            other, address = self._addresses[name]
            paths = Paths(self._plan, self._here, other, self._ports, self._shared)
            round_trip_ns = pair_rtt_ns(self._plan, self._here, other)
            found = self._made[name] = Destination(name, other.index, address, round_trip_ns, paths)
        return found


class HostProfiles:
    """The profiles of a plan's hosts in virtual time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._addresses = {host.name: (host, IPv6Address(host_address(plan, host))) for host in plan.hosts()}
        self._shared = Shared()

    def of(self, host: Host) -> NicProfile:
        own = profile.parse(nic_profile(self._plan, host, destinations=()))
        return replace(own, destinations=Destinations(self._plan, host, own.ports, self._addresses, self._shared))
