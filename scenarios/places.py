"""Places of a fabric that scenarios draw from, on every topology: links, uplinks, and who is under another leaf."""

from __future__ import annotations

import re
from itertools import pairwise

from judging.measures.paths import PathKey
from scenarios.scenario import Setting
from topo import ROLES, Host, Plan, Switch, SwitchRole, leaf
from topo.graph import links, peer, ports
from topo.path import VIA_SEPARATOR, path_of_ev


def in_plane(name: str, plane: int) -> str:
    """The same switch or link in another plane."""
    return re.sub(r"\bp\d+", f"p{plane}", name)


def common_links(plan: Plan) -> list[str]:
    """The links between switches that every plane has, spelt as those of plane 0."""
    planes: list[list[str]] = [[] for _ in range(plan.planes)]
    for link in links(plan):
        if isinstance(link.a.node, Switch):
            planes[link.a.node.plane].append(in_plane(f"{link.a.node}-{link.b.node}", 0))
    everywhere = set(planes[0]).intersection(*planes[1:])
    return [name for name in planes[0] if name in everywhere]


def uplinks(plan: Plan, plane: int, leaf_index: int) -> list[str]:
    """The links of a leaf to the spines that it is wired to."""
    own = leaf(plane, leaf_index)
    others = (peer(plan, ref).node for ref in ports(plan, own))
    return [f"{own}-{other}" for other in others if isinstance(other, Switch)]


def switches(plan: Plan, role: SwitchRole, plane: int | None = None) -> list[str]:
    """The switches of a role, of one plane or of all."""
    found = (switch for switch in plan.switches() if switch.role == role)
    return [switch.name for switch in found if plane is None or switch.plane == plane]


def tiers(plan: Plan) -> list[SwitchRole]:
    """The roles of a plan's switches, the lowest first."""
    return [role for role in ROLES if plan.topology.switch_counts[role]]


def spines(plan: Plan, verb: str) -> list[str]:
    """All spines, for a scenario that `verb` ("crashes") them. ValueError names a plane without."""
    for plane in range(plan.planes):
        if not switches(plan, "spine", plane):
            raise ValueError(f"the scenario {verb} spines, and plan {plan.name!r} has none in plane {plane}")
    return switches(plan, "spine")


def hosts_under(plan: Plan, leaf_index: int) -> list[str]:
    """The hosts of a leaf."""
    return [plan.host_at(leaf_index, place).name for place in range(plan.topology.hosts_under(leaf_index))]


def shift_to_other_leaf(plan: Plan) -> int:
    """The least number n for which each host h is under another leaf than host h + n, counted round.

    ValueError where there is none.
    """
    count = plan.host_count
    leaves = [plan.leaf_of(Host(index)) for index in range(count)]
    for shift in range(1, count):
        if all(leaves[index] != leaves[(index + shift) % count] for index in range(count)):
            return shift
    raise ValueError(f"no permutation of plan {plan.name!r} by a shift sends every host to another leaf")


def crossed(setting: Setting, path: PathKey) -> list[str]:
    """The switches between the leaves of a path in a journal; none on the single plane, where no EV is a path."""
    return [] if setting.single_plane else _way(setting.plan, path)[1:-1]


def crossed_links(setting: Setting, path: PathKey) -> list[frozenset[str]]:
    """The links between switches of a path in a journal, each by its ends; none where no EV is a path."""
    return [] if setting.single_plane else [frozenset(ends) for ends in pairwise(_way(setting.plan, path))]


def _way(plan: Plan, path: PathKey) -> list[str]:
    """The switches from leaf to leaf. Of an EV that the plan does not know, those that the journal's line names."""
    source, destination = plan.host(path.host), plan.host(path.peer)
    try:
        return [switch.name for switch in path_of_ev(plan, source, destination, path.ev).switches]
    except ValueError:
        first, last = (leaf(path.plane, plan.leaf_of(host)).name for host in (source, destination))
        return [first, *path.via.split(VIA_SEPARATOR), last]
