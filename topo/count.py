"""The needs and capacity of a plan, in closed form, beside a three-tier network of the same NICs.

The comparison is the paper's (Araujo et al., section 2, figure 1): a fat tree of 64-port switches at the NIC's full
rate, k³/4 = 65,536 NICs and 5k²/4 = 5,120 switches. An optic is a transceiver of a NIC's full rate: in a multi-plane
fabric it breaks out into one link per plane, so links are counted by their share of that rate, both ends.
"""

from dataclasses import asdict, dataclass
from typing import Any

from topo.node import Switch, SwitchRole, tier
from topo.path import path_count
from topo.plan import Plan

THREE_TIER_RADIX = 64
THREE_TIER_NICS = THREE_TIER_RADIX**3 // 4
THREE_TIER_SWITCHES = 5 * THREE_TIER_RADIX**2 // 4
THREE_TIER_OPTICS = 6 * THREE_TIER_NICS  # NIC–T0, T0–T1, T1–T2, two ends each


@dataclass(frozen=True, slots=True)
class PartCount:
    """What a plan consists of. Ports are those of the switch that has most; `optics` are of a NIC's full rate."""

    nics: int
    planes: int
    leaves: int
    spines: int
    cores: int
    links_edge: int
    links_fabric: int
    leaf_ports: int
    spine_ports: int
    core_ports: int
    tiers: int
    longest_path_switches: int
    paths_same_leaf: int
    paths_across: int
    nic_rate_bps: int
    bisection_bps: int | None  # None where switches of one tier are wired to each other
    oversubscription: float  # capacity of all host links over that of the narrowest tier of links above
    nics_in_one_hop: int
    optics: float
    fabric_link_loss_share: float  # of a leaf's uplink capacity in one plane, where that is most
    nic_port_loss_share: float

    @property
    def switches(self) -> int:
        """Those of all tiers and planes."""
        return self.leaves + self.spines + self.cores

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


def _some(plan: Plan, role: SwitchRole) -> list[Switch]:
    """All switches of a role; of two even tiers one, which is like all others."""
    if plan.shape is None:
        return [] if role == "core" else [Switch(0, role, 0)]
    return [switch for switch in plan.switches() if switch.role == role]


def _most_ports(plan: Plan, role: SwitchRole) -> int:
    return max((plan.topology.port_count(switch) for switch in _some(plan, role)), default=0)


def _link_loss_share(plan: Plan) -> float:
    """The largest share that one cable has of a leaf's capacity towards switches."""
    shares = []
    for own in _some(plan, "leaf"):
        towards = (plan.topology.neighbour(own, port) for port in range(1, plan.topology.port_count(own) + 1))
        speeds = [plan.topology.speed(own, other) for other in towards if isinstance(other, Switch)]
        shares += [max(speeds) / sum(speeds)] if speeds else []
    return max(shares)


def _wired_within_a_tier(plan: Plan) -> bool:
    """Then half of the links of the narrowest tier is not what joins two halves of the hosts."""
    return plan.shape is not None and any(tier(cable.lower) == tier(cable.upper) for cable in plan.topology.cables())


def count_parts(plan: Plan) -> PartCount:
    """Count a plan's parts; nothing is built."""
    topology = plan.topology
    nic_rate_bps = plan.planes * plan.links.host_rate_bps
    links_edge = plan.planes * plan.host_count
    edge_bps = links_edge * plan.links.host_rate_bps
    tiers_bps = [links * plan.links.fabric_rate_bps for links in topology.tier_links]
    counts = topology.switch_counts
    return PartCount(
        nics=plan.host_count,
        planes=plan.planes,
        leaves=counts["leaf"],
        spines=counts["spine"],
        cores=counts["core"],
        links_edge=links_edge,
        links_fabric=topology.fabric_links,
        leaf_ports=_most_ports(plan, "leaf"),
        spine_ports=_most_ports(plan, "spine"),
        core_ports=_most_ports(plan, "core"),
        tiers=sum(count > 0 for count in counts.values()),
        longest_path_switches=topology.longest_path_switches if plan.leaves > 1 else 1,
        paths_same_leaf=path_count(plan, local=True),
        paths_across=path_count(plan, local=False),
        nic_rate_bps=nic_rate_bps,
        bisection_bps=None if _wired_within_a_tier(plan) else round(min(edge_bps, *tiers_bps)) // 2,
        oversubscription=edge_bps / min(tiers_bps),
        nics_in_one_hop=plan.hosts_per_leaf,
        optics=2 * (edge_bps + sum(tiers_bps)) / nic_rate_bps,
        fabric_link_loss_share=_link_loss_share(plan),
        nic_port_loss_share=1 / plan.planes,
    )
