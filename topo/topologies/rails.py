"""Two tiers on rails: the hosts of one node hang on different leaves, one per rail.

A host is a NIC here, and `rails` NICs with consecutive numbers are a node: NIC r of a node hangs on a leaf of rail r.
Leaves come in groups of `rails`, with `hosts_per_leaf` nodes to a group. Two nodes of a group are one hop apart on each
rail; the NICs of one node are a spine apart. Paths, EVs and uSID lists are those of a leaf-spine fabric.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from topo.node import Host
from topo.topologies.leaf_spine import LeafSpine


@dataclass(frozen=True)
class Rails(LeafSpine):
    """`rails` leaves form a group."""

    NAME: ClassVar[str] = "rails"
    RANGES: ClassVar[Mapping[str, tuple[int, int]]] = {**LeafSpine.RANGES, "rails": (2, 64)}

    rails: int

    def complaint(self) -> str | None:
        if self.leaves % self.rails:
            return f"leaves: must be a multiple of rails, {self.rails} (got {self.leaves})"
        return None

    def describe(self) -> str:
        return f"{super().describe()}, {self.rails} rails"

    def leaf_of(self, host: Host) -> int:
        node, rail = divmod(host.index, self.rails)
        return node // self.hosts_per_leaf * self.rails + rail

    def downlink_of(self, host: Host) -> int:
        return host.index // self.rails % self.hosts_per_leaf

    def host_at(self, leaf_index: int, downlink: int) -> Host:
        group, rail = divmod(leaf_index, self.rails)
        return Host((group * self.hosts_per_leaf + downlink) * self.rails + rail)
