"""The graph: which port of which node is wired to which. Ports are P4Runtime's, counted from 1.

The topology numbers them. Leaf: hosts first, then spines. Spine: leaves, then cores. Host: one port per plane.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from topo.address import host_mac, switch_mac
from topo.node import Host, Node, Switch, tier
from topo.plan import PRIORITY_CONTROL, PRIORITY_DATA, Plan

__all__ = [
    "Link", "PortRef", "device_id", "link_at", "link_between", "links", "peer", "port_count", "port_queues",
    "port_towards", "ports", "towards_host",
]  # fmt: skip


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
    """A cable. `a` is the lower end: a host towards its leaf, a leaf towards its spine, a spine towards its core."""

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


def port_count(plan: Plan, node: Node) -> int:
    """How many ports the plan connects at a node."""
    return plan.topology.port_count(node)


def port_towards(plan: Plan, node: Node, neighbour: Node) -> int:
    """The port of a node that a neighbour is wired to."""
    return plan.topology.port_towards(node, neighbour)


def peer(plan: Plan, ref: PortRef) -> PortRef:
    """The other end of the cable; ValueError for a port that the node does not have."""
    node, port, topology = ref.node, ref.port, plan.topology
    count = topology.port_count(node)
    if not 1 <= port <= count:
        raise ValueError(f"{node} has no port {port}: its ports are 1 to {count}")
    other = topology.neighbour(node, port)
    return PortRef(other, topology.port_towards(other, node))


def ports(plan: Plan, node: Node) -> Iterator[PortRef]:
    """A node's ports in order of their numbers."""
    return (PortRef(node, port) for port in range(1, port_count(plan, node) + 1))


def towards_host(plan: Plan, ref: PortRef) -> bool:
    """Whether this is a leaf's last hop to a NIC, where ECN is off and trims are marked as last-hop."""
    return isinstance(ref.node, Switch) and isinstance(peer(plan, ref).node, Host)


def link_at(plan: Plan, ref: PortRef) -> Link:
    """The cable in this port."""
    other = peer(plan, ref)
    a, b = sorted((ref, other), key=lambda end: (tier(end.node), end.node.index))
    if isinstance(a.node, Host):
        return Link(a, b, plan.links.host_rate_bps, plan.links.edge_delay_ns)
    speed = plan.topology.speed(a.node, b.node)
    rate_bps = plan.links.fabric_rate_bps if speed == 1.0 else max(1, round(plan.links.fabric_rate_bps * speed))
    return Link(a, b, rate_bps, plan.links.fabric_delay_ns)


def links(plan: Plan) -> Iterator[Link]:
    """Every cable once, plane by plane, from the lower ends: of the leaves hosts first, then spines; then higher up."""
    topology = plan.topology
    for cable in topology.cables():
        yield link_at(plan, PortRef(cable.lower, topology.port_towards(cable.lower, cable.upper)))


def link_between(plan: Plan, a: Node, b: Node) -> Link:
    """The cable between two nodes in either order; ValueError with a's neighbours when there is none."""
    if plan.topology.wired(a, b):
        return link_at(plan, PortRef(a, port_towards(plan, a, b)))
    neighbours = ", ".join(str(peer(plan, ref).node) for ref in ports(plan, a))
    raise ValueError(f"no link {a}–{b}: {a} is wired to {neighbours}")


@dataclass(frozen=True, slots=True)
class QueuePlan:
    priority: int
    depth_packets: int


def port_queues(plan: Plan) -> tuple[QueuePlan, ...]:
    """The queues that the plan bounds, the same on every switch port."""
    data = sorted({PRIORITY_DATA, plan.queues.retransmit_priority})
    depths = [QueuePlan(priority, plan.depth_packets) for priority in data]
    return (*depths, QueuePlan(PRIORITY_CONTROL, plan.control_depth_packets))


def device_id(plan: Plan, switch: Switch) -> int:
    """P4Runtime's device id: from 1, in the order of `plan.switches()`."""
    return plan.topology.number(switch) + 1
