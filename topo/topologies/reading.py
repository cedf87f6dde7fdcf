"""A list of cables, read and checked: an error names the cable or node, the rule, and what was given."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from common.fields import excerpt
from topo.node import PLURALS, ROLES, Host, Node, Switch, SwitchRole, leaf, parse_node, tier
from topo.topologies.topology import EVS_MAX, Cable, Topology, TopologyError

PLANES_MAX = 8
HOSTS_MAX = 256
"""Of a leaf."""
CABLES_MAX = 20_000
WAYS_MAX = 200_000
PATH_SWITCHES_MAX = 5
"""A uSID container holds six uSIDs, of which the last is the NIC's."""
SPEEDS = (0.001, 16.0)

SWITCHES_MAX: Mapping[SwitchRole, int] = {"leaf": 512, "spine": 512, "core": 512}
"""Per plane: uSIDs have room for no more."""

Named = Mapping[Node, int]
"""The ports that a cable names, by the node at its end."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers of a list of cables. `counts` are one more than the highest index of a plane."""

    planes: int
    counts: Mapping[SwitchRole, int]
    hosts_per_leaf: int
    order: tuple[tuple[Node, tuple[Node, ...]], ...]


def check_nodes(names: Sequence[Any], wired: set[Node]) -> None:
    """The nodes that a list names must be those that its cables join."""
    told = {_node("nodes", name) for name in names}
    if alone := sorted(map(str, told - wired)):
        raise TopologyError(f"nodes: each must be at the end of a cable; {alone[0]} is not")
    if unknown := sorted(map(str, wired - told)):
        raise TopologyError(f"nodes: must name each end of a cable; {unknown[0]} is missing")


def shape_of(cables: Sequence[Cable], named: Sequence[Named]) -> Shape:
    """The counts of a fabric, checked but for its ways. TopologyError."""
    _check_cables(cables)
    nodes = {end for cable in cables for end in (cable.lower, cable.upper)}
    hosts = sorted(node for node in nodes if isinstance(node, Host))
    switches = [node for node in nodes if isinstance(node, Switch)]
    planes = 1 + max((switch.plane for switch in switches), default=0)
    if planes > PLANES_MAX:
        raise TopologyError(f"cables: planes must be at most {PLANES_MAX}, counted from 0 (got {planes})")
    _check_count("hosts", [host.index for host in hosts])
    for plane in range(planes):
        _check_count(f"leaves of plane {plane}", [s.index for s in switches if s.plane == plane and s.role == "leaf"])
    for switch in switches:
        if switch.index >= SWITCHES_MAX[switch.role]:
            most = SWITCHES_MAX[switch.role]
            raise TopologyError(f"cables: {PLURALS[switch.role]} must be numbered below {most} (got {switch})")
    under = _check_hosts(cables, hosts, planes)
    counts = {role: max(_indices(switches, role, plane) for plane in range(planes)) for role in ROLES}
    if counts["leaf"] < 2:
        raise TopologyError("cables: must join at least two leaves (got one)")
    return Shape(planes, counts, max(under), _ports(cables, named))


def in_order(cables: Iterable[Cable]) -> tuple[Cable, ...]:
    """Plane by plane, from the lower ends: of each leaf its hosts, then its other cables; then higher up."""

    def place(cable: Cable) -> tuple[int, ...]:
        lower, upper = cable.lower, cable.upper
        if isinstance(lower, Host):
            return upper.plane, tier(upper), upper.index, 0, lower.index
        return upper.plane, tier(lower), lower.index, tier(upper), upper.index

    return tuple(sorted(cables, key=place))


def _indices(switches: Iterable[Switch], role: str, plane: int) -> int:
    """One more than the highest index."""
    return 1 + max((s.index for s in switches if s.role == role and s.plane == plane), default=-1)


def read_row(place: str, row: Any) -> tuple[Cable, Named]:
    """One entry of `cables`. TopologyError."""
    if not isinstance(row, list | tuple) or len(row) not in (2, 3):
        raise TopologyError(f'{place}: must be ["NODE", "NODE"] or ["NODE", "NODE", SPEED] (got {excerpt(row)})')
    speed = row[2] if len(row) == 3 else 1.0
    if type(speed) not in (int, float) or not SPEEDS[0] <= speed <= SPEEDS[1]:
        raise TopologyError(f"{place}: the speed must be from {SPEEDS[0]} to {SPEEDS[1]:g} (got {excerpt(speed)})")
    named: dict[Node, int] = {}
    ends: list[Node] = []
    for text in row[:2]:
        name, colon, port = text.partition(":") if isinstance(text, str) else (text, "", "")
        node = _node(place, name)
        ends.append(node)
        if colon:
            if not (port.isascii() and port.isdigit() and len(port) < 4 and int(port) > 0):
                raise TopologyError(f"{place}: a port must be a number from 1 to 999 (got {excerpt(text)})")
            named[node] = int(port)
    lower, upper = sorted(ends, key=lambda node: (tier(node), node.index))
    if not isinstance(upper, Switch):
        raise TopologyError(f"{place}: a host must be wired to a leaf (got {lower} and {upper})")
    return Cable(lower, upper, float(speed)), named


def _node(place: str, name: Any) -> Node:
    try:
        return parse_node(name)
    except (ValueError, TypeError):
        raise TopologyError(
            f"{place}: a node must be a host h0, a leaf p0l0, a spine p0s0 or a core p0c0 (got {excerpt(name)})"
        ) from None


def _check_cables(cables: Sequence[Cable]) -> None:
    seen: set[tuple[Node, Node]] = set()
    for number, cable in enumerate(cables):
        lower, upper, place = cable.lower, cable.upper, f"cables[{number}]"
        if isinstance(lower, Host) and upper.role != "leaf":
            raise TopologyError(f"{place}: a host must be wired to a leaf (got {lower} and {upper})")
        if isinstance(lower, Switch) and lower.plane != upper.plane:
            raise TopologyError(f"{place}: planes must stay apart (got {lower} and {upper})")
        if lower == upper:
            raise TopologyError(f"{place}: must join two nodes (got {lower} twice)")
        if (lower, upper) in seen:
            raise TopologyError(f"{place}: two nodes must have one cable at most (got another of {lower} and {upper})")
        seen.add((lower, upper))


def _check_count(what: str, indices: Sequence[int]) -> None:
    missing = set(range(len(indices))) - set(indices)
    if missing or not indices:
        raise TopologyError(
            f"cables: {what} must be numbered from 0 without gaps; {min(missing, default=0)} is missing"
        )


def _check_hosts(cables: Sequence[Cable], hosts: Sequence[Host], planes: int) -> Sequence[int]:
    """Each host on one leaf of each plane, of the same index. By leaf: the number of its hosts."""
    places: dict[Host, dict[int, int]] = {host: {} for host in hosts}
    for cable in cables:
        if isinstance(cable.lower, Host):
            own = places[cable.lower]
            if cable.upper.plane in own:
                raise TopologyError(f"cables: {cable.lower} must have one cable in plane {cable.upper.plane} (got two)")
            own[cable.upper.plane] = cable.upper.index
    for host, own in places.items():
        for plane in range(planes):
            if plane not in own:
                raise TopologyError(f"cables: {host} must have a cable in every plane; it has none in plane {plane}")
        if len(set(own.values())) > 1:
            told = " and ".join(f"p{plane}l{index}" for plane, index in sorted(own.items()))
            raise TopologyError(f"cables: {host} must be wired to leaves of one index in all planes (got {told})")
    leaves = 1 + max(own[0] for own in places.values())
    under = [sum(own[0] == index for own in places.values()) for index in range(leaves)]
    every = {cable.upper for cable in cables if cable.upper.role == "leaf"}
    every |= {cable.lower for cable in cables if isinstance(cable.lower, Switch) and cable.lower.role == "leaf"}
    for switch in sorted(every):
        if switch.index >= leaves or not under[switch.index]:
            raise TopologyError(f"cables: every leaf must have a host; {switch} has none")
    if max(under) > HOSTS_MAX:
        raise TopologyError(f"cables: a leaf must have at most {HOSTS_MAX} hosts (got {max(under)})")
    return under


def _ports(cables: Sequence[Cable], named: Sequence[Named]) -> tuple[tuple[Node, tuple[Node, ...]], ...]:
    """The neighbours, in the order of ports, of each node at which cables name them."""
    given: dict[Node, dict[int, Node]] = {}
    wired: dict[Node, int] = {}
    for cable, ports in zip(cables, named, strict=False):
        for node, other in ((cable.lower, cable.upper), (cable.upper, cable.lower)):
            wired[node] = wired.get(node, 0) + 1
            if node not in ports:
                continue
            own, port = given.setdefault(node, {}), ports[node]
            if port in own:
                raise TopologyError(
                    f"cables: a port must have one cable; {node}:{port} has those to {own[port]} and {other}"
                )
            if isinstance(node, Host) and isinstance(other, Switch) and port != other.plane + 1:
                raise TopologyError(
                    f"cables: port 1 of a host must be in plane 0, 2 in plane 1 (got {node}:{port} to {other})"
                )
            own[port] = other
    for node, own in given.items():
        if sorted(own) != list(range(1, wired[node] + 1)):
            told = ", ".join(map(str, sorted(own)))
            raise TopologyError(
                f"cables: the ports of {node} must be 1 to {wired[node]}, all or none named (got {told})"
            )
    rows = ((node, tuple(own[port] for port in sorted(own))) for node, own in given.items() if isinstance(node, Switch))
    return tuple(sorted(rows, key=lambda row: (row[0].plane, tier(row[0]), row[0].index)))


def check_ways(topology: Topology, between: Callable[[int, int, int], int | None]) -> None:
    """Every two leaves are joined, by ways that uSIDs and EVs have room for, and every cable is on one.

    `between` says how many switches are on the ways from a leaf to a leaf of a plane, None where there are none.
    """
    used: set[frozenset[Node]] = set()
    total = 0
    for plane, source, other in product(range(topology.planes), range(topology.leaves), range(topology.leaves)):
        if source == other:
            continue
        ends, crossed = f"{leaf(plane, source)} and {leaf(plane, other)}", between(plane, source, other)
        if crossed is None:
            raise TopologyError(f"cables: every two hosts must be connected in each plane; {ends} are not")
        if crossed > PATH_SWITCHES_MAX:
            raise TopologyError(
                f"cables: a path must cross at most {PATH_SWITCHES_MAX} switches, whose uSIDs and the NIC's fill an"
                f" address (got {crossed} between {ends})"
            )
        ways = [way.switches for way in topology.ways(plane, source, other)]
        total += len(ways)
        if len(ways) > EVS_MAX:
            raise TopologyError(f"cables: two leaves must have at most {EVS_MAX} ways in a plane; {ends} have more")
        if total > WAYS_MAX:
            raise TopologyError(f"cables: all leaves together must have at most {WAYS_MAX:,} ways (got more)")
        used |= {frozenset(pair) for way in ways for pair in pairwise(way)}
    for cable in topology.cables():
        if isinstance(cable.lower, Switch) and frozenset((cable.lower, cable.upper)) not in used:
            name = f"{cable.lower}–{cable.upper}"
            raise TopologyError(f"cables: every cable must be on a shortest path; {name} is on none")
