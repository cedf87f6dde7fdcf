"""The topologies that a plan can have. A new one is a module of this package and a row of `TOPOLOGIES`."""

from collections.abc import Mapping

from topo.topologies.leaf_spine import LeafSpine
from topo.topologies.listed import Listed, listed
from topo.topologies.pods import Pods
from topo.topologies.rails import Rails
from topo.topologies.topology import Cable, Topology, TopologyError, Way
from topo.topologies.uneven import Uneven

_ALL: tuple[type[Topology], ...] = (LeafSpine, Pods, Rails, Uneven, Listed)

TOPOLOGIES: Mapping[str, type[Topology]] = {topology.NAME: topology for topology in _ALL}
"""By the name that `fabric.topology` has in a plan file."""

__all__ = [
    "TOPOLOGIES", "Cable", "LeafSpine", "Listed", "Pods", "Rails", "Topology", "TopologyError", "Uneven", "Way",
    "listed",
]  # fmt: skip
