"""The two fabrics: as many hosts, NICs of the same rate, the same switch chip, links and queues of all figures.

The chip has 1.6 Tb/s: 16 ports of 100 Gb/s or 4 of 400 Gb/s. With planes, a NIC has four ports of 100 Gb/s and a leaf
eight hosts; in three tiers of 4-port switches (a fat tree of k = 4), 16 hosts are all there can be.
"""

from __future__ import annotations

from dataclasses import dataclass

from paper import parameters
from topo.plan import Plan
from topo.planfile import check_plan
from topo.topologies import Pods

GBPS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ComparedFabric:
    """A fabric of the comparison. `peers` are hosts at each distance from h0; `lost` a switch of each tier."""

    name: str
    plan: Plan
    peers: dict[str, str]
    lost: dict[str, str]


def _plan(name: str, port_gbps: int, **shape: object) -> Plan:
    plan = Plan(
        name=name,
        links=parameters.links(port_gbps * GBPS),
        packets=parameters.PACKETS,
        queues=parameters.QUEUES,
        trimming=parameters.TRIMMING,
        **shape,  # type: ignore[arg-type]  # the numbers and the shape of a plan
    )
    check_plan(plan)
    return plan


PLANES = ComparedFabric(
    "4 planes of 2 tiers",
    _plan("shape-planes", 100, planes=4, leaves=2, spines=8, hosts_per_leaf=8),
    peers={"one leaf": "h1", "farthest": "h8"},
    lost={"leaf (T0)": "p0l0", "spine (T1)": "p0s0"},
)
_PODS = Pods(planes=1, pods=4, leaves=8, spines=8, cores=4, hosts_per_leaf=2)
TIERS = ComparedFabric(
    "1 plane of 3 tiers",
    _plan("shape-tiers", 400, planes=1, leaves=8, spines=8, hosts_per_leaf=2, shape=_PODS),
    peers={"one leaf": "h1", "one pod": "h2", "farthest": "h8"},
    lost={"leaf (T0)": "p0l0", "spine (T1)": "p0s0", "core (T2)": "p0c0"},
)
FABRICS = (PLANES, TIERS)
