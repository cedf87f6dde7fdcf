"""A topology: nodes, cables, and the paths between two leaves. All else that a plan offers follows from these.

A topology lists its switches and its cables, and says which ways lead from a leaf to another. Ports are numbered in the
order of the cables at each node, from 1, so that a host's port in plane p is p + 1. Hosts hang on leaves; a host hangs
on the leaf of the same index in every plane. Rates and delays are the plan's: a cable has at most a share of the rate.

Every topology is a frozen dataclass, equal to another of the same numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from common.fields import Fields
from common.terminal.counted import counted
from topo.node import PLURALS, ROLES, Host, Node, Switch, SwitchRole, leaf

EV_BASE = 0xC000
"""The low halves of EVs are source ports from the dynamic range: from here on for the ways between two leaves."""
EV_LOCAL = 0xFFFF
"""Under one leaf low halves count down from here."""
EVS_MAX = (EV_LOCAL + 1 - EV_BASE) // 2
"""EVs of a pair of hosts in one plane: no low half may mean a way both across and under one leaf."""


@dataclass(frozen=True, slots=True)
class Cable:
    """`lower` is a host or a switch of a lower tier than `upper`; `speed` is a share of the plan's rate."""

    lower: Node
    upper: Switch
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Way:
    """The switches from a leaf to a leaf, both included, and the low halves of the EVs that name this way."""

    switches: tuple[Switch, ...]
    lows: range


def switches_of(count: int, role: SwitchRole) -> str:
    """ "1 leaf", "4 leaves"."""
    return f"{count} {role if count == 1 else PLURALS[role]}"


def runs(switches: Sequence[Switch]) -> list[str]:
    """Switches in order, by plane and index, in runs: "p0s0 to p0s3", "p1s0", "p1s2 to p1s3"."""
    groups: list[list[Switch]] = []
    for switch in switches:
        if groups and (switch.plane, switch.index - 1) == (groups[-1][-1].plane, groups[-1][-1].index):
            groups[-1].append(switch)
        else:
            groups.append([switch])
    return [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in groups]


class TopologyError(ValueError):
    """A fabric that cannot be; the message begins with the key under `[fabric]`."""


class Topology(ABC):
    """One fabric. All counts of switches are per plane, and the largest of any plane where planes differ."""

    NAME: ClassVar[str]
    """As `fabric.topology` of a plan file says it."""
    RANGES: ClassVar[Mapping[str, tuple[int, int]]]
    """The whole numbers under `[fabric]`, in order, and their limits."""

    KEYS: ClassVar[Sequence[str]]
    """All keys under `[fabric]` but for `topology`; those of `RANGES` where a topology does not say more."""

    planes: int
    leaves: int
    spines: int
    hosts_per_leaf: int
    cores: int = 0

    def __init_subclass__(cls) -> None:
        cls.KEYS = cls.__dict__.get("KEYS", tuple(cls.RANGES))

    # --- what a topology says of itself ---------------------------------------------------------------------------

    @abstractmethod
    def switches(self) -> Iterator[Switch]:
        """Plane by plane, the lowest tier first."""

    @abstractmethod
    def cables(self) -> Iterator[Cable]:
        """Plane by plane, from the lower ends: first those of the leaves, each leaf's hosts before its spines."""

    @abstractmethod
    def ways(self, plane: int, source: int, destination: int) -> Iterator[Way]:
        """Every way between two leaves, given by index: the one switch where they are the same leaf."""

    @abstractmethod
    def next_ports(self, switch: Switch, destination: int) -> Sequence[int]:
        """The ports on the ways to a leaf of the switch's plane, ascending; none at the leaf, or where none leads."""

    @abstractmethod
    def describe(self) -> str:
        """The shape in one line: "4 planes × 4 leaves × 4 spines"."""

    def complaint(self) -> str | None:
        """Why these numbers make no fabric, beginning with the key; None when they do. Ranges are checked before."""
        return None

    def single_plane(self) -> Self:
        """The same with one plane."""
        raise NotImplementedError(f"topology {self.NAME} has no single plane that stands for all")

    @classmethod
    def parse(cls, fabric: Fields) -> Topology:
        """From the section `[fabric]` of a plan file. TopologyError on what the section's ranges cannot say."""
        return cls(**{key: fabric.integer(key, *limits) for key, limits in cls.RANGES.items()})

    def document(self) -> dict[str, Any]:
        """The section `[fabric]`; `parse` is the inverse."""
        return {"topology": self.NAME, **{key: getattr(self, key) for key in self.RANGES}}

    # --- counts ---------------------------------------------------------------------------------------------------

    @property
    def host_count(self) -> int:
        return self.leaves * self.hosts_per_leaf

    @property
    def switch_count(self) -> int:
        """Of all planes."""
        return len(self._numbers)

    @cached_property
    def evs_per_plane(self) -> int:
        """EVs of a pair of hosts in one plane: the most, which neighbours under one leaf have as well."""
        return self.paths_across // self.planes

    @cached_property
    @abstractmethod
    def paths_across(self) -> int:
        """Distinct paths of two hosts under different leaves, in all planes: those of the pair that has most."""

    @cached_property
    @abstractmethod
    def longest_path_switches(self) -> int:
        """The most switches that a path crosses."""

    @cached_property
    def tier_links(self) -> tuple[float, ...]:
        """Cables above the leaves of all planes, a number for each tier of lower ends, each cable with its speed."""
        sums: dict[SwitchRole, float] = {}
        for cable in self.cables():
            if isinstance(cable.lower, Switch):
                sums[cable.lower.role] = sums.get(cable.lower.role, 0.0) + cable.speed
        return tuple(sums[role] for role in ROLES if role in sums)

    @cached_property
    def fabric_links(self) -> int:
        """Cables above the leaves, of all planes."""
        return sum(isinstance(cable.lower, Switch) for cable in self.cables())

    @cached_property
    def switch_counts(self) -> Mapping[SwitchRole, int]:
        """Switches of each role, of all planes."""
        roles = [switch.role for switch in self.switches()]
        return {role: roles.count(role) for role in ROLES}

    def count(self, role: SwitchRole) -> int:
        """Switches of a role in one plane."""
        return {"leaf": self.leaves, "spine": self.spines, "core": self.cores}[role]

    # --- hosts ----------------------------------------------------------------------------------------------------

    def leaf_of(self, host: Host) -> int:
        """The index, in every plane, of the leaf that this host hangs on."""
        return host.index // self.hosts_per_leaf

    def downlink_of(self, host: Host) -> int:
        """Which of its leaf's hosts this is, from 0."""
        return host.index % self.hosts_per_leaf

    def host_at(self, leaf_index: int, downlink: int) -> Host:
        """The host at this place: the inverse of `leaf_of` and `downlink_of`."""
        return Host(leaf_index * self.hosts_per_leaf + downlink)

    def hosts_under(self, leaf_index: int) -> int:
        """How many hosts hang on a leaf."""
        return self.hosts_per_leaf

    # --- what follows ---------------------------------------------------------------------------------------------

    @cached_property
    def neighbours(self) -> Mapping[Node, Sequence[Node]]:
        """By node: what is wired to port 1, to port 2, and so on."""
        wired: dict[Node, list[Node]] = {}
        for cable in self.cables():
            wired.setdefault(cable.lower, []).append(cable.upper)
            wired.setdefault(cable.upper, []).append(cable.lower)
        return wired

    @cached_property
    def _ports(self) -> Mapping[tuple[Node, Node], int]:
        return {(node, other): port for node, all_of in self.neighbours.items() for port, other in enumerate(all_of, 1)}

    @cached_property
    def _speeds(self) -> Mapping[frozenset[Node], float]:
        return {frozenset((cable.lower, cable.upper)): cable.speed for cable in self.cables() if cable.speed != 1.0}

    @cached_property
    def _numbers(self) -> Mapping[Switch, int]:
        return {switch: number for number, switch in enumerate(self.switches())}

    def port_count(self, node: Node) -> int:
        """How many ports are wired at a node."""
        return len(self.neighbours[node])

    def neighbour(self, node: Node, port: int) -> Node:
        """What is wired to a port, which must be one of the node's."""
        return self.neighbours[node][port - 1]

    def port_towards(self, node: Node, neighbour: Node) -> int:
        """The port of a node that a neighbour is wired to."""
        return self._ports[node, neighbour]

    def wired(self, node: Node, other: Node) -> bool:
        """Whether a cable joins two nodes of the fabric."""
        return (node, other) in self._ports

    def speed(self, a: Node, b: Node) -> float:
        """A cable's share of the plan's rate for its tier."""
        return self._speeds.get(frozenset((a, b)), 1.0)

    def number(self, switch: Switch) -> int:
        """A switch's place in `switches`, from 0."""
        return self._numbers[switch]

    def has(self, node: Node) -> bool:
        """Whether the fabric has this node."""
        return node.index < self.host_count if isinstance(node, Host) else node in self._numbers

    def lacks(self, node: Node) -> str:
        """What there is instead of a node that the fabric does not have."""
        if isinstance(node, Host):
            return f"its hosts are h0 to h{self.host_count - 1}"
        kind, there = PLURALS[node.role], [switch for switch in self.switches() if switch.role == node.role]
        if not there:
            return f"it has no {kind}"
        if len(there) < self.planes * self.count(node.role):  # a plane has fewer, or a number is left out
            return f"its {kind} are {', '.join(runs(there))}"
        planes = f"{counted(self.planes, 'plane')} of {self.count(node.role)}, counted from 0"
        return f"its {kind} are {there[0]} to {there[-1]} ({planes})"

    def way_of(self, plane: int, source: int, destination: int, low: int) -> Way | None:
        """The way that an EV's low half names between two leaves."""
        return next((way for way in self.ways(plane, source, destination) if low in way.lows), None)

    def crossed(self, source: int, destination: int) -> int:
        """How many switches lie between two hosts, by the leaves that they hang on: on the longest way."""
        return max(len(way.switches) for way in self.ways(0, source, destination))

    def local_way(self, plane: int, leaf_index: int) -> Way:
        """The way between two hosts of one leaf, which has as many EVs as there are between two leaves."""
        return Way((leaf(plane, leaf_index),), range(EV_LOCAL, EV_LOCAL - self.evs_per_plane, -1))
