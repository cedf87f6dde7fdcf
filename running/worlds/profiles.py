"""NIC profiles of simulated hosts: as in `topo.profile`, but destinations, paths and probes are made when first read.

A thousand hosts are a million destinations of each other and have 134 million paths; a permutation uses a thousandth.
Paths follow a template for each pair of leaves (`topo.profile.PathTemplate`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv6Address
from typing import overload

from endpoint import profile
from endpoint.profile import Destination, NicProfile, ProfilePath, SelfProbe
from topo import Host, Plan
from topo.address import host_address, nic_usid
from topo.profile import PathTemplate, nic_profile, pair_rtt_ns, path_templates, probe_rows


class Templates(dict[tuple[int, int], tuple[PathTemplate, ...]]):
    """By the leaves of sender and receiver: their paths but for the receiver's uSID."""

    OF_ONE_HOST = False  # no host is told of how many others in its process have asked for


class Paths(Sequence[ProfilePath]):
    """Every path from one host to another, as `endpoint.profile` reads them, made each time that one is looked at.

    A transport looks once and keeps what it chooses.
    """

    __slots__ = ("_here", "_plan", "_templates", "_there")

    def __init__(self, plan: Plan, here: Host, there: Host, templates: Templates) -> None:
        self._plan = plan
        self._here = here
        self._there = there
        self._templates = templates

    def _found(self) -> tuple[PathTemplate, ...]:
        plan = self._plan
        if plan.encapsulation == "none":
            return path_templates(plan, self._here, self._there)
        place = plan.leaf_of(self._here), plan.leaf_of(self._there)
        if place not in self._templates:
            self._templates[place] = path_templates(plan, self._here, self._there)
        return self._templates[place]

    def __len__(self) -> int:
        return len(self._found())

    def __iter__(self) -> Iterator[ProfilePath]:
        nic = nic_usid(self._plan.downlink_of(self._there))
        return (ProfilePath(one.ev, one.port, one.plane, one.via, one.address(nic)) for one in self._found())

    @overload
    def __getitem__(self, place: int) -> ProfilePath: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ProfilePath]: ...
    def __getitem__(self, place: int | slice) -> ProfilePath | Sequence[ProfilePath]:
        return tuple(self)[place]


class Destinations(Mapping[str, Destination]):
    """Every other host, in the plan's order. `addresses` has all hosts by name with their addresses."""

    __slots__ = ("_addresses", "_here", "_made", "_plan", "_templates")

    def __init__(
        self, plan: Plan, here: Host, addresses: Mapping[str, tuple[Host, IPv6Address]], templates: Templates
    ) -> None:
        self._plan = plan
        self._here = here
        self._addresses = addresses
        self._templates = templates
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
            paths = Paths(self._plan, self._here, other, self._templates)
            round_trip_ns = pair_rtt_ns(self._plan, self._here, other)
            found = self._made[name] = Destination(name, other.index, address, round_trip_ns, paths)
        return found


class SelfProbes(Sequence[SelfProbe]):
    """The probes of a host, which few scenarios send: a host of 8,192 has 132, a fifth of the time to build it."""

    __slots__ = ("_host", "_made", "_plan")

    def __init__(self, plan: Plan, host: Host) -> None:
        self._plan = plan
        self._host = host
        self._made: tuple[SelfProbe, ...] | None = None

    def _found(self) -> tuple[SelfProbe, ...]:
        if self._made is None:
            rows = probe_rows(self._plan, self._host)
            self._made = tuple(
                SelfProbe(row["target"], row["port"], IPv6Address(row["da"]), row.get("behind", "")) for row in rows
            )
        return self._made

    def __len__(self) -> int:
        return len(self._found())

    def __iter__(self) -> Iterator[SelfProbe]:
        return iter(self._found())

    @overload
    def __getitem__(self, place: int) -> SelfProbe: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[SelfProbe]: ...
    def __getitem__(self, place: int | slice) -> SelfProbe | Sequence[SelfProbe]:
        return self._found()[place]


class HostProfiles:
    """The profiles of a plan's hosts in virtual time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._addresses = {host.name: (host, IPv6Address(host_address(plan, host))) for host in plan.hosts()}
        self._templates = Templates()

    def of(self, host: Host) -> NicProfile:
        own = profile.parse(nic_profile(self._plan, host, destinations=(), with_probes=False))
        destinations = Destinations(self._plan, host, self._addresses, self._templates)
        return replace(own, destinations=destinations, self_probes=SelfProbes(self._plan, host))
