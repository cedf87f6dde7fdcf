"""The part of a fabric that a picture has room for, with paths that stand out."""

from collections.abc import Sequence
from itertools import pairwise

from topo.graph import peer, ports
from topo.node import PLURALS, ROLES, Node, Switch, SwitchRole, tier
from topo.path import Path
from topo.pictures.graph import DrawnCable, Graph, place
from topo.plan import Plan

PLANES_MAX, SWITCHES_MAX, HOSTS_MAX = 4, 8, 32
"""The planes that are drawn, the switches of a tier and plane, and the hosts."""


def drawn(plan: Plan, plane: int, role: SwitchRole) -> list[Switch]:
    """The switches of a tier and plane that are drawn."""
    most = min(plan.topology.count(role), SWITCHES_MAX)
    return [switch for n in range(most) if plan.topology.has(switch := Switch(plane, role, n))]


def part_of(plan: Plan, highlighted: Sequence[Path] = ()) -> Graph:
    """The first planes, switches and hosts. Cables of the highlighted paths are bold, and `note` says what is left out.

    Only what is drawn is looked at, so that fabrics of any size can be drawn.
    """
    leaves = min(plan.leaves, SWITCHES_MAX)
    downlinks = max(1, min(plan.hosts_per_leaf, HOSTS_MAX // leaves))
    planes = min(plan.planes, PLANES_MAX)
    shown = [switch for plane in range(planes) for role in ROLES for switch in drawn(plan, plane, role)]
    nodes: list[Node] = [
        plan.host_at(index, downlink)
        for index in range(leaves)
        for downlink in range(min(downlinks, plan.topology.hosts_under(index)))
    ]
    nodes += shown
    bold = {
        frozenset(pair) for path in highlighted for pair in pairwise([path.source, *path.switches, path.destination])
    }
    inside, cables = set(nodes), {}
    for switch in shown:
        for other in (peer(plan, ref).node for ref in ports(plan, switch)):
            if other in inside:
                lower, upper = sorted((switch, other), key=lambda node: (tier(node), node.index))
                speed, ends = plan.topology.speed(lower, upper), frozenset((lower, upper))
                cables[ends] = DrawnCable(lower.name, upper.name, (), None, speed, ends in bold)
    title = f"{plan.name}: {plan.topology.describe()}, {plan.host_count:,} hosts"
    places = tuple(place(node, ()) for node in nodes)
    return Graph(title, planes, places, tuple(cables.values()), _omitted(plan, downlinks))


def _omitted(plan: Plan, downlinks: int) -> str:
    tiers = [role for role in ROLES if plan.topology.count(role)]
    pairs = (
        ("planes", plan.planes, PLANES_MAX),
        *((f"{PLURALS[role]} per plane", plan.topology.count(role), SWITCHES_MAX) for role in tiers),
        ("hosts per leaf", plan.hosts_per_leaf, downlinks),
    )
    missing = [f"{most} of {count} {what}" for what, count, most in pairs if count > most]
    return "shown: " + ", ".join(missing) if missing else ""
