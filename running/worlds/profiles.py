"""NIC profiles of simulated hosts: as in `topo.profile`, but destinations, paths and probes are made when first read.

A thousand hosts are a million destinations of each other and have 134 million paths; a permutation uses a thousandth.
Paths follow a template for each pair of leaves (`topo.profile.PathTemplate`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from ipaddress import IPv6Address
from typing import TypeVar, overload

from endpoint import profile
from endpoint.profile import Destination, NicProfile, ProfilePath, SelfProbe
from topo import Host, Plan
from topo.address import host_address, nic_usid
from topo.profile import PathTemplate, nic_profile, pair_rtt_ns, path_templates, probe_rows

Item = TypeVar("Item")


class Templates(dict[tuple[int, int], tuple[PathTemplate, ...]]):
    """By the leaves of sender and receiver: their paths but for the receiver's uSID."""

    OF_ONE_HOST = False  # no host is told of how many others in its process have asked for


class MadeWhenRead(Sequence[Item]):
    """The items that `make` returns, called each time that the sequence is looked at. A transport looks once and keeps
    what it chooses."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], tuple[Item, ...]]) -> None:
        self._make = make

    def __len__(self) -> int:
        return len(self._make())

    def __iter__(self) -> Iterator[Item]:
        return iter(self._make())

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | Sequence[Item]:
        return self._make()[place]


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
        destination = self._made.get(name)
        if destination is None:
            if name not in self:
                raise KeyError(name)
            other, address = self._addresses[name]
            paths = MadeWhenRead(partial(self._paths, other))
            round_trip_ns = pair_rtt_ns(self._plan, self._here, other)
            destination = self._made[name] = Destination(name, other.index, address, round_trip_ns, paths)
        return destination

    def _paths(self, there: Host) -> tuple[ProfilePath, ...]:
        """Every path to another host, as `endpoint.profile` reads them."""
        nic = nic_usid(self._plan.downlink_of(there))
        templates = self._templates_to(there)
        return tuple(ProfilePath(path.ev, path.port, path.plane, path.via, path.address(nic)) for path in templates)

    def _templates_to(self, there: Host) -> tuple[PathTemplate, ...]:
        plan, here = self._plan, self._here
        if plan.encapsulation == "none":
            return path_templates(plan, here, there)
        place = plan.leaf_of(here), plan.leaf_of(there)
        if place not in self._templates:
            self._templates[place] = path_templates(plan, here, there)
        return self._templates[place]


def probes(plan: Plan, host: Host) -> tuple[SelfProbe, ...]:
    """The self-probes of a host."""
    return tuple(
        SelfProbe(row["target"], row["port"], IPv6Address(row["da"]), row.get("behind", ""))
        for row in probe_rows(plan, host)
    )


class HostProfiles:
    """The profiles of a plan's hosts in virtual time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._addresses = {host.name: (host, IPv6Address(host_address(plan, host))) for host in plan.hosts()}
        self._names = {address.packed: name for name, (_, address) in self._addresses.items()}
        self._templates = Templates()

    def of(self, host: Host) -> NicProfile:
        own = profile.parse(nic_profile(self._plan, host, destinations=(), with_probes=False))
        destinations = Destinations(self._plan, host, self._addresses, self._templates)
        # Few scenarios send probes: a host of 8,192 has 132, a fifth of the time to build it.
        self_probes = MadeWhenRead(cache(partial(probes, self._plan, host)))
        return replace(own, destinations=destinations, names=self._names, self_probes=self_probes)
