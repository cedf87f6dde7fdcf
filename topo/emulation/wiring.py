"""The iproute2 commands and sysctls that make a plan's links, hosts and kernel switches: pure functions of the plan.

Links are made with both ends in place: nothing ever appears in the root namespace.
"""

from collections.abc import Collection, Iterable

from topo.address import (
    host_address,
    host_prefix,
    leaf_prefix,
    neighbour_usid,
    nic_usid,
    port_address,
    switch_usid,
    usid_address,
    usid_prefix,
)
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.graph import PortRef, links, peer, ports
from topo.node import Host, Node, Switch, leaf
from topo.path import Path, path_da
from topo.plain_routes import plain_route
from topo.plan import Plan

FABRIC_PREFIX = "fd00::/16"
GATEWAY = "fe80::1"  # every interface's peer: a permanent neighbour, so that no discovery is needed
PLANE_TABLE_BASE = 100  # routing tables of a host: replies leave by the plane whose address they have
_LOCAL_TABLE = 255

# No link-local addresses (so no router solicitations), no duplicate address detection, no router advertisements.
_QUIET = {"addr_gen_mode": "1", "accept_dad": "0", "dad_transmits": "0", "accept_ra": "0", "router_solicitations": "0"}
_KERNEL_SYSCTLS = {
    **{f"ipv6/conf/{scope}/{key}": value for scope in ("all", "default") for key, value in _QUIET.items()},
    "ipv6/conf/all/seg6_enabled": "1",
    "ipv6/conf/default/seg6_enabled": "1",
    "ipv6/fib_multipath_hash_policy": "1",
}
HOST_SYSCTLS = {
    **_KERNEL_SYSCTLS,
    "ipv6/conf/all/keep_addr_on_down": "1",
    "ipv6/conf/default/ignore_routes_with_linkdown": "1",
}
KERNEL_SWITCH_SYSCTLS = {**_KERNEL_SYSCTLS, "ipv6/conf/all/forwarding": "1", "ipv6/conf/all/accept_redirects": "0"}
# Our own switches read packet sockets: in their namespaces the kernel's IPv6 stays off.
PACKET_SWITCH_SYSCTLS = {"ipv6/conf/all/disable_ipv6": "1", "ipv6/conf/default/disable_ipv6": "1"}
"""Sysctls of a namespace whose switch reads packet sockets."""


def sysctls(plan: Plan, node: Node) -> dict[str, str]:
    if isinstance(node, Host):
        return HOST_SYSCTLS
    return KERNEL_SWITCH_SYSCTLS if plan.kind_of(node) == "linux" else PACKET_SWITCH_SYSCTLS


def link_commands(plan: Plan, name: LabName = DEFAULT_LAB) -> Iterable[str]:
    """One command per link; both its ends begin their lives inside the namespaces of the lab of this name."""
    mtu = plan.links.mtu_bytes
    for link in links(plan):
        a, b = link.a, link.b
        yield (
            f"link add {a.interface} netns {name.netns(a.node)} address {a.mac} mtu {mtu}"
            f" type veth peer name {b.interface} netns {name.netns(b.node)} address {b.mac} mtu {mtu}"
        )


def host_commands(plan: Plan, host: Host) -> list[str]:
    """Addresses, neighbours and routes of a host, for `ip` inside its namespace."""
    address = host_address(plan, host)
    lines = [f"link set lo up arp off multicast off mtu {plan.links.mtu_bytes}", f"addr add {address}/128 dev lo nodad"]
    for plane in range(plan.planes):
        lines += host_port_commands(plan, host, plane)
    return [*lines, *host_route_commands(plan, host, range(plan.planes))]


def host_route_commands(plan: Plan, host: Host, planes: Iterable[int]) -> list[str]:
    """A host's routes to all others, over the planes whose ports are up: a route may not name a port that is down."""
    hops = [f"nexthop via {GATEWAY} dev {PortRef(host, plane + 1).interface}" for plane in planes]
    return [f"route replace {FABRIC_PREFIX} src {host_address(plan, host)} {' '.join(hops)}"] if hops else []


def host_port_commands(plan: Plan, host: Host, plane: int) -> list[str]:
    """The addresses, neighbours and routes that a host's port loses when it goes down and needs when it comes up."""
    ref = PortRef(host, plane + 1)
    table = PLANE_TABLE_BASE + plane
    address = port_address(plan, host, plane)
    return [
        # NOARP: no neighbour discovery, and no solicited-node groups to report by MLD.
        f"link set {ref.interface} arp off up",
        f"addr replace {address}/128 dev {ref.interface} nodad",
        f"neigh replace {GATEWAY} lladdr {peer(plan, ref).mac} dev {ref.interface} nud permanent",
        f"route replace {FABRIC_PREFIX} via {GATEWAY} dev {ref.interface} src {address} table {table}",
    ]


def host_rule_commands(plan: Plan, host: Host) -> list[str]:
    return [
        f"rule add from {port_address(plan, host, plane)} lookup {PLANE_TABLE_BASE + plane}"
        for plane in range(plan.planes)
    ]


def host_srv6_commands(plan: Plan, host: Host) -> list[str]:
    """The kernel takes off outer headers that end at this NIC (End.DT6), and puts on its own with this source.

    The kernel looks the encapsulated packet up again: its first uSID, a T0's, says the plane. There is one
    decapsulating route a port, of different metrics, because a route goes with its device.
    """
    nic = usid_address(plan, [nic_usid(plan.downlink_of(host))])
    lines = [f"sr tunsrc set {host_address(plan, host)}"]
    for plane in range(plan.planes):
        device = PortRef(host, plane + 1).interface
        first = usid_prefix(plan, switch_usid(leaf(plane, plan.leaf_of(host))))
        lines.append(
            f"route replace {nic}/128 encap seg6local action End.DT6 table {_LOCAL_TABLE}"
            f" dev {device} metric {1024 + plane}"
        )
        lines.append(f"route replace {first} via {GATEWAY} dev {device}")
    return lines


def steer_commands(plan: Plan, path: Path) -> list[str]:
    """The sender's kernel sends everything for this destination along one path (`encap seg6`, no routing header)."""
    device = PortRef(path.source, path.port).interface
    source, destination = host_address(plan, path.source), host_address(plan, path.destination)
    segments = path_da(plan, path)
    return [
        f"route replace {destination}/128 encap seg6 mode encap.red segs {segments}"
        f" via {GATEWAY} dev {device} src {source}"
    ]


def unsteer_commands(plan: Plan, source: Host, destination: Host) -> list[str]:
    return [f"route del {host_address(plan, destination)}/128"]


def kernel_switch_port_commands(plan: Plan, switch: Switch, up: Collection[int]) -> list[str]:
    """Neighbours of the ports in `up`, which are set up if they are not."""
    lines = ["link set lo up"]
    for ref in ports(plan, switch):
        if ref.port in up:
            lines.append(f"link set {ref.interface} up")
            lines.append(f"neigh replace {GATEWAY} lladdr {peer(plan, ref).mac} dev {ref.interface} nud permanent")
    return lines


def kernel_switch_routes(plan: Plan, switch: Switch, up: Collection[int]) -> list[str]:
    """The static table of a kernel switch, over the ports in `up`: a P4 switch's entries but for uA.

    The switch's own uSID has one route a port, of different metrics, because a route goes with its device.
    """
    lines: list[str] = []
    if plan.encapsulation == "srv6":
        flavour = "flavors next-csid lblen 32 nflen 16"
        node = usid_prefix(plan, switch_usid(switch))
        for ref in ports(plan, switch):
            if ref.port not in up:
                continue
            lines.append(
                f"route replace {node} encap seg6local action End {flavour}"
                f" dev {ref.interface} metric {1024 + ref.port}"
            )
            other = peer(plan, ref).node
            lines.append(
                f"route replace {usid_prefix(plan, neighbour_usid(plan, other))} via {GATEWAY} dev {ref.interface}"
            )
    for ref in ports(plan, switch):
        other = peer(plan, ref).node
        if ref.port in up and isinstance(other, Host):
            lines.append(f"route replace {host_prefix(plan, other)} via {GATEWAY} dev {ref.interface}")
    for index in range(plan.leaves):
        route = plain_route(plan, switch, index)
        out = [PortRef(switch, port).interface for port in route.ports if port in up]
        word = "nexthop via" if route.ecmp else "via"
        hops = " ".join(f"{word} {GATEWAY} dev {interface}" for interface in out)
        lines += [f"route replace {leaf_prefix(index)} {hops}"] if hops else []
    return lines
