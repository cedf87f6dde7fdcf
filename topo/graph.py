"""The graph: which port of which node is wired to which. Ports are P4Runtime's, counted from 1.

Leaf: hosts first, then spines. Spine: leaves. Host: one port per plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from topo.address import host_mac, switch_mac
from topo.node import Host, Node, Switch, leaf, spine
from topo.plan import PRIORITY_CONTROL, PRIORITY_DATA, Plan


@dataclass(frozen=True, slots=True)
class PortRef:
    """One end of a link."""

    node: Node
    port: int

    @property
    def plane(self) -> int:
        return self.port - 1 if isinstance(self.node, Host) else self.node.plane

    @property
    def interface(self) -> str:
        """The Linux interface's name: `h5-p0` on hosts, `p1l2-eth3` on switches."""
        return f"{self.node}-p{self.port - 1}" if isinstance(self.node, Host) else f"{self.node}-eth{self.port}"

    @property
    def mac(self) -> str:
        return host_mac(self.node, self.port - 1) if isinstance(self.node, Host) else switch_mac(self.node, self.port)

    def __str__(self) -> str:
        return f"{self.node}:{self.port}"


@dataclass(frozen=True, slots=True)
class Link:
    """A cable. `a` is the lower end: a host towards its leaf, a leaf towards its spine."""

    a: PortRef
    b: PortRef
    rate_bps: int
    delay_ns: int

    @property
    def kind(self) -> Literal["edge", "fabric"]:
        return "edge" if isinstance(self.a.node, Host) else "fabric"

    @property
    def name(self) -> str:
        return f"{self.a.node}–{self.b.node}"


def leaf_host_port(plan: Plan, host: Host) -> int:
    """The port of its leaf, in every plane, that this host hangs on."""
    return plan.downlink_of(host) + 1


def leaf_spine_port(plan: Plan, spine_index: int) -> int:
    """A leaf's port to a spine of its plane: behind the hosts' ports."""
    return plan.hosts_per_leaf + spine_index + 1


def spine_leaf_port(leaf_index: int) -> int:
    """A spine's port to a leaf of its plane."""
    return leaf_index + 1


def port_count(plan: Plan, node: Node) -> int:
    """How many ports the plan connects at a node."""
    if isinstance(node, Host):
        return plan.planes
    return plan.hosts_per_leaf + plan.spines if node.role == "leaf" else plan.leaves


def peer(plan: Plan, ref: PortRef) -> PortRef:
    """The other end of the cable; ValueError for a port that the node does not have."""
    node, port = ref.node, ref.port
    count = port_count(plan, node)
    if not 1 <= port <= count:
        raise ValueError(f"{node} has no port {port}: its ports are 1 to {count}")
    if isinstance(node, Host):
        return PortRef(leaf(port - 1, plan.leaf_of(node)), leaf_host_port(plan, node))
    if node.role == "spine":
        return PortRef(leaf(node.plane, port - 1), leaf_spine_port(plan, node.index))
    if port <= plan.hosts_per_leaf:
        return PortRef(plan.host_at(node.index, port - 1), node.plane + 1)
    return PortRef(spine(node.plane, port - 1 - plan.hosts_per_leaf), spine_leaf_port(node.index))


def ports(plan: Plan, node: Node) -> Iterator[PortRef]:
    """A node's ports in order of their numbers."""
    return (PortRef(node, port) for port in range(1, port_count(plan, node) + 1))


def towards_host(plan: Plan, ref: PortRef) -> bool:
    """Whether this is a leaf's last hop to a NIC, where ECN is off and trims are marked as last-hop."""
    return isinstance(ref.node, Switch) and isinstance(peer(plan, ref).node, Host)


def link_at(plan: Plan, ref: PortRef) -> Link:
    """The cable in this port."""
    other = peer(plan, ref)
    upper = isinstance(ref.node, Switch) and (isinstance(other.node, Host) or ref.node.role == "spine")
    a, b = (other, ref) if upper else (ref, other)
    if isinstance(a.node, Host):
        return Link(a, b, plan.links.host_rate_bps, plan.links.edge_delay_ns)
    return Link(a, b, plan.links.fabric_rate_bps, plan.links.fabric_delay_ns)


def links(plan: Plan) -> Iterator[Link]:
    """Every cable once, plane by plane, from the leaves: hosts first, then spines."""
    for plane in range(plan.planes):
        for index in range(plan.leaves):
            yield from (link_at(plan, ref) for ref in ports(plan, leaf(plane, index)))


def link_between(plan: Plan, a: Node, b: Node) -> Link:
    """The cable between two nodes in either order; ValueError with a's neighbours when there is none."""
    for ref in ports(plan, a):
        if peer(plan, ref).node == b:
            return link_at(plan, ref)
    neighbours = ", ".join(str(peer(plan, ref).node) for ref in ports(plan, a))
    raise ValueError(f"no link {a}–{b}: {a} is wired to {neighbours}")


@dataclass(frozen=True, slots=True)
class QueuePlan:
    priority: int
    depth_packets: int


def port_queues(plan: Plan) -> tuple[QueuePlan, ...]:
    """The queues that the plan bounds, the same on every switch port."""
    return (QueuePlan(PRIORITY_DATA, plan.depth_packets), QueuePlan(PRIORITY_CONTROL, plan.control_depth_packets))


def device_id(plan: Plan, switch: Switch) -> int:
    """P4Runtime's device id: from 1, in the order of `plan.switches()`."""
    offset = switch.index + (plan.leaves if switch.role == "spine" else 0)
    return switch.plane * (plan.leaves + plan.spines) + offset + 1
