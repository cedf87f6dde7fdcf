"""Any fabric, as a list of cables. Ways are the shortest ones, and the low half of an EV is the number of its way.

    [fabric]
    topology = "list"
    cables = [["h0", "p0l0"], ["h1", "p0l1"], ["p0l0", "p0s0"], ["p0l1", "p0s0", 0.5]]

The third entry of a cable is its share of the plan's rate. `NODE:PORT` in place of a node names the port; at a node
either every cable names its port or none does. `nodes`, where given, must be the very nodes that the cables join.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Self

from common.fields import Fields
from common.terminal.counted import counted
from topo.node import ROLES, Host, Node, Switch, leaf, tier
from topo.topologies.reading import CABLES_MAX, Named, check_nodes, check_ways, in_order, read_row, shape_of
from topo.topologies.topology import EV_BASE, EVS_MAX, Cable, Topology, TopologyError, Way, switches_of


class Search:
    """One plane's switches as a graph. All hops count alike; the speeds of cables do not."""

    def __init__(self, cables: Iterable[tuple[Switch, Switch]]) -> None:
        import networkx

        self._networkx = networkx
        self._graph: Any = networkx.Graph()
        self._graph.add_edges_from(cables)
        self._distances: dict[Switch, Mapping[Switch, int]] = {}
        self._on_ways: dict[Switch, frozenset[Switch]] = {}
        self._ways: dict[tuple[Switch, Switch], tuple[tuple[Switch, ...], ...]] = {}

    def distances(self, goal: Switch) -> Mapping[Switch, int]:
        """The hops from every switch that reaches `goal`, itself included."""
        if goal not in self._distances:
            hops = self._networkx.single_source_shortest_path_length(self._graph, goal) if goal in self._graph else {}
            self._distances[goal] = dict(hops)
        return self._distances[goal]

    def on_ways(self, goal: Switch) -> frozenset[Switch]:
        """The switches on a shortest way from any leaf to `goal`."""
        if goal not in self._on_ways:
            distances = self.distances(goal)
            reached = front = {switch for switch in distances if switch.role == "leaf"}
            while front:
                steps = ((switch, other) for switch in front for other in self._graph[switch])
                front = {other for switch, other in steps if distances[other] < distances[switch]} - reached
                reached = reached | front
            self._on_ways[goal] = frozenset(reached)
        return self._on_ways[goal]

    def ways(self, source: Switch, goal: Switch, most: int) -> tuple[tuple[Switch, ...], ...]:
        """Every shortest way, in the order of its switches; `most` and one more at most, and none where none leads."""
        if (source, goal) not in self._ways:
            self._ways[source, goal] = tuple(sorted(islice(self._search(source, goal), most + 1)))
        return self._ways[source, goal]

    def _search(self, source: Switch, goal: Switch) -> Iterator[tuple[Switch, ...]]:
        if source in self.distances(goal):
            yield from map(tuple, self._networkx.all_shortest_paths(self._graph, source, goal))


@dataclass(frozen=True)
class Listed(Topology):
    """Made by `listed`, which checks. `order` has the neighbours of nodes that name ports."""

    NAME: ClassVar[str] = "list"
    RANGES: ClassVar[Mapping[str, tuple[int, int]]] = {}
    KEYS: ClassVar[Sequence[str]] = ("nodes", "cables")

    planes: int
    leaves: int
    spines: int
    hosts_per_leaf: int
    cores: int = 0
    listing: tuple[Cable, ...] = ()
    order: tuple[tuple[Node, tuple[Node, ...]], ...] = ()

    @classmethod
    def parse(cls, fabric: Fields) -> Topology:
        rows = fabric.items("cables")
        if len(rows) > CABLES_MAX:
            raise TopologyError(f"cables: must be at most {CABLES_MAX:,} (got {len(rows):,})")
        read = [read_row(f"cables[{number}]", row) for number, row in enumerate(rows)]
        topology = listed([cable for cable, _ in read], [named for _, named in read])
        if fabric.has("nodes"):
            check_nodes(fabric.items("nodes"), set(topology.neighbours))
        return topology

    def document(self) -> dict[str, Any]:
        ports = {node: {other: f"{node}:{port}" for port, other in enumerate(others, 1)} for node, others in self.order}

        def end(node: Node, other: Node) -> str:
            return ports.get(node, {}).get(other, str(node))

        rows = [[end(cable.lower, cable.upper), end(cable.upper, cable.lower), cable.speed] for cable in self.listing]
        return {"topology": self.NAME, "cables": [row[: 2 + (row[2] != 1.0)] for row in rows]}

    def switches(self) -> Iterator[Switch]:
        return iter(self._switches)

    def cables(self) -> Iterator[Cable]:
        return iter(self.listing)

    def ways(self, plane: int, source: int, destination: int) -> Iterator[Way]:
        if source == destination:
            yield self.local_way(plane, source)
            return
        ways = self._searches[plane].ways(leaf(plane, source), leaf(plane, destination), EVS_MAX)
        for number, switches in enumerate(ways, EV_BASE):
            yield Way(switches, range(number, number + 1))

    def next_ports(self, switch: Switch, destination: int) -> Sequence[int]:
        search, goal = self._searches[switch.plane], leaf(switch.plane, destination)
        if switch not in search.on_ways(goal):
            return ()
        distances, ports = search.distances(goal), enumerate(self.neighbours[switch], 1)
        steps = ((port, distances.get(other)) for port, other in ports if isinstance(other, Switch))
        return [port for port, left in steps if left == distances[switch] - 1]

    def switches_between(self, plane: int, source: int, destination: int) -> int | None:
        """The switches on the ways between two leaves of a plane; None where no way leads."""
        hops = self._searches[plane].distances(leaf(plane, destination)).get(leaf(plane, source))
        return None if hops is None else hops + 1

    def describe(self) -> str:
        tiers = [switches_of(count, role) for role in ROLES if (count := self.count(role))]
        return f"{counted(self.planes, 'plane')} × {' × '.join(tiers)}, from a list"

    def single_plane(self) -> Self:
        first = tuple(cable for cable in self.listing if cable.upper.plane == 0)
        for plane in range(1, self.planes):
            if in_plane_0(self.listing, plane) != set(first):
                raise TopologyError(
                    f"cables: plane {plane} must be wired as plane 0, or no single plane stands for all"
                )
        order = tuple((node, others) for node, others in self.order if isinstance(node, Switch) and node.plane == 0)
        return replace(self, planes=1, listing=first, order=order)

    @cached_property
    def evs_per_plane(self) -> int:
        pairs = ((source, other) for source in range(self.leaves) for other in range(self.leaves) if source != other)
        return max(sum(1 for _ in self.ways(plane, *pair)) for pair in pairs for plane in range(self.planes))

    @cached_property
    def paths_across(self) -> int:
        pairs = ((source, other) for source in range(self.leaves) for other in range(self.leaves) if source != other)
        return max(sum(1 for plane in range(self.planes) for _ in self.ways(plane, *pair)) for pair in pairs)

    @cached_property
    def longest_path_switches(self) -> int:
        return max(self.crossed(source, other) for source in range(self.leaves) for other in range(source))

    def crossed(self, source: int, destination: int) -> int:
        searches = enumerate(self._searches)
        return 1 + max(search.distances(leaf(plane, destination))[leaf(plane, source)] for plane, search in searches)

    # --- hosts ----------------------------------------------------------------------------------------------------

    @property
    def host_count(self) -> int:
        return len(self._places)

    def leaf_of(self, host: Host) -> int:
        return self._places[host][0]

    def downlink_of(self, host: Host) -> int:
        return self._places[host][1]

    def host_at(self, leaf_index: int, downlink: int) -> Host:
        return self._under[leaf_index][downlink]

    def hosts_under(self, leaf_index: int) -> int:
        return len(self._under[leaf_index])

    @cached_property
    def _under(self) -> Sequence[Sequence[Host]]:
        """By leaf: its hosts, by index."""
        hosts: list[list[Host]] = [[] for _ in range(self.leaves)]
        for cable in self.listing:
            if isinstance(cable.lower, Host) and cable.upper.plane == 0:
                hosts[cable.upper.index].append(cable.lower)
        return hosts

    @cached_property
    def _places(self) -> Mapping[Host, tuple[int, int]]:
        return {host: (index, place) for index, own in enumerate(self._under) for place, host in enumerate(own)}

    @cached_property
    def _switches(self) -> Sequence[Switch]:
        switches = {end for cable in self.listing for end in (cable.lower, cable.upper) if isinstance(end, Switch)}
        return sorted(switches, key=lambda switch: (switch.plane, tier(switch), switch.index))

    @cached_property
    def _searches(self) -> Sequence[Search]:
        pairs = [(cable.lower, cable.upper) for cable in self.listing if isinstance(cable.lower, Switch)]
        return [Search(pair for pair in pairs if pair[0].plane == plane) for plane in range(self.planes)]

    @cached_property
    def neighbours(self) -> Mapping[Node, Sequence[Node]]:
        wired: dict[Node, list[Node]] = {}
        for cable in self.listing:
            wired.setdefault(cable.lower, []).append(cable.upper)
            wired.setdefault(cable.upper, []).append(cable.lower)
        for node, others in wired.items():
            if isinstance(node, Switch):
                others.sort(key=lambda other: (tier(other), other.index))
        return {**wired, **dict(self.order)}


def in_plane_0(cables: Iterable[Cable], plane: int) -> set[Cable]:
    """The cables of a plane, spelt as those of plane 0."""

    def moved(node: Node) -> Node:
        return replace(node, plane=0) if isinstance(node, Switch) else node

    return {
        replace(cable, lower=moved(cable.lower), upper=replace(cable.upper, plane=0))
        for cable in cables
        if cable.upper.plane == plane
    }


def listed(cables: Sequence[Cable], named: Sequence[Named] = ()) -> Listed:
    """The topology of these cables. `named` has, cable by cable, the ports that it names. TopologyError."""
    shape = shape_of(cables, named)
    counts = shape.counts
    topology = Listed(
        shape.planes,
        counts["leaf"],
        counts["spine"],
        shape.hosts_per_leaf,
        counts["core"],
        listing=in_order(cables),
        order=shape.order,
    )
    check_ways(topology, topology.switches_between)
    return topology
