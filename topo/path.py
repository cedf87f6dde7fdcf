"""Paths from NIC to NIC, the EV of each, and its uSID list.

An EV is 32 bits: the high half is the plane, the low half names a way between the two leaves, as the topology says:
on two tiers `0xC000 + spine`. Under one leaf it counts down from 0xFFFF. The low half travels in the UDP source port
(so from the dynamic range), the high half in the inner flow label.

Under one leaf a plane has one path, and as many EVs for it as there are between two leaves, so that two neighbours have
as many EVs as any other pair of hosts: an EV need not choose a path.
"""

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topo.address import address_usids, neighbour_usid, nic_usid, switch_usid, usid_address
from topo.graph import PortRef, peer, port_towards, ports
from topo.node import Host, Node, Switch, leaf
from topo.plan import Plan
from topo.topologies.topology import EV_BASE as EV_BASE

__all__ = [
    "VIA_SEPARATOR", "Path", "evs", "hops", "path_count", "path_da", "path_of_ev", "paths", "self_probe", "usid_list",
    "via", "walk",
]  # fmt: skip

VIA_SEPARATOR = "+"
"""Between the names of the switches that an EV has chosen."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A switch that a packet crosses: in by one port, out by another, its destination as it leaves."""

    switch: Switch
    port_in: int
    port_out: int
    usid: int
    da_in: ipaddress.IPv6Address
    da_out: ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Path:
    """One way from a NIC to a NIC. `ev` takes it, 32 bits; the first of several that do (`evs`)."""

    source: Host
    destination: Host
    plane: int
    ev: int
    switches: tuple[Switch, ...]

    @property
    def port(self) -> int:
        """The NIC port of the sender, from 1."""
        return self.plane + 1

    @property
    def spine(self) -> int | None:
        """The spine that the first leaf sends to, by index; None under one leaf."""
        return None if len(self.switches) == 1 else self.switches[1].index

    @property
    def via(self) -> str | None:
        """The switches between the two leaves, as far as the EV chose them; None under one leaf."""
        return via(self.switches)


def via(way: Sequence[Switch]) -> str | None:
    """The switches between the two leaves of a way, as far as an EV chooses them; None under one leaf."""
    return VIA_SEPARATOR.join(switch.name for switch in way[1 : 1 + len(way) // 2]) or None


def paths(plan: Plan, source: Host, destination: Host) -> Iterator[Path]:
    """Every path, plane by plane. To the host itself: the path to its leaf and back."""
    here, there = plan.leaf_of(source), plan.leaf_of(destination)
    for plane in range(plan.planes):
        for way in plan.topology.ways(plane, here, there):
            yield Path(source, destination, plane, plane << 16 | way.lows[0], way.switches)


def evs(plan: Plan, source: Host, destination: Host) -> Iterator[tuple[int, Path]]:
    """Every EV of a pair of hosts with its path, plane by plane; as many of them under one leaf as under two."""
    here, there = plan.leaf_of(source), plan.leaf_of(destination)
    for plane in range(plan.planes):
        for way in plan.topology.ways(plane, here, there):
            path = Path(source, destination, plane, plane << 16 | way.lows[0], way.switches)
            for low in way.lows:
                yield plane << 16 | low, path


def path_count(plan: Plan, *, local: bool) -> int:
    """How many distinct paths two hosts have, under one leaf (`local`) or two; of the pair that has most."""
    return plan.planes if local else plan.topology.paths_across


def path_of_ev(plan: Plan, source: Host, destination: Host, ev: int) -> Path:
    """The path of an EV, the inverse of `evs`; ValueError for an EV that names no path of this pair."""
    plane, low = ev >> 16, ev & 0xFFFF
    here, there = plan.leaf_of(source), plan.leaf_of(destination)
    way = plan.topology.way_of(plane, here, there, low) if 0 <= plane < plan.planes else None
    if way is None:
        lows = [low for way in plan.topology.ways(min(max(plane, 0), plan.planes - 1), here, there) for low in way.lows]
        low_half = f"{min(lows):#06x}" + (f" to {max(lows):#06x}" if len(lows) > 1 else "")
        raise ValueError(
            f"EV {ev:#010x} names no path {source} → {destination}: the high half is a plane, 0 to {plan.planes - 1},"
            f" the low half {low_half}"
        )
    return Path(source, destination, plane, plane << 16 | way.lows[0], way.switches)


def crossed(plan: Plan, source: Host, destination: Host) -> int:
    """How many switches lie on a path of two hosts: on the longest, where they differ."""
    return plan.topology.crossed(plan.leaf_of(source), plan.leaf_of(destination))


def usid_list(plan: Plan, path: Path) -> list[int]:
    """`T0 | T1 | T0 | NIC`, `T0 | NIC` under one leaf, `T0 | T1 | T2 | T1 | T0 | NIC` across three tiers."""
    return [*map(switch_usid, path.switches), nic_usid(plan.downlink_of(path.destination))]


def path_da(plan: Plan, path: Path) -> ipaddress.IPv6Address:
    """The outer destination address with which the packet leaves the sender."""
    return usid_address(plan, usid_list(plan, path))


def hops(plan: Plan, path: Path) -> list[Hop]:
    """The packet's journey: at each switch one uSID is consumed and the next one looked up."""
    usids = usid_list(plan, path)
    result = []
    ref = peer(plan, PortRef(path.source, path.port))
    following: list[Node] = [*path.switches[1:], path.destination]
    for position, switch in enumerate(path.switches):
        port_out = port_towards(plan, switch, following[position])
        da_in, da_out = usid_address(plan, usids[position:]), usid_address(plan, usids[position + 1 :])
        result.append(Hop(switch, ref.port, port_out, usids[position], da_in, da_out))
        ref = peer(plan, PortRef(switch, port_out))
    return result


def walk(plan: Plan, source: Host, plane: int, da: ipaddress.IPv6Address) -> list[PortRef]:
    """The ports that a packet with any uSID list enters, up to a NIC's or a dead end's.

    Follows the switches' rules and knows nothing of `hops`: each switch consumes its own uSID and looks the next uSID
    up among its neighbours and, on a leaf, NICs. An unknown uSID ends the walk.
    """
    ref = peer(plan, PortRef(source, plane + 1))
    entered = [ref]
    usids = address_usids(plan, da)
    while usids and isinstance(ref.node, Switch):
        if usids[0] == switch_usid(ref.node):
            usids = usids[1:]
        port_out = _lookup(plan, ref.node, usids[0]) if usids else None
        if port_out is None:
            break
        ref = peer(plan, PortRef(ref.node, port_out))
        entered.append(ref)
    return entered


def _lookup(plan: Plan, switch: Switch, usid: int) -> int | None:
    for ref in ports(plan, switch):
        if usid == neighbour_usid(plan, peer(plan, ref).node):
            return ref.port
    return None


def probe_ways(plan: Plan, host: Host, plane: int) -> list[tuple[Switch, ...]]:
    """The ways of a host's probes in a plane, each up to the switch where the probe turns back.

    To its leaf, to each switch that the leaf is wired to, and on over each cable that has no leaf at either end. A
    cable with a leaf at an end is probed by the hosts of that leaf, and no cable is farther away: paths cross at most
    five switches. So the hosts together probe every cable, each there and back.
    """
    own = leaf(plane, plan.leaf_of(host))
    near = _wired(plan, own)
    ways = [(own,), *((own, neighbour) for neighbour in near)]
    if plan.topology.longest_path_switches <= 3:  # every cable has a leaf at an end
        return ways
    taken: set[frozenset[Switch]] = set()
    for middle in near:
        for other in () if middle.role == "leaf" else _wired(plan, middle):
            if other.role != "leaf" and frozenset((middle, other)) not in taken:
                taken.add(frozenset((middle, other)))
                ways.append((own, middle, other))
    return ways


def _wired(plan: Plan, switch: Switch) -> list[Switch]:
    """The switches that a switch is wired to, by port."""
    others = (peer(plan, ref).node for ref in ports(plan, switch))
    return [other for other in others if isinstance(other, Switch)]


def self_probe(plan: Plan, host: Host, target: Switch) -> tuple[int, ipaddress.IPv6Address]:
    """(NIC port, destination) of a probe of this host's that turns back at a switch."""
    way = next((way for way in probe_ways(plan, host, target.plane) if way[-1] == target), None)
    if way is None:
        own = leaf(target.plane, plan.leaf_of(host))
        beyond = ", and their cores" if plan.topology.cores else ""
        raise ValueError(
            f"{host} probes its own leaves, in plane {target.plane} {own}, and their spines{beyond}; not {target}"
        )
    return probe_there_and_back(plan, host, way)


def probe_there_and_back(plan: Plan, host: Host, way: Sequence[Switch]) -> tuple[int, ipaddress.IPv6Address]:
    """`self_probe` over one of `probe_ways`."""
    visited = [*way, *reversed(way[:-1])]
    return way[0].plane + 1, usid_address(plan, [*map(switch_usid, visited), nic_usid(plan.downlink_of(host))])
