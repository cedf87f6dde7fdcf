"""Shortest paths between the switches of one plane, by networkx, which is imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from topo.node import Switch


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
            found = self._networkx.single_source_shortest_path_length(self._graph, goal) if goal in self._graph else {}
            self._distances[goal] = dict(found)
        return self._distances[goal]

    def on_ways(self, goal: Switch) -> frozenset[Switch]:
        """The switches on a shortest way from any leaf to `goal`."""
        if goal not in self._on_ways:
            distances = self.distances(goal)
            found = front = {switch for switch in distances if switch.role == "leaf"}
            while front:
                steps = ((one, other) for one in front for other in self._graph[one])
                front = {other for one, other in steps if distances[other] < distances[one]} - found
                found = found | front
            self._on_ways[goal] = frozenset(found)
        return self._on_ways[goal]

    def ways(self, source: Switch, goal: Switch, most: int) -> tuple[tuple[Switch, ...], ...]:
        """Every shortest way, in the order of its switches; `most` and one more at most, and none where none leads."""
        if (source, goal) not in self._ways:
            self._ways[source, goal] = tuple(sorted(islice(self._search(source, goal), most + 1)))
        return self._ways[source, goal]

    def _search(self, source: Switch, goal: Switch) -> Iterator[tuple[Switch, ...]]:
        if source in self.distances(goal):
            yield from map(tuple, self._networkx.all_shortest_paths(self._graph, source, goal))
