"""The topologies that a plan can have. A new one is a module of this package and a row of `TOPOLOGIES`."""

from __future__ import annotations

from collections.abc import Mapping

from topo.topologies.leaf_spine import LeafSpine
from topo.topologies.pods import Pods
from topo.topologies.topology import Cable, Topology, TopologyError, Way

TOPOLOGIES: Mapping[str, type[Topology]] = {topology.NAME: topology for topology in (LeafSpine, Pods)}
"""By the name that `fabric.topology` has in a plan file."""

__all__ = ["TOPOLOGIES", "Cable", "LeafSpine", "Pods", "Topology", "TopologyError", "Way"]
