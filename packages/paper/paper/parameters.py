"""The one set of model parameters of all figures, each with its source or the word "assumed".

No figure has parameters of its own: a figure chooses a cluster, a transport, a workload and faults. What is not listed
here is the default of the plan and of the endpoint, which every other scenario uses, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from running.transport_choice import LOSSLESS, TRANSPORTS, TransportChoice
from topo import Plan
from topo.plan import Links, Packets, Queues, Trimming

PAPER = "Araujo et al., arXiv:2605.04333"
UEC = "UEC guidance for switches"
ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class ModelParameter:
    """One number of the model, for the page: what it is called, its value in words, where it comes from."""

    name: str
    value: str
    source: str


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
    """MRC without the lab's rules, with these settings."""
    usual = TRANSPORTS["mrc-strict"]
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

PARAMETERS: tuple[ModelParameter, ...] = (
    ModelParameter(
        "link with its cable and what is behind it",
        f"{LINK_NS} ns",
        f"calibrated: {PAPER}, table of section 5.2.1, 2-byte writes",
    ),
    ModelParameter(
        "from program to NIC and back",
        "once per message: device profiles cx8 (cluster B), pollara (C)",
        "cx8 by the same table; pollara and halves assumed",
    ),
    ModelParameter("payload of a data packet", f"{PMTU_BYTES} bytes", "default of the OCP MRC API's benchmarks"),
    ModelParameter("around a frame on the wire", f"{WIRE_OVERHEAD_BYTES} bytes", "IEEE 802.3: preamble, FCS, gap"),
    ModelParameter(
        "EVs of a queue pair, production in small",
        "16 in rotation, 8 to replace them, of 64 paths",
        f"256 EVs' share of production's paths; {ASSUMED}",
    ),
    ModelParameter(
        "EVs of a queue pair", "128 in rotation, 64 to replace them", f"128 to 256: {PAPER}, 2.1; backup {ASSUMED}"
    ),
    ModelParameter(
        "ECN marking", f"from {QUEUES.ecn_min} to {QUEUES.ecn_max} Plane_BDP; none on last hops", f"{UEC}; {PAPER}, 2.1"
    ),
    ModelParameter(
        "trimming",
        f"beyond {QUEUES.trim} Plane_BDP, {QUEUES.trim_lasthop} on last hops",
        f"{UEC}; that it is on: {ASSUMED}",
    ),
    ModelParameter("size of a trimmed packet", f"{TRIMMING.size_bytes} bytes", "default of SAI and SONiC"),
    ModelParameter("trimmed packets' share of a port", f"{TRIMMING.share:.0%}", f"{UEC} (WDRR)"),
    ModelParameter("depth of a queue", f"{QUEUES.depth} Plane_BDP", f"{UEC}: 2 to 5; the upper end {ASSUMED}"),
    ModelParameter("congestion control", "NSCC, first window 1.5 BDP", "UEC 1.0, constants as in public htsim"),
    ModelParameter("probes to bring an EV back", "2 in a row", ASSUMED),
    ModelParameter(
        "loss from gaps",
        "a later packet of the EV has arrived, or one sent a quarter of a base round trip later",
        ASSUMED,
    ),
    ModelParameter("a SACK without another reason", "per eighth of the BDP, 4 to 16 KiB", ASSUMED),
    ModelParameter("reliability probes of a silent peer", "after a round trip of silence, then ever later", ASSUMED),
    ModelParameter("local ACK timeout", "1.024 µs · 2^8 at the paper's rates", "examples of the OCP MRC API"),
    ModelParameter("retries", "7 linear, then exponential without end", "examples of the OCP MRC API"),
    ModelParameter("a congested EV", "a backup of its plane takes its place", f"{PAPER}, figures 13 and 14"),
    ModelParameter("a plane of which much is lost", "stays in use", f"{PAPER}, section 4"),
    ModelParameter("a packet that is sent again", "on any plane", f"{PAPER}, section 3: a different path"),
    ModelParameter("receiver's penalty", "none", "public htsim's receivers send none"),
    ModelParameter("messages of streams", "256 KiB, 16 at a time per queue pair", ASSUMED),
    ModelParameter("least share of a plane's EVs in rotation", "a quarter", ASSUMED),
    ModelParameter("placement of ranks", "by rail: each hop of a ring crosses a spine", ASSUMED),
    ModelParameter(
        "cost of hosts and NICs",
        "device profiles pollara (figures 16, 17) and cx8 (15)",
        "paper/profiles, with the rows that set them",
    ),
    ModelParameter(
        "port state to peers",
        "status update on live planes at once",
        f"OCP MRC 1.0; that a NIC sees carrier at once {ASSUMED}",
    ),
    ModelParameter(
        "RoCE: ACK timeout", f"1.024 µs · 2^n, the first beyond {LOSSLESS['timeout_rtts']} base round trips", ASSUMED
    ),
    ModelParameter("RoCE: recovery", "go-back-N", ASSUMED),
    ModelParameter(
        "RoCE with PFC",
        f"{ROCE_XOFF_BYTES / 1e6:.1f} MB by one port pause it, until {ROCE_XON:.0%} wait;"
        f" window {LOSSLESS['window_bdps']:g} BDP",
        f"IEEE 802.1Qbb; calibrated by figure 22; window {ASSUMED}",
    ),
    ModelParameter(
        "RoCE: ECN marking",
        "from {:g} to {:g} KB per Gb/s, also on last hops".format(*(one / 1e3 for one in ROCE_ECN_BYTES_PER_GBPS)),
        "Li et al., HPCC, SIGCOMM 2019, 5.1",
    ),
    ModelParameter("RoCE: congestion control", "DCQCN", f"{PAPER}, 5.2.7 and the appendix"),
    ModelParameter(
        "RoCE: DCQCN in real time (figures 16, 17)",
        "g 1/256; 55 µs; 10 MB; 40 Mb/s; notifications 50 µs apart",
        "Zhu et al., SIGCOMM 2015",
    ),
    ModelParameter(
        "RoCE: DCQCN in compressed time (18, 20, 22)",
        "1 base round trip for 50 µs; a step of 1/250 of the line",
        f"{ASSUMED}: endpoint/roce/dcqcn_setting.py",
    ),
)
