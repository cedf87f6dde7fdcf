"""The one set of model parameters of all figures, each with its source or the word "assumed".

No figure has parameters of its own: a figure chooses a cluster, a transport, a workload and faults. What is not listed
here is the default of the plan and of the endpoint, which every other scenario uses, too.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper import texts
from running.transport_choice import LOSSLESS, TRANSPORTS, TransportChoice
from topo import Plan
from topo.plan import Links, Packets, Queues, Trimming

PAPER = "Araujo et al., arXiv:2605.04333"
UEC = "UEC guidance for switches"
ASSUMED = "assumed"


# The time between two NICs, of the two constants that the 2-byte rows of the latency table give
# (`figures/table_5_2_1.py`): a link, with its cable and the pipeline of the switch or NIC behind it. The other constant
# is the time between a program and its NIC (`profiles/cx8.toml`), which is in no frame's way.
LINK_NS = 711

PMTU_BYTES = 4096
MTU_BYTES = 4338
WIRE_OVERHEAD_BYTES = 24

QUEUES = Queues()
TRIMMING = Trimming()
# RoCE's queues are not MRC's. Marks: Li et al., "HPCC" (SIGCOMM 2019), 5.1: 100 to 400 KB for 25 Gb/s. A pause: the
# 22 MB that wait in figure 22 when DCQCN does not hold fifteen flows, over the seven ports that they come by.
ROCE_ECN_BYTES_PER_GBPS = 4_000, 16_000
ROCE_XOFF_BYTES = 22_000_000 / 7
ROCE_XOFF_MB = ROCE_XOFF_BYTES / 1e6
ROCE_ECN_KB = [per_gbps / 1e3 for per_gbps in ROCE_ECN_BYTES_PER_GBPS]
ROCE_XON = 0.75  # of xoff
ROCE_DEPTH_BYTES = 32_000_000
PACKETS = Packets(pmtu_bytes=PMTU_BYTES)


def links(port_bps: int, fabric_bps: int | None = None) -> Links:
    """Links at this rate between NICs and leaves, and at another above the leaves if one is given; bit/s."""
    return Links(
        host_rate_bps=port_bps,
        fabric_rate_bps=port_bps if fabric_bps is None else fabric_bps,
        host_delay_ns=LINK_NS,
        fabric_delay_ns=LINK_NS,
        mtu_bytes=MTU_BYTES,
        wire_overhead_bytes=WIRE_OVERHEAD_BYTES,
        hardware_rate_bps=port_bps,
    )


def for_roce(plan: Plan) -> Plan:
    """The cluster with queues as RoCE has them, for its single-plane equivalent."""
    single = plan.single_plane()
    bdp_bytes = single.plane_bdp_bytes
    gbps = single.links.host_rate_bps / 1e9
    ecn_min, ecn_max = (each * gbps / bdp_bytes for each in ROCE_ECN_BYTES_PER_GBPS)
    xoff = ROCE_XOFF_BYTES / bdp_bytes
    return replace(
        plan,
        queues=replace(plan.queues, ecn_min=ecn_min, ecn_max=ecn_max, depth=ROCE_DEPTH_BYTES / bdp_bytes),
        pfc=replace(plan.pfc, xoff=xoff, xon=ROCE_XON * xoff),
    )


def mrc(settings: Mapping[str, Any]) -> TransportChoice:
    """MRC as the paper's NIC has it, without the lab's rules, with these settings."""
    usual = TRANSPORTS["mrc-cx8"]
    return replace(usual, settings={**usual.settings, **settings})


MRC = mrc({})
# Production has 4 planes of about 256 spines and 256 EVs per queue pair, one EV to four paths; so here.
MRC_JOB = mrc({"evs_active": 16, "evs_backup": 8})
PFC = TRANSPORTS["roce-pfc"]
PFC_8QP = TRANSPORTS["roce-pfc-8qp"]
PFC_DCQCN, PFC_DCQCN_8QP = TRANSPORTS["roce-pfc-dcqcn"], TRANSPORTS["roce-pfc-dcqcn-8qp"]
"""With DCQCN's constants in round trips and shares of the line: for figures whose seconds are compressed, in which the
published 40 Mb/s per 55 µs would bring back nothing that was cut."""
REAL_TIME, REAL_TIME_16QP = (
    replace(TRANSPORTS[name], settings={**TRANSPORTS[name].settings, "dcqcn_setting": "published"})
    for name in ("roce-pfc-dcqcn", "roce-pfc-dcqcn-16qp")
)
"""With DCQCN's constants as published: for figures whose time is the paper's."""


def table() -> list[list[str]]:
    """Every parameter of the model for the page: what it is called, its value in words, where it comes from."""
    rows: list[list[str]] = texts.load(Path(__file__).with_suffix(".toml"), {**globals(), **LOSSLESS})["parameters"]
    return rows
