"""Uneven fabrics and lists of cables, which numbers alone do not describe: how a hunt draws and shrinks them.

Beside its numbers such a fabric has `parts`, as the section `[fabric]` of a plan file has them: `without`, `speeds` and
`more_hosts`, or `cables`.
"""

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from topo import PlanError, Switch, leaf, parse_node
from topo.planfile import parse_document
from topo.topologies import Cable, LeafSpine, Pods, Topology

Numbers = Mapping[str, int]
Parts = Mapping[str, Any]
Fabric = tuple[Numbers, Parts]

PARTS = ("without", "speeds", "more_hosts", "cables")
SLOW = (0.25, 0.5)
LIST_SHARE = 0.5  # of irregular fabrics
MESH_SHARE = 0.5  # of lists


def topology_of(parts: Parts) -> str:
    """As a plan file names it."""
    return "list" if "cables" in parts else "uneven"


def draw(rng: Random) -> Fabric:
    """A fabric of one of the two topologies, of about the size of the others, in which every pair has two paths."""
    while True:
        numbers, parts = some_list(rng) if rng.random() < LIST_SHARE else uneven(rng)
        if parts and (plan := topology_from(numbers, parts)) is not None and two_paths(plan):
            return numbers, parts


def topology_from(numbers: Numbers, parts: Parts) -> Topology | None:
    """The topology; None where the parts do not make one."""
    try:
        fabric = {"topology": topology_of(parts), **numbers, **parts}
        return parse_document({"name": "hunted", "fabric": fabric}).topology
    except PlanError:
        return None


def two_paths(shape: Topology) -> bool:
    """Whether every two leaves have more than one way, in all planes together."""
    pairs = ((first, other) for first in range(shape.leaves) for other in range(first))
    return all(sum(1 for plane in range(shape.planes) for _ in shape.ways(plane, *pair)) > 1 for pair in pairs)


def uneven(rng: Random) -> Fabric:
    """Two tiers with up to two parts away, up to two slow links, and a host more under a leaf."""
    numbers = {
        "planes": rng.choice((1, 2, 2, 3)),
        "leaves": rng.choice((2, 2, 3)),
        "spines": rng.choice((2, 2, 3)),
        "hosts_per_leaf": 1,
    }
    links = links_of(numbers)
    spine = f"p{rng.randrange(numbers['planes'])}s{rng.randrange(numbers['spines'])}"
    without = rng.sample([*links, spine], rng.choice((0, 1, 1, 2)))
    slow = rng.sample([link for link in links if link not in without], rng.choice((0, 0, 1, 2)))
    parts: dict[str, Any] = {
        "without": without,
        "speeds": {link: rng.choice(SLOW) for link in slow},
        "more_hosts": {f"l{rng.randrange(numbers['leaves'])}": 1} if rng.random() < 0.3 else {},
    }
    return numbers, {name: part for name, part in parts.items() if part}


def links_of(numbers: Numbers) -> list[str]:
    """The links between leaves and spines of two even tiers."""
    even = LeafSpine(*(numbers[name] for name in LeafSpine.RANGES))
    return [f"{cable.lower}-{cable.upper}" for cable in even.cables() if isinstance(cable.lower, Switch)]


def some_list(rng: Random) -> Fabric:
    """Leaves wired to each other, or three tiers with parts away; some cables are slow."""
    cables = mesh(rng) if rng.random() < MESH_SHARE else broken_pods(rng)
    rows: list[list[Any]] = [[str(cable.lower), str(cable.upper)] for cable in cables]
    for row in rng.sample([row for row in rows if not row[0].startswith("h")], rng.choice((0, 0, 1, 2))):
        row.append(rng.choice(SLOW))
    return {}, {"cables": rows}


def mesh(rng: Random) -> list[Cable]:
    """Two planes of three or four leaves in a ring, or each wired to every other, with one host each."""
    leaves, ring = rng.choice((3, 4)), rng.random() < 0.5
    even = LeafSpine(planes=2, leaves=leaves, spines=1, hosts_per_leaf=1)
    hosts = [cable for cable in even.cables() if not isinstance(cable.lower, Switch)]
    steps = (1, leaves - 1) if ring else range(1, leaves)
    pairs = [(first, other) for first in range(leaves) for other in range(first + 1, leaves) if other - first in steps]
    return hosts + [Cable(leaf(plane, first), leaf(plane, other)) for plane in range(2) for first, other in pairs]


def broken_pods(rng: Random) -> list[Cable]:
    """Two planes of two pods; one or two cables above the leaves are away."""
    spines = rng.choice((1, 2))
    shape = Pods(planes=2, pods=2, leaves=2, spines=2 * spines, hosts_per_leaf=1, cores=spines * rng.choice((1, 2)))
    cables = list(shape.cables())
    upper = [number for number, cable in enumerate(cables) if isinstance(cable.lower, Switch)]
    away = rng.sample(upper, rng.choice((1, 2)))
    return [cable for number, cable in enumerate(cables) if number not in away]


# --- smaller ones --------------------------------------------------------------------------------------------------


def smaller(numbers: Numbers, parts: Parts) -> Iterator[Fabric]:
    """Fabrics with less of one thing: two even tiers first. Some may be none."""
    yield even_numbers(numbers, parts), {}
    if "cables" in parts:
        yield from ((numbers, {"cables": rows}) for rows in fewer_cables(parts["cables"]))
    else:
        yield from ((numbers, fewer) for fewer in fewer_parts(parts))
        for name, number in numbers.items():
            if number > 1:
                reduced = {**numbers, name: number - 1}
                yield reduced, what_is_left(reduced, parts)


def even_numbers(numbers: Numbers, parts: Parts) -> Numbers:
    """Those of the even two tiers that come nearest."""
    shape = topology_from(numbers, parts) if "cables" in parts else None
    if shape is None:
        return numbers
    return {name: max(1, getattr(shape, name)) for name in LeafSpine.RANGES}


def fewer_parts(parts: Parts) -> Iterator[Parts]:
    """Each part of an uneven fabric with one entry less."""
    for name, part in parts.items():
        for entry in part:
            left: Any = [other for other in part if other != entry]
            if isinstance(part, Mapping):
                left = {other: part[other] for other in left}
            yield {key: value for key, value in {**parts, name: left}.items() if value}


def what_is_left(numbers: Numbers, parts: Parts) -> Parts:
    """The entries that name what two tiers of these numbers have."""
    links, leaves = set(links_of(numbers)), {f"l{index}" for index in range(numbers["leaves"])}
    there = links | {end for link in links for end in link.split("-")}
    left = {
        "without": [name for name in parts.get("without", ()) if name in there],
        "speeds": {link: speed for link, speed in parts.get("speeds", {}).items() if link in there},
        "more_hosts": {name: count for name, count in parts.get("more_hosts", {}).items() if name in leaves},
    }
    return {name: part for name, part in left.items() if part}


def fewer_cables(rows: list[list[Any]]) -> Iterator[list[list[Any]]]:
    """A list without its last plane, its last leaf, its last host, a switch, a cable, or a slow speed."""
    names = {name for row in rows for name in row[:2]}
    nodes = [parse_node(name) for name in names]
    switches = sorted(node for node in nodes if isinstance(node, Switch))
    last_plane = max(switch.plane for switch in switches)
    last_leaf = max(switch.index for switch in switches if switch.role == "leaf")
    hosts = sorted((name for name in names if name.startswith("h")), key=lambda name: int(name[1:]))
    own = {name for row in rows for name in row[:2] if re.fullmatch(rf"p\d+l{last_leaf}", row[1]) and name in hosts}
    groups = [
        {switch.name for switch in switches if switch.plane == last_plane},
        {switch.name for switch in switches if switch.role == "leaf" and switch.index == last_leaf} | own,
        {hosts[-1]},
        *({switch.name} for switch in switches if switch.role != "leaf"),
    ]
    for gone in groups:
        yield [row for row in rows if gone.isdisjoint(row[:2])]
    for number, row in enumerate(rows):
        if not row[0].startswith("h"):
            yield [*rows[:number], *rows[number + 1 :]]
    for number, row in enumerate(rows):
        if len(row) > 2:
            yield [*rows[:number], row[:2], *rows[number + 1 :]]


def size(parts: Parts) -> float:
    """How large the parts are: cables and entries, a slow cable more than another."""
    rows = parts.get("cables", ())
    return sum(len(row) - 1 for row in rows) + sum(len(parts.get(name, ())) for name in PARTS[:3])


def describe(parts: Parts) -> str:
    """The parts in words for people."""
    if "cables" in parts:
        slow = sum(len(row) > 2 for row in parts["cables"])
        return f"a list of {len(parts['cables'])} cables" + (f", {slow} of them slow" if slow else "")
    said = [
        *(f"without {name}" for name in parts.get("without", ())),
        *(f"{link} at {speed:g} of its rate" for link, speed in parts.get("speeds", {}).items()),
        *(f"{name} with {count} more" for name, count in parts.get("more_hosts", {}).items()),
    ]
    return ", ".join(said)
