"""What a plan needs and offers, in closed form, beside a three-tier network of the same NICs.

The comparison is the paper's (Araujo et al., section 2, figure 1): a fat tree of 64-port switches at the NIC's full
rate, k³/4 = 65,536 NICs and 5k²/4 = 5,120 switches. An optic is a transceiver of a NIC's full rate: in a multi-plane
fabric it breaks out into one link per plane, so links are counted by their share of that rate, both ends.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from topo.path import path_count
from topo.plan import Plan

THREE_TIER_RADIX = 64
THREE_TIER_NICS = THREE_TIER_RADIX**3 // 4
THREE_TIER_SWITCHES = 5 * THREE_TIER_RADIX**2 // 4
THREE_TIER_OPTICS = 6 * THREE_TIER_NICS  # NIC–T0, T0–T1, T1–T2, two ends each


@dataclass(frozen=True, slots=True)
class PartCount:
    """What a plan consists of. Ports are those of one switch; `optics` are transceivers of a NIC's full rate."""

    nics: int
    planes: int
    leaves: int
    spines: int
    links_edge: int
    links_fabric: int
    leaf_ports: int
    spine_ports: int
    tiers: int
    longest_path_switches: int
    paths_same_leaf: int
    paths_across: int
    nic_rate_bps: int
    bisection_bps: int
    oversubscription: float  # host capacity of a leaf over its uplink capacity
    nics_in_one_hop: int
    optics: float
    fabric_link_loss_share: float  # of a leaf's uplink capacity in one plane
    nic_port_loss_share: float

    @property
    def switches(self) -> int:
        """Leaves and spines of all planes."""
        return self.leaves + self.spines

    @property
    def switches_per_nic(self) -> float:
        return self.switches / self.nics

    @property
    def optics_per_nic(self) -> float:
        return self.optics / self.nics

    @property
    def switch_ratio(self) -> float:
        """Switches per NIC over the three-tier network's."""
        return self.switches_per_nic * THREE_TIER_NICS / THREE_TIER_SWITCHES

    @property
    def optic_ratio(self) -> float:
        """Optics per NIC over the three-tier network's."""
        return self.optics_per_nic * THREE_TIER_NICS / THREE_TIER_OPTICS

    def as_json(self) -> dict[str, Any]:
        """All numbers by name, with the three-tier network's beside them."""
        names = ("switches", "switches_per_nic", "optics_per_nic", "switch_ratio", "optic_ratio")
        three_tier = {
            "radix": THREE_TIER_RADIX,
            "nics": THREE_TIER_NICS,
            "switches": THREE_TIER_SWITCHES,
            "switches_per_nic": THREE_TIER_SWITCHES / THREE_TIER_NICS,
            "optics_per_nic": THREE_TIER_OPTICS / THREE_TIER_NICS,
            "longest_path_switches": 5,
        }
        return {**asdict(self), **{name: getattr(self, name) for name in names}, "three_tier": three_tier}


def count_parts(plan: Plan) -> PartCount:
    """Count a plan's parts; nothing is built."""
    nic_rate_bps = plan.planes * plan.links.host_rate_bps
    links_edge = plan.planes * plan.host_count
    links_fabric = plan.planes * plan.leaves * plan.spines
    edge_bps, fabric_bps = links_edge * plan.links.host_rate_bps, links_fabric * plan.links.fabric_rate_bps
    return PartCount(
        nics=plan.host_count,
        planes=plan.planes,
        leaves=plan.planes * plan.leaves,
        spines=plan.planes * plan.spines,
        links_edge=links_edge,
        links_fabric=links_fabric,
        leaf_ports=plan.hosts_per_leaf + plan.spines,
        spine_ports=plan.leaves,
        tiers=2,
        longest_path_switches=3 if plan.leaves > 1 else 1,
        paths_same_leaf=path_count(plan, local=True),
        paths_across=path_count(plan, local=False),
        nic_rate_bps=nic_rate_bps,
        bisection_bps=min(edge_bps, fabric_bps) // 2,
        oversubscription=edge_bps / fabric_bps,
        nics_in_one_hop=plan.hosts_per_leaf,
        optics=2 * (edge_bps + fabric_bps) / nic_rate_bps,
        fabric_link_loss_share=1 / plan.spines,
        nic_port_loss_share=1 / plan.planes,
    )
