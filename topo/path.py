"""Paths from NIC to NIC, the EV of each, and its uSID list.

An EV is 32 bits: the high half is the plane, the low half `0xC000 + spine`, or counts down from 0xFFFF under one leaf.
The low half travels in the UDP source port (so from the dynamic range), the high half in the inner flow label.

Under one leaf a plane has one path, and as many EVs for it as a plane has spines, so that two neighbours have as many
EVs as any other pair of hosts: an EV need not choose a path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from topo.address import address_usids, nic_usid, switch_usid, usid_address
from topo.graph import PortRef, leaf_host_port, leaf_spine_port, peer, port_count, spine_leaf_port
from topo.node import Host, Switch, leaf, spine
from topo.plan import Plan

EV_SPINE_BASE = 0xC000
EV_LOCAL = 0xFFFF


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
    """One way from a NIC to a NIC: a plane and, unless both hang on one leaf, a spine."""

    source: Host
    destination: Host
    plane: int
    spine: int | None

    @property
    def ev(self) -> int:
        """The entropy value that takes this path, 32 bits; under one leaf the first of several (`evs`)."""
        return self.plane << 16 | (EV_LOCAL if self.spine is None else EV_SPINE_BASE + self.spine)

    @property
    def port(self) -> int:
        """The NIC port of the sender, from 1."""
        return self.plane + 1

    @property
    def via(self) -> str | None:
        return None if self.spine is None else spine(self.plane, self.spine).name


def paths(plan: Plan, source: Host, destination: Host) -> Iterator[Path]:
    """Every path, plane by plane. To the host itself: the path to its leaf and back."""
    local = plan.leaf_of(source) == plan.leaf_of(destination)
    for plane in range(plan.planes):
        for index in (None,) if local else range(plan.spines):
            yield Path(source, destination, plane, index)


def evs(plan: Plan, source: Host, destination: Host) -> Iterator[tuple[int, Path]]:
    """Every EV of a pair of hosts with its path, plane by plane; as many of them under one leaf as under two."""
    for path in paths(plan, source, destination):
        if path.spine is None:
            for number in range(plan.spines):
                yield path.ev - number, path
        else:
            yield path.ev, path


def path_count(plan: Plan, *, local: bool) -> int:
    """How many distinct paths two hosts have, under one leaf (`local`) or two."""
    return plan.planes if local else plan.planes * plan.spines


def path_of_ev(plan: Plan, source: Host, destination: Host, ev: int) -> Path:
    """The path of an EV, the inverse of `evs`; ValueError for an EV that names no path of this pair."""
    plane, low = ev >> 16, ev & 0xFFFF
    index = None if low > EV_LOCAL - plan.spines else low - EV_SPINE_BASE
    local = plan.leaf_of(source) == plan.leaf_of(destination)
    if not 0 <= plane < plan.planes or (index is None) != local or (index is not None and not 0 <= index < plan.spines):
        first = EV_LOCAL - plan.spines + 1 if local else EV_SPINE_BASE
        low_valid = f"{first:#06x} to {first + plan.spines - 1:#06x}"
        raise ValueError(
            f"EV {ev:#010x} names no path {source} → {destination}: the high half is a plane, 0 to {plan.planes - 1},"
            f" the low half {low_valid}"
        )
    return Path(source, destination, plane, index)


def switches(plan: Plan, path: Path) -> list[Switch]:
    """The switches that a path goes through, in order."""
    first, last = leaf(path.plane, plan.leaf_of(path.source)), leaf(path.plane, plan.leaf_of(path.destination))
    return [first] if path.spine is None else [first, spine(path.plane, path.spine), last]


def usid_list(plan: Plan, path: Path) -> list[int]:
    """`T0 | T1 | T0 | NIC`, or `T0 | NIC` under one leaf."""
    return [*map(switch_usid, switches(plan, path)), nic_usid(plan.downlink_of(path.destination))]


def path_da(plan: Plan, path: Path) -> ipaddress.IPv6Address:
    """The outer destination address with which the packet leaves the sender."""
    return usid_address(plan, usid_list(plan, path))


def hops(plan: Plan, path: Path) -> list[Hop]:
    """The packet's journey: at each switch one uSID is consumed and the next one looked up."""
    usids = usid_list(plan, path)
    crossed = switches(plan, path)
    result = []
    ref = peer(plan, PortRef(path.source, path.port))
    for position, switch in enumerate(crossed):
        if position == len(crossed) - 1:
            port_out = leaf_host_port(plan, path.destination)
        elif switch.role == "leaf":
            port_out = leaf_spine_port(plan, crossed[position + 1].index)
        else:
            port_out = spine_leaf_port(crossed[position + 1].index)
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
    for port in range(1, port_count(plan, switch) + 1):
        other = peer(plan, PortRef(switch, port)).node
        if usid == (nic_usid(plan.downlink_of(other)) if isinstance(other, Host) else switch_usid(other)):
            return port
    return None


def self_probe(plan: Plan, host: Host, target: Switch) -> tuple[int, ipaddress.IPv6Address]:
    """(NIC port, destination) of a probe that goes to one of the host's T0s, or to a T1, and comes back."""
    own = leaf(target.plane, plan.leaf_of(host))
    if target.role == "leaf" and target != own:
        raise ValueError(f"{host} probes its own leaves, in plane {target.plane} {own}, and spines; not {target}")
    usids = [switch_usid(own), nic_usid(plan.downlink_of(host))]
    if target.role == "spine":
        usids = [switch_usid(own), switch_usid(target), *usids]
    return target.plane + 1, usid_address(plan, usids)
