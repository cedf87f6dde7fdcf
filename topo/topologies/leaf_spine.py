"""Two tiers: every leaf of a plane is wired to every spine of it. The low half of an EV names the spine.

All is arithmetic: the paper's fabric has 131,072 hosts and half a million cables in a plane.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from common.terminal.counted import counted
from topo.node import Host, Node, Switch, leaf, spine
from topo.topologies.topology import EV_BASE, Cable, Topology, Way


@dataclass(frozen=True)
class LeafSpine(Topology):
    """Ports of a leaf: hosts first, then spines. Ports of a spine: leaves."""

    NAME: ClassVar[str] = "leaf-spine"
    RANGES: ClassVar[Mapping[str, tuple[int, int]]] = {
        "planes": (1, 8),
        "leaves": (1, 512),
        "spines": (1, 256),
        "hosts_per_leaf": (1, 256),
    }

    planes: int
    leaves: int
    spines: int
    hosts_per_leaf: int

    def switches(self) -> Iterator[Switch]:
        for plane in range(self.planes):
            yield from (leaf(plane, index) for index in range(self.leaves))
            yield from (spine(plane, index) for index in range(self.spines))

    def cables(self) -> Iterator[Cable]:
        for plane in range(self.planes):
            for index in range(self.leaves):
                own = leaf(plane, index)
                yield from (Cable(self.host_at(index, place), own) for place in range(self.hosts_per_leaf))
                yield from (Cable(own, spine(plane, number)) for number in range(self.spines))

    def ways(self, plane: int, source: int, destination: int) -> Iterator[Way]:
        if source == destination:
            yield self.local_way(plane, source)
            return
        first, last = leaf(plane, source), leaf(plane, destination)
        for index in range(self.spines):
            yield Way((first, spine(plane, index), last), range(EV_BASE + index, EV_BASE + index + 1))

    def next_ports(self, switch: Switch, destination: int) -> Sequence[int]:
        if switch.role == "spine":
            return (destination + 1,)
        if switch.index == destination:
            return ()
        return range(self.hosts_per_leaf + 1, self.hosts_per_leaf + self.spines + 1)

    def describe(self) -> str:
        return f"{counted(self.planes, 'plane')} × {self.leaves} leaves × {self.spines} spines"

    def single_plane(self) -> Self:
        return replace(self, planes=1)

    @cached_property
    def paths_across(self) -> int:
        return self.planes * self.spines

    @cached_property
    def longest_path_switches(self) -> int:
        return 3

    # --- the same as in the base class, without listing cables ----------------------------------------------------

    @cached_property
    def tier_links(self) -> tuple[float, ...]:
        return (float(self.fabric_links),)

    @cached_property
    def fabric_links(self) -> int:
        return self.planes * self.leaves * self.spines

    def port_count(self, node: Node) -> int:
        if isinstance(node, Host):
            return self.planes
        return self.hosts_per_leaf + self.spines if node.role == "leaf" else self.leaves

    def neighbour(self, node: Node, port: int) -> Node:
        if isinstance(node, Host):
            return leaf(port - 1, self.leaf_of(node))
        if node.role == "spine":
            return leaf(node.plane, port - 1)
        if port <= self.hosts_per_leaf:
            return self.host_at(node.index, port - 1)
        return spine(node.plane, port - 1 - self.hosts_per_leaf)

    def port_towards(self, node: Node, neighbour: Node) -> int:
        if isinstance(node, Host):
            assert isinstance(neighbour, Switch)
            return neighbour.plane + 1
        if isinstance(neighbour, Host):
            return self.downlink_of(neighbour) + 1
        return neighbour.index + 1 + (self.hosts_per_leaf if node.role == "leaf" else 0)

    def wired(self, node: Node, other: Node) -> bool:
        if isinstance(node, Host):
            return isinstance(other, Switch) and self.wired(other, node)
        if isinstance(other, Host):
            return node.role == "leaf" and node.index == self.leaf_of(other)
        return node.plane == other.plane and node.role != other.role

    def speed(self, a: Node, b: Node) -> float:
        return 1.0

    def crossed(self, source: int, destination: int) -> int:
        return 1 if source == destination else 3

    def way_of(self, plane: int, source: int, destination: int, low: int) -> Way | None:
        if source == destination:
            return super().way_of(plane, source, destination, low)
        index = low - EV_BASE
        if not 0 <= index < self.spines:
            return None
        return Way((leaf(plane, source), spine(plane, index), leaf(plane, destination)), range(low, low + 1))
