"""A leaf-spine fabric that is not whole: spines or links missing, links of another speed, leaves with more hosts.

    [fabric]
    topology = "uneven"
    planes = 2
    leaves = 4
    spines = 4
    hosts_per_leaf = 2
    without = ["p1s3", "p0l0-p0s1"]
    speeds = { "p0l2-p0s0" = 0.5 }
    more_hosts = { l0 = 1 }

It is read as the list of its cables, and a run stores that list.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from common.fields import Fields, excerpt
from topo.node import Host, leaf, spine
from topo.topologies.leaf_spine import LeafSpine
from topo.topologies.listed import Listed, listed
from topo.topologies.reading import HOSTS_MAX, SPEEDS
from topo.topologies.topology import Cable, Topology, TopologyError


class Uneven(Listed):
    """A way to write a list; `parse` gives the list."""

    NAME: ClassVar[str] = "uneven"
    KEYS: ClassVar[Sequence[str]] = (*LeafSpine.RANGES, "without", "speeds", "more_hosts")

    @classmethod
    def parse(cls, fabric: Fields) -> Topology:
        numbers = {key: fabric.integer(key, *limits) for key, limits in LeafSpine.RANGES.items()}
        even = LeafSpine(**numbers)
        more = fabric.fields("more_hosts", [f"l{index}" for index in range(even.leaves)], {})
        extra = [more.integer(f"l{index}", 0, HOSTS_MAX, 0) for index in range(even.leaves)]
        cables = {_key(str(cable.lower), str(cable.upper)): cable for cable in _cables(even, extra)}
        speeds = fabric.fields("speeds", default={})
        for link in speeds.values:
            cable = cables.get(_link(link))
            if cable is None or isinstance(cable.lower, Host):
                raise TopologyError(
                    "speeds: each must be of a link between a leaf and a spine that is there, such as p0l0-p0s0"
                    f" (got {excerpt(link)})"
                )
            cables[_link(link)] = Cable(cable.lower, cable.upper, speeds.number(link, *SPEEDS))
        for name in fabric.items("without", ()):
            away = _named(cables, name)
            if not away:
                raise TopologyError(
                    "without: each must be a spine or a link that is there, such as p0s1 or p0l0-p0s0"
                    f" (got {excerpt(name)})"
                )
            for key in away:
                del cables[key]
        try:
            return listed(list(cables.values()))
        except TopologyError as error:  # of a key that this file does not have
            raise TopologyError(f"without: {str(error).removeprefix('cables: ')}") from None


_Key = frozenset[str]
"""A cable by the names at its ends."""


def _key(node: str, other: str) -> _Key:
    return frozenset((node, other))


def _link(name: str) -> _Key:
    """A link by its name, which may begin with either end."""
    return _key(*name.partition("-")[::2])


def _named(cables: Mapping[_Key, Cable], name: Any) -> list[_Key]:
    """The cables of a spine, or the one of a link; none where there is no such spine or link."""
    if not isinstance(name, str):
        return []
    between = [key for key, cable in cables.items() if not isinstance(cable.lower, Host)]
    return [key for key in between if key == _link(name) or str(cables[key].upper) == name]


def _cables(even: LeafSpine, extra: Sequence[int]) -> list[Cable]:
    """All cables, with so many hosts beyond the usual under each leaf; hosts are numbered leaf by leaf."""
    under: dict[int, range] = {}
    cables: list[Cable] = []
    first = 0
    for index in range(even.leaves):
        count = even.hosts_per_leaf + extra[index]
        under[index] = range(first, first + count)
        first += count
    for plane in range(even.planes):
        for index in range(even.leaves):
            own = leaf(plane, index)
            cables += [Cable(Host(number), own) for number in under[index]]
            cables += [Cable(own, spine(plane, number)) for number in range(even.spines)]
    return cables
