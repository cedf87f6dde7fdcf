"""Places of a fabric that scenarios draw from, on every topology, and the room that it has for a pattern of flows.

For the room, all flows run at line rate. A sender spreads its flow evenly over the planes, and in a plane over the ways
that are left between the two leaves, each by the speed of its slowest cable.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from judging.measures.paths import PathKey
from scenarios.scenario import Setting
from topo import ROLES, Host, Plan, Switch, SwitchRole, leaf
from topo.graph import links, peer, ports
from topo.path import VIA_SEPARATOR, path_of_ev
from topo.topologies import LeafSpine


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
    of_role = (switch for switch in plan.switches() if switch.role == role)
    return [switch.name for switch in of_role if plane is None or switch.plane == plane]


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


Flows = Mapping[tuple[int, int], int]
"""How many flows go from the hosts of one leaf to those of another, by their indices."""
Part = frozenset[str]
"""A switch by its name, or a link by the names of both ends."""
Hop = tuple[Switch, Switch]
LOAD_MAX = 1.1
"""Beyond this load a link has no room: with less, hosts still send at more than 90 % of their line rate."""


def shifted(plan: Plan, shift: int) -> Flows:
    """Each host sends to the host that is `shift` farther, counted round. With 1, the ring of an all-reduce."""
    leaves = [plan.leaf_of(host) for host in plan.hosts()]
    return Counter((own, leaves[(index + shift) % len(leaves)]) for index, own in enumerate(leaves))


@dataclass(frozen=True)
class Loads:
    """The load of flows on the links of one plane, as multiples of a link's rate."""

    plan: Plan
    flows: Flows
    plane: int

    @cached_property
    def ways(self) -> Mapping[tuple[int, int], Sequence[Sequence[Switch]]]:
        """By pair of leaves."""
        topology = self.plan.topology
        return {pair: [way.switches for way in topology.ways(self.plane, *pair)] for pair in self.flows}

    @cached_property
    def full_loads(self) -> Mapping[Hop, float]:
        """By link and direction, with no part away."""
        loads: dict[Hop, float] = {}
        for pair, ways in self.ways.items():
            self._add(loads, pair, ways)
        return loads

    @cached_property
    def crossing(self) -> Mapping[Part, set[tuple[int, int]]]:
        """By part: the pairs of leaves that have ways across it."""
        pairs: dict[Part, set[tuple[int, int]]] = {}
        for pair, ways in self.ways.items():
            for switches in ways:
                for part in parts(switches):
                    pairs.setdefault(part, set()).add(pair)
        return pairs

    def without(self, part: Part) -> tuple[float, str]:
        """The highest load of a link that carries more while this part is away, and that link; infinite, with the two
        leaves, where no way is left between them."""
        loads: dict[Hop, float] = {}
        for pair in self.crossing.get(part, ()):
            ways = self.ways[pair]
            left = [switches for switches in ways if part not in parts(switches)]
            if not left:
                return float("inf"), f"{ways[0][0]}–{ways[0][-1]}"
            self._add(loads, pair, left)
            self._add(loads, pair, ways, sign=-1)
        return highest({hop: more + self.full_loads[hop] for hop, more in loads.items() if more > 0})

    def _add(
        self, loads: dict[Hop, float], pair: tuple[int, int], ways: Sequence[Sequence[Switch]], sign: int = 1
    ) -> None:
        """Add to `loads` what the flows of a pair put on these ways."""
        plan, speed_of = self.plan, self.plan.topology.speed
        flow = sign * self.flows[pair] * plan.links.host_rate_bps / plan.links.fabric_rate_bps
        speeds = [min((speed_of(*hop) for hop in pairwise(switches)), default=1.0) for switches in ways]
        for switches, speed in zip(ways, speeds, strict=True):
            for hop in pairwise(switches):
                loads[hop] = loads.get(hop, 0.0) + flow * speed / sum(speeds) / speed_of(*hop)


def parts(switches: Iterable[Switch]) -> set[Part]:
    """The switches of a way, and its links in either direction."""
    names = [switch.name for switch in switches]
    return {*(frozenset([name]) for name in names), *(frozenset(ends) for ends in pairwise(names))}


def highest(loads: Mapping[Hop, float]) -> tuple[float, str]:
    """The highest of these loads, and its link."""
    if not loads:
        return 0.0, ""
    first, other = min(loads, key=lambda hop: (-round(loads[hop], 6), hop))
    return loads[first, other], f"{first}–{other}"


def planes_of(plan: Plan) -> range:
    """The planes to look at: of two even tiers the first, since all are alike."""
    return range(1) if isinstance(plan.topology, LeafSpine) else range(plan.planes)


def check_room(plan: Plan, flows: Flows, name: str) -> None:
    """ValueError names the link that has no room for these flows, for the scenario `name`."""
    for plane in planes_of(plan):
        load, link = highest(Loads(plan, flows, plane).full_loads)
        if load > LOAD_MAX:
            raise ValueError(
                f"{name} needs room for every host at line rate; in plan {plan.name!r} {link} would carry {load:.3g}"
                " times its rate"
            )


def check_spare(plan: Plan, away: Collection[str], name: str) -> None:
    """ValueError where the training loop's ring has no room, or none for what one of these links or switches carries.

    `away` has links as "A-B" and switches by name, of all planes.
    """
    flows, planes = shifted(plan, 1), planes_of(plan)
    check_room(plan, flows, name)
    loads = {plane: Loads(plan, flows, plane) for plane in planes}
    for target in away:
        part = frozenset(target.split("-"))
        plane = plan.switch_node(min(part)).plane
        if plane not in loads:
            continue
        load, link = loads[plane].without(part)
        if load > LOAD_MAX:
            then = f"{link} would carry {load:.3g} times its rate"
            if load == float("inf"):
                then = f"{link.replace('–', ' and ')} have no way left"
            raise ValueError(
                f"{name} needs other links with room for those that are away; in plan {plan.name!r}, without {target},"
                f" {then}"
            )
