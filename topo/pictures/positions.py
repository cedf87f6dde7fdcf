"""Where each node of a fabric is drawn: a pure function of the graph, for pictures on paper and in the browser."""

from collections import defaultdict

from topo.pictures.graph import Graph

__all__ = ["lane_width", "positions"]

SAG = 0.25


def positions(graph: Graph) -> dict[str, tuple[float, float]]:
    """Where each node is: x in places, y the tier; planes side by side, spines above leaves, hosts below all.

    A row whose nodes are wired to each other sags in the middle (`sag`).
    """
    tier_of = {place.name: place.tier for place in graph.places}
    joined = {tier_of[cable.a] for cable in graph.cables if tier_of[cable.a] == tier_of[cable.b]}
    rows: dict[tuple[int, int], list[str]] = defaultdict(list)
    for place in graph.places:
        rows[place.tier, place.plane if place.tier else 0].append(place.name)
    widest = lane_width(graph)
    total = graph.planes * (widest + 1) - 1
    places: dict[str, tuple[float, float]] = {}
    for (tier, plane), names in rows.items():
        left, room = (plane * (widest + 1), widest) if tier else (0, total)
        step = room / len(names)
        for index, name in enumerate(names):
            low = sag(index, len(names)) if tier in joined else 0.0
            places[name] = (left + step * (index + 0.5), tier - low)
    return places


def sag(index: int, count: int) -> float:
    """How far below its row a node is drawn, in tiers: no three nodes are on one line, so no cable covers another."""
    return 4 * SAG * index * (count - 1 - index) / (count - 1) ** 2 if count > 1 else 0.0


def lane_width(graph: Graph) -> int:
    """The places that the widest row of a plane takes; a plane's lane begins at `plane * (lane_width + 1)`."""
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for place in graph.places:
        if place.tier:
            counts[place.tier, place.plane] += 1
    return max(counts.values())
