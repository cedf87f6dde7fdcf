"""NIC profiles of simulated hosts: as in `topo.profile`, but the paths to a host are made when they are first read.

A thousand hosts with 128 paths to each other have 134 million paths, of which a permutation uses a thousandth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import IPv6Address
from typing import overload

from endpoint import profile
from endpoint.profile import Destination, NicProfile, Port, ProfilePath
from topo.address import host_address
from topo.node import Host
from topo.plan import Plan
from topo.profile import nic_profile, pair_rtt_ns, path_rows


class Paths(Sequence[ProfilePath]):
    """Every path from one host to another, read as `endpoint.profile` reads them."""

    __slots__ = ("_here", "_made", "_plan", "_ports", "_there")

    def __init__(self, plan: Plan, here: Host, there: Host, ports: tuple[Port, ...]) -> None:
        self._plan = plan
        self._here = here
        self._there = there
        self._ports = ports
        self._made: tuple[ProfilePath, ...] | None = None

    def _all(self) -> tuple[ProfilePath, ...]:
        if self._made is None:
            self._made = profile.paths(path_rows(self._plan, self._here, self._there), self._ports)
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


class Profiles:
    """The profiles of a plan's hosts in virtual time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._addresses = {host: IPv6Address(host_address(plan, host)) for host in plan.hosts()}

    def of(self, host: Host) -> NicProfile:
        own = profile.parse(nic_profile(self._plan, host, destinations=()))
        others = {
            other.name: Destination(
                other.name,
                other.index,
                address,
                pair_rtt_ns(self._plan, host, other),
                Paths(self._plan, host, other, own.ports),
            )
            for other, address in self._addresses.items()
            if other != host
        }
        return replace(own, destinations=others)
