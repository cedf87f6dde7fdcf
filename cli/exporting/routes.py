"""What a switch of the plan forwards, as any router would be told: its own uSID, and a route a neighbour and prefix."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Network

from topo.address import host_prefix, leaf_prefix, nic_usid, switch_usid, usid_prefix
from topo.graph import PortRef, leaf_spine_port, peer, ports
from topo.node import Host, Switch
from topo.plan import Plan

NEXT_HOP = "fe80::1"  # every interface's peer in the lab (topo/emulation/wiring.py); other gear has its own


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """A static route out of one or, by ECMP, several ports."""

    prefix: IPv6Network
    out: tuple[PortRef, ...]


def own_usid(plan: Plan, switch: Switch) -> IPv6Network:
    """The uN of a switch: /48 in F3216."""
    return usid_prefix(plan, switch_usid(switch))


def routes(plan: Plan, switch: Switch) -> list[StaticRoute]:
    """The static table without uA: neighbours' uSIDs, then plain prefixes of hosts and leaves."""
    found = []
    for ref in ports(plan, switch) if plan.encapsulation == "srv6" else ():
        other = peer(plan, ref).node
        usid = nic_usid(plan.downlink_of(other)) if isinstance(other, Host) else switch_usid(other)
        found.append(StaticRoute(usid_prefix(plan, usid), (ref,)))
    for ref in ports(plan, switch):
        other = peer(plan, ref).node
        if isinstance(other, Host):
            found.append(StaticRoute(host_prefix(plan, other), (ref,)))
        elif switch.role == "spine":
            found.append(StaticRoute(leaf_prefix(other.index), (ref,)))
    if switch.role == "leaf":
        uplinks = tuple(PortRef(switch, leaf_spine_port(plan, index)) for index in range(plan.spines))
        found += [StaticRoute(leaf_prefix(index), uplinks) for index in range(plan.leaves) if index != switch.index]
    return found
