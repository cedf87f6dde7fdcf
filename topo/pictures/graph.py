"""A fabric as a graph of places and cables, with the faults and the load of each; its text in DOT and Mermaid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topo.fault import VERBS, Fault
from topo.fault.fault import transmitters
from topo.graph import links, peer
from topo.node import Host, Node, tier
from topo.plan import Plan

__all__ = ["Graph", "dot", "graph_of", "mermaid"]

NODES_MAX = 600  # a picture of more is too dense to read
BAD = "#c0392b"
IDLE, BUSY = "#9aa5b1", "#1f6feb"


class GraphError(ValueError):
    """A fabric too large to be drawn whole; the message names the command that draws a part."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node. `tier` is that of `topo.node.tier`; `faults` are those on the whole switch."""

    name: str
    tier: int
    plane: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawnCable:
    """A link from its lower end. `load` is None where nothing was measured, else a share of the link's rate.

    `speed` is the link's share of the plan's rate, told where it is not all of it. `bold` stands out from the others.
    """

    a: str
    b: str
    faults: tuple[str, ...]
    load: float | None
    speed: float = 1.0
    bold: bool = False

    @property
    def label(self) -> str:
        speed = [f"rate × {self.speed:g}"] if self.speed != 1.0 else []
        load = [f"{self.load:.0%}"] if self.load is not None else []
        return ", ".join([*self.faults, *speed, *load])

    @property
    def colour(self) -> str:
        """Red for a cable with a fault, bluer with its load, grey where no load was measured; blue if bold."""
        return BAD if self.faults else blend(1.0 if self.bold else self.load or 0.0)


@dataclass(frozen=True, slots=True)
class Graph:
    """`note` is a line below the picture."""

    title: str
    planes: int
    places: tuple[Place, ...]
    cables: tuple[DrawnCable, ...]
    note: str = ""

    @property
    def tiers(self) -> int:
        """Tiers of switches."""
        return max(place.tier for place in self.places)


def graph_of(plan: Plan, faults: Sequence[Fault] = (), load: Mapping[frozenset[str], float] | None = None) -> Graph:
    """The whole fabric. GraphError when it is too large."""
    count = plan.host_count + plan.switch_count
    if count > NODES_MAX:
        raise GraphError(
            f"plan {plan.name} has {count:,} nodes; {NODES_MAX} are the most: ./lab topo draw draws it in part"
        )
    on_links: dict[frozenset[str], list[str]] = {}
    for fault in faults:
        if VERBS[fault.verb].target != "switch":
            ends = (frozenset((ref.node.name, peer(plan, ref).node.name)) for ref in transmitters(plan, fault))
            for names in dict.fromkeys(ends):
                on_links.setdefault(names, []).append(fault.describe())
    cables = []
    for link in links(plan):
        names = frozenset((link.a.node.name, link.b.node.name))
        carried = (load or {}).get(names)
        own, speed = tuple(on_links.get(names, ())), plan.topology.speed(link.a.node, link.b.node)
        cables.append(DrawnCable(link.a.node.name, link.b.node.name, own, carried, speed))
    places = tuple(place(node, faults) for node in plan.nodes())
    return Graph(f"plan {plan.name}", plan.planes, places, tuple(cables))


def place(node: Node, faults: Sequence[Fault]) -> Place:
    if isinstance(node, Host):
        return Place(node.name, 0, 0, ())
    own = tuple(f.describe() for f in faults if VERBS[f.verb].target == "switch" and f.target == node.name)
    return Place(node.name, tier(node), node.plane, own)


def blend(share: float) -> str:
    """A colour between idle and busy."""
    share = min(max(share, 0.0), 1.0)
    ends = [(int(IDLE[i : i + 2], 16), int(BUSY[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in ends)


def dot(graph: Graph) -> str:
    """Graphviz: hosts below, spines on top, a cluster a plane."""
    title = graph.title.replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'graph "{title}" {{', "  rankdir=BT;", '  node [shape=box, fontname="sans-serif"];']
    for level in range(graph.tiers + 1):
        names = [f'"{p.name}"' for p in graph.places if p.tier == level]
        lines.append(f"  {{ rank=same; {'; '.join(names)}; }}")
    for place in graph.places:
        if place.faults:
            lines.append(f'  "{place.name}" [color="{BAD}", label="{place.name}\\n{", ".join(place.faults)}"];')
    for cable in graph.cables:
        width = 1 + 3 * min(cable.load or 0.0, 1.0)
        style = ", style=dashed" if cable.faults else ""
        label = f', label="{cable.label}"' if cable.label else ""
        lines.append(f'  "{cable.a}" -- "{cable.b}" [color="{cable.colour}", penwidth={width:.1f}{style}{label}];')
    return "\n".join([*lines, "}"]) + "\n"


def mermaid(graph: Graph) -> str:
    """Mermaid, as GitHub and GitLab draw it in a page: spines on top, hosts below."""
    lines = ["graph TD"]
    for place in graph.places:
        text = "<br/>".join([place.name, *place.faults])
        lines.append(f'  {place.name}["{text}"]')
        if place.faults:
            lines.append(f"  style {place.name} stroke:{BAD},color:{BAD}")
    for number, cable in enumerate(graph.cables):
        link = f'-. "{cable.label}" .-' if cable.faults else f'-- "{cable.label}" ---' if cable.label else "---"
        lines.append(f"  {cable.b} {link} {cable.a}")
        if cable.faults or cable.load:
            lines.append(f"  linkStyle {number} stroke:{cable.colour}")
    return "\n".join(lines) + "\n"
