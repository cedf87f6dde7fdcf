"""Three tiers: pods of leaves and spines, and cores above them. The low half of an EV names the spine and the core.

In a pod every leaf is wired to every spine. The cores of a plane are divided among the places of spines: spine j of
each pod is wired to the same `uplinks` cores, so that a core leads to one spine of each pod. With `u` uplinks the low
half of an EV is `0xC000 + j·u + k`: spine j of the pod, and the k-th of its cores. Within a pod the EV names the spine
alone, and `u` of them name one way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

from common.terminal.counted import counted
from topo.node import Switch, core, leaf, spine
from topo.topologies.topology import EV_BASE, EVS_MAX, Cable, Topology, Way, switches_of


@dataclass(frozen=True)
class Pods(Topology):
    """`leaves`, `spines` and `cores` are those of a plane, of all its pods together.

    Ports of a leaf: hosts first, then spines; of a spine: leaves, then cores; of a core: one per pod.
    """

    NAME: ClassVar[str] = "pods"
    RANGES: ClassVar[Mapping[str, tuple[int, int]]] = {
        "planes": (1, 8),
        "pods": (2, 256),
        "leaves": (2, 512),
        "spines": (2, 512),
        "cores": (1, 512),
        "hosts_per_leaf": (1, 256),
    }

    planes: int
    pods: int
    leaves: int
    spines: int
    hosts_per_leaf: int
    cores: int = 0

    @property
    def leaves_per_pod(self) -> int:
        return self.leaves // self.pods

    @property
    def spines_per_pod(self) -> int:
        return self.spines // self.pods

    @property
    def core_links(self) -> int:
        """Of a spine to cores."""
        return self.cores // self.spines_per_pod

    def complaint(self) -> str | None:
        for key in ("leaves", "spines"):
            if getattr(self, key) % self.pods:
                return f"{key}: must be a multiple of pods, {self.pods} (got {getattr(self, key)})"
        if self.cores % self.spines_per_pod:
            return f"cores: must be a multiple of the spines of a pod, {self.spines_per_pod} (got {self.cores})"
        if self.cores > EVS_MAX:
            return f"cores: must be at most {EVS_MAX}, the EVs of a plane (got {self.cores})"
        return None

    def switches(self) -> Iterator[Switch]:
        for plane in range(self.planes):
            yield from (leaf(plane, index) for index in range(self.leaves))
            yield from (spine(plane, index) for index in range(self.spines))
            yield from (core(plane, index) for index in range(self.cores))

    def cables(self) -> Iterator[Cable]:
        for plane in range(self.planes):
            for index in range(self.leaves):
                own = leaf(plane, index)
                yield from (Cable(self.host_at(index, place), own) for place in range(self.hosts_per_leaf))
                pod = index // self.leaves_per_pod
                yield from (Cable(own, self._spine(plane, pod, place)) for place in range(self.spines_per_pod))
            for index in range(self.spines):
                first = index % self.spines_per_pod * self.core_links
                upper = spine(plane, index)
                yield from (Cable(upper, core(plane, number)) for number in range(first, first + self.core_links))

    def ways(self, plane: int, source: int, destination: int) -> Iterator[Way]:
        if source == destination:
            yield self.local_way(plane, source)
            return
        first, last = leaf(plane, source), leaf(plane, destination)
        here, there = source // self.leaves_per_pod, destination // self.leaves_per_pod
        for place in range(self.spines_per_pod):
            low, up = EV_BASE + place * self.core_links, self._spine(plane, here, place)
            if here == there:
                yield Way((first, up, last), range(low, low + self.core_links))
                continue
            down = self._spine(plane, there, place)
            for number in range(self.core_links):
                middle = core(plane, place * self.core_links + number)
                yield Way((first, up, middle, down, last), range(low + number, low + number + 1))

    def next_ports(self, switch: Switch, destination: int) -> Sequence[int]:
        pod, own = destination // self.leaves_per_pod, switch.index
        if switch.role == "core":
            return (pod + 1,)
        if switch.role == "spine":
            if own // self.spines_per_pod == pod:
                return (destination % self.leaves_per_pod + 1,)
            return range(self.leaves_per_pod + 1, self.leaves_per_pod + self.core_links + 1)
        if own == destination:
            return ()
        return range(self.hosts_per_leaf + 1, self.hosts_per_leaf + self.spines_per_pod + 1)

    def describe(self) -> str:
        return (
            f"{counted(self.planes, 'plane')} × {self.pods} pods of {switches_of(self.leaves_per_pod, 'leaf')} and"
            f" {switches_of(self.spines_per_pod, 'spine')}, {switches_of(self.cores, 'core')}"
        )

    def single_plane(self) -> Self:
        return replace(self, planes=1)

    @cached_property
    def paths_across(self) -> int:
        return self.planes * self.cores

    @cached_property
    def longest_path_switches(self) -> int:
        return 5

    def crossed(self, source: int, destination: int) -> int:
        if source == destination:
            return 1
        return 3 if source // self.leaves_per_pod == destination // self.leaves_per_pod else 5

    def _spine(self, plane: int, pod: int, place: int) -> Switch:
        return spine(plane, pod * self.spines_per_pod + place)
