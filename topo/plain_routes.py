"""Plain IPv6 routes of a switch: the ports towards each leaf, with all links or with those that routing finds alive."""

from collections.abc import Collection
from dataclasses import dataclass

from topo.node import Switch, leaf, tier
from topo.plan import Plan

__all__ = ["live_ports", "plain_route"]


@dataclass(frozen=True, slots=True)
class PlainRoute:
    """The ports on the ways to a leaf, ascending. `ecmp`: a hash chooses among them; else there is one, down."""

    ports: tuple[int, ...]
    ecmp: bool


def plain_route(plan: Plan, switch: Switch, leaf_index: int) -> PlainRoute:
    """The route of a switch to a leaf of its plane; no ports at the leaf itself, or where no way leads there."""
    topology = plan.topology
    ports = tuple(topology.next_ports(switch, leaf_index))
    up = any(tier(topology.neighbour(switch, port)) > tier(switch) for port in ports[:1])
    return PlainRoute(ports, up or len(ports) > 1)


def live_ports(
    plan: Plan, switch: Switch, leaf_index: int, dead: Collection[frozenset[str]] = frozenset()
) -> tuple[int, ...]:
    """The ports of the route behind which a way without dead links, given as pairs of names, leads to the leaf."""
    topology = plan.topology
    ports = tuple(topology.next_ports(switch, leaf_index))
    if not dead:
        return ports
    goal = leaf(switch.plane, leaf_index)

    def leads(port: int) -> bool:
        other = topology.neighbour(switch, port)
        if frozenset((switch.name, other.name)) in dead:
            return False
        return other == goal or (isinstance(other, Switch) and bool(live_ports(plan, other, leaf_index, dead)))

    return tuple(port for port in ports if leads(port))
