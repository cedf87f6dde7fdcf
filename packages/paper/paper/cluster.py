"""The paper's test clusters (its table 1) as plans at their real rates.

The paper says how many planes there are and how fast the ports; how many switches a test used it says for cluster D
only. A and B have as many spines as a queue pair can use: 128 EVs in rotation, each a path of its own.
"""

from __future__ import annotations

from paper import parameters
from topo import Plan

__all__ = ["B"]

GBPS = 1_000_000_000


def cluster(
    name: str,
    description: str,
    *,
    planes: int,
    port_gbps: float,
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    fabric_gbps: float | None = None,
) -> Plan:
    """A fabric with the parameters of all figures; `fabric_gbps` is for links above leaves that are not as fast."""
    port_bps = round(port_gbps * GBPS)
    fabric_bps = None if fabric_gbps is None else round(fabric_gbps * GBPS)
    return Plan(
        name=name,
        description=description,
        planes=planes,
        leaves=leaves,
        spines=spines,
        hosts_per_leaf=hosts_per_leaf,
        links=parameters.links(port_bps, fabric_bps),
        packets=parameters.PACKETS,
        queues=parameters.QUEUES,
        trimming=parameters.TRIMMING,
    )


A = cluster(
    "cluster-a", "GB200 and CX8, 4 planes of 200 Gb/s", planes=4, port_gbps=200, leaves=2, spines=32, hosts_per_leaf=2
)
B = cluster(
    "cluster-b", "GB200 and CX8, 8 planes of 100 Gb/s", planes=8, port_gbps=100, leaves=2, spines=16, hosts_per_leaf=2
)
"""A model of the paper's cluster B."""
B_TWO = cluster(
    "cluster-b-2", "cluster B with two paths per plane", planes=8, port_gbps=100, leaves=2, spines=2, hosts_per_leaf=2
)
B_ONE_PLANE = cluster(
    "cluster-b-1", "a plane of cluster B with two paths", planes=1, port_gbps=100, leaves=3, spines=2, hosts_per_leaf=2
)
C = cluster(
    "cluster-c",
    "64 MI355 and Pollara, 4 planes of 100 Gb/s; for RoCE one plane of 400",
    planes=4,
    port_gbps=100,
    leaves=8,
    spines=8,
    hosts_per_leaf=8,
)
D = cluster(
    "cluster-d",
    "16 servers with Thor Ultra of 400 Gb/s, one plane, 4 racks of 4, 4 spines",
    planes=1,
    port_gbps=400,
    leaves=4,
    spines=4,
    hosts_per_leaf=4,
)
D_SLOW = cluster(
    "cluster-d-100",
    "cluster D with links of 100 Gb/s above the leaves",
    planes=1,
    port_gbps=400,
    fabric_gbps=100,
    leaves=4,
    spines=4,
    hosts_per_leaf=4,
)
PRODUCTION = cluster(
    "production",
    "a piece of the production fabrics: 4 planes of 200 Gb/s with 128 T1 each, under 2 of their T0 4 NICs each",
    planes=4,
    port_gbps=200,
    leaves=2,
    spines=128,
    hosts_per_leaf=4,
)
"""What a run of two minutes can hold of fabrics of 42,000 to 75,000 GPUs. A switch of 51.2 Tb/s has 256 ports of 200
Gb/s, half of them up (the rule of the paper's figure 1), so that a queue pair has as many paths as there, 512."""

JOB = cluster(
    "job",
    "a production job in small: 4 planes of 200 Gb/s",
    planes=4,
    port_gbps=200,
    leaves=2,
    spines=16,
    hosts_per_leaf=2,
)

CLUSTERS = (A, B, C, D)
