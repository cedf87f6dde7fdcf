"""The routes of a switch of the plan, as for any router: its own uSID, and one route per neighbour and prefix."""

from dataclasses import dataclass
from ipaddress import IPv6Network

from topo import Host, Plan, Switch
from topo.address import host_prefix, leaf_prefix, neighbour_usid, switch_usid, usid_prefix
from topo.graph import PortRef, peer, ports
from topo.plain_routes import plain_route

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
    table = []
    for ref in ports(plan, switch) if plan.encapsulation == "srv6" else ():
        table.append(StaticRoute(usid_prefix(plan, neighbour_usid(plan, peer(plan, ref).node)), (ref,)))
    for ref in ports(plan, switch):
        if isinstance(host := peer(plan, ref).node, Host):
            table.append(StaticRoute(host_prefix(plan, host), (ref,)))
    for index in range(plan.leaves):
        out = tuple(PortRef(switch, port) for port in plain_route(plan, switch, index).ports)
        table += [StaticRoute(leaf_prefix(index), out)] if out else []
    return table
