"""The paper's test clusters (its table 1) as plans at their real rates.

The paper says how many planes there are and how fast the ports; how many switches a test used it says for cluster D
only. A and B have as many spines as a queue pair can use: 128 EVs in rotation, each a path of its own.
"""

from pathlib import Path

from paper import parameters, texts
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


_ALL = {name: cluster(**row) for name, row in texts.read(Path(__file__).with_suffix(".toml")).items()}
A = _ALL["A"]
B = _ALL["B"]
"""A model of the paper's cluster B."""
B_TWO = _ALL["B_TWO"]
B_ONE_PLANE = _ALL["B_ONE_PLANE"]
C = _ALL["C"]
D = _ALL["D"]
D_SLOW = _ALL["D_SLOW"]
PRODUCTION = _ALL["PRODUCTION"]
JOB = _ALL["JOB"]
