"""The plan: the few numbers from which a whole fabric follows. `topo.planfile` reads and checks the file.

Rates are bit/s of Ethernet frame bytes (no FCS, preamble, gap), sizes bytes, times nanoseconds. Queue thresholds
are kept in the unit of the UEC guidance, multiples of Plane_BDP (one port's rate × the base round trip), so that
they follow when rates or delays change.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from common.terminal.source_names import shown
from topo.errors import PlanError
from topo.node import Host, Node, Switch, parse_node
from topo.topologies import LeafSpine, Topology, TopologyError

__all__ = [
    "PRIORITY_CONTROL", "PRIORITY_DATA", "PRIORITY_LOSSLESS", "SWITCH_KINDS", "Links", "Packets",
    "Queues", "SwitchKind", "Trimming", "rate_of",
]  # fmt: skip

SwitchKind = Literal["embedded", "bmv2", "linux"]
SWITCH_KINDS: tuple[SwitchKind, ...] = ("embedded", "bmv2", "linux")
Encapsulation = Literal["srv6", "none"]
ENCAPSULATIONS: tuple[Encapsulation, ...] = ("srv6", "none")

ETHERNET_HEADER_BYTES = 14
IPV6_HEADER_BYTES = 40
# What surrounds the payload of the largest data packet, from the outer IP header on, in the order on the wire.
OVERHEAD_BYTES: Mapping[str, int] = MappingProxyType(
    {
        "outer IPv6": IPV6_HEADER_BYTES,
        "inner IPv6": IPV6_HEADER_BYTES,
        "UDP": 8,
        "BTH": 12,
        "METH": 4,
        "TSETH": 4,
        "RETH": 16,
        "ImmDt": 4,
        "ICRC": 4,
    }
)
# What a receiver of a trimmed packet must still find: Ethernet 14, IPv6 40 + 40, UDP 8, BTH 12, METH 4, TSETH 4.
TRIM_SIZE_BYTES_MIN = ETHERNET_HEADER_BYTES + 2 * IPV6_HEADER_BYTES + 8 + 12 + 4 + 4
ACK_FRAME_BYTES = 154  # a SACK with CC_STATE: Ethernet 14, IPv6 80, UDP 8, BTH 12, SETH 28, CC_STATE 8, ICRC 4
PRIORITY_DATA = 0
PRIORITY_LOSSLESS = 3  # of the baseline's data where there is PFC; the usual one for RoCE
PRIORITY_CONTROL = 7
PRIORITIES = 8
RATE_MBPS_MIN, RATE_MBPS_MAX = 0.01, 8_000_000  # of `--rate`: up to the fastest hardware there is, or soon will be
BASELINE_EVS = 64  # source ports that the baseline may use: more than any plan has ECMP members


@dataclass(frozen=True, slots=True)
class Links:
    """Rates and one-way propagation delays, the same for all links between hosts and leaves, and all above leaves."""

    host_rate_bps: int = 10_000_000
    fabric_rate_bps: int = 10_000_000
    host_delay_ns: int = 5_000_000
    fabric_delay_ns: int = 5_000_000
    mtu_bytes: int = 4338  # IP MTU, outer header included
    wire_overhead_bytes: int = 0  # what surrounds a frame on a wire: preamble 8, FCS 4, gap 12 (IEEE 802.3) make 24
    nic_latency_ns: int = 0  # of a NIC, each way, in every frame's way, whatever the frame's length
    hardware_rate_bps: int = 100_000_000_000  # what host_rate_bps stands for

    @property
    def edge_delay_ns(self) -> int:
        """From a host to its leaf, and back: the cable and the host's NIC."""
        return self.host_delay_ns + self.nic_latency_ns


@dataclass(frozen=True, slots=True)
class Packets:
    """What endpoints put into a packet."""

    pmtu_bytes: int = 4096  # payload of a full data packet
    udp_port: int = 4791


@dataclass(frozen=True, slots=True)
class Queues:
    """Lengths are multiples of Plane_BDP."""

    ecn_min: float = 0.2  # marking starts
    ecn_max: float = 0.8  # marking is certain
    trim: float = 1.0  # a longer queue trims
    trim_lasthop: float = 1.5  # the same on ports towards hosts
    no_trim_drop: float = 3.0  # a longer queue drops data that may not be trimmed
    depth: float = 5.0  # tail drop in the traffic manager, above all others
    control_depth: float = 1.0  # of the priority queue, in trimmed packets
    retransmit_priority: int = 0  # of MRC's retransmissions: 0 is data's queue, a higher one is a queue before it
    scale_with_rate: bool = False  # whether a port that a fault makes slower has shorter queues in proportion


@dataclass(frozen=True, slots=True)
class Trimming:
    """What switches leave of a data packet that finds its queue too long, instead of dropping it."""

    enabled: bool = True
    size_bytes: int = 128  # counted from the first Ethernet byte
    share: float = 0.25  # the most of a port's rate that trimmed packets may take


@dataclass(frozen=True, slots=True)
class Dscp:
    """DSCP (6 bits, RFC 2474) of each class of packets; no two are the same."""

    no_trim: int = 0
    trimmable: int = 10
    trimmable_retransmit: int = 12
    trimmed: int = 20
    trimmed_lasthop: int = 22
    control: int = 46
    roce: int = 26


@dataclass(frozen=True, slots=True)
class Pfc:
    """Priority-based flow control (IEEE 802.1Qbb) for the baseline's data: a sender is paused instead of dropping.

    `xoff` and `xon` are multiples of Plane_BDP, of bytes that came by one port and wait in the switch.
    """

    enabled: bool = False
    xoff: float = 2.0  # more of them pause the sender
    xon: float = 1.5  # no more than these let the sender go on
    quanta: int = 65_535  # of a pause, in 512 bit times; repeated at half of that
    watchdog_rtts: float = 100.0  # base round trips; a longer pause is counted


@lru_cache(maxsize=256)
def _leaf_spine(planes: int, leaves: int, spines: int, hosts_per_leaf: int) -> LeafSpine:
    return LeafSpine(planes, leaves, spines, hosts_per_leaf)


@dataclass(frozen=True, slots=True)
class Plan:
    """A fabric of `planes` separate networks, to each of which every host has one port.

    Without a `shape` each plane is a leaf-spine network of the four numbers. With one, the numbers are the shape's.
    """

    name: str
    planes: int
    leaves: int  # per plane
    spines: int  # per plane
    hosts_per_leaf: int
    description: str = ""
    switch: SwitchKind = "embedded"
    switch_overrides: Mapping[str, SwitchKind] = field(default_factory=lambda: MappingProxyType({}))
    encapsulation: Encapsulation = "srv6"
    usid_block: ipaddress.IPv6Network = field(default=ipaddress.IPv6Network("fcbb:bbbb::/32"))
    links: Links = field(default=Links())
    packets: Packets = field(default=Packets())
    queues: Queues = field(default=Queues())
    trimming: Trimming = field(default=Trimming())
    dscp: Dscp = field(default=Dscp())
    pfc: Pfc = field(default=Pfc())
    shape: Topology | None = None
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Names of nodes elsewhere, by name here: "p0l3" is "p0-leaf03". Either name may be given for the node."""

    # --- nodes ----------------------------------------------------------------------------------------------

    @property
    def topology(self) -> Topology:
        """Nodes, cables, and the ways between leaves."""
        if self.shape is not None:
            return self.shape
        return _leaf_spine(self.planes, self.leaves, self.spines, self.hosts_per_leaf)

    @property
    def host_count(self) -> int:
        """NICs, each with a port in every plane."""
        return self.topology.host_count

    @property
    def switch_count(self) -> int:
        """Switches of all planes."""
        return self.topology.switch_count

    def hosts(self) -> Iterator[Host]:
        """Every host, by index."""
        return (Host(index) for index in range(self.host_count))

    def switches(self) -> Iterator[Switch]:
        """Plane by plane, leaves before spines."""
        return self.topology.switches()

    def nodes(self) -> Iterator[Node]:
        """Hosts, then switches."""
        yield from self.hosts()
        yield from self.switches()

    def leaf_of(self, host: Host) -> int:
        """The index, in every plane, of the leaf that this host hangs on."""
        return self.topology.leaf_of(host)

    def downlink_of(self, host: Host) -> int:
        """Which of its leaf's hosts this is, from 0."""
        return self.topology.downlink_of(host)

    def host_at(self, leaf_index: int, downlink: int) -> Host:
        """The host at this place: the inverse of `leaf_of` and `downlink_of`."""
        return self.topology.host_at(leaf_index, downlink)

    def node(self, name: str) -> Node:
        """The node of this name; ValueError with the valid names when the plan has none such."""
        node = parse_node(self.own_names(name))
        if not self.topology.has(node):
            raise ValueError(f"plan {self.name!r} has no {name}: {shown(self.topology.lacks(node), self.names)}")
        return node

    def own_names(self, text: str) -> str:
        """A name or a target of a fault in which names from elsewhere are replaced: "p0-leaf03>p0-spine01"."""
        if not self.names:
            return text
        inverse = {name: own for own, name in self.names.items()}
        names = "|".join(map(re.escape, sorted(inverse, key=len, reverse=True)))
        return re.sub(rf"(?<![^->–])({names})(?=[->–.]|$)", lambda match: inverse[match[1]], text)

    def host(self, name: str) -> Host:
        """The host of this name; ValueError when it is none of the plan's hosts."""
        node = self.node(name)
        if not isinstance(node, Host):
            raise ValueError(f"{name} is a switch; the name must be a host: h0 to h{self.host_count - 1}")
        return node

    def switch_node(self, name: str) -> Switch:
        """The switch of this name; ValueError when it is none of the plan's switches."""
        node = self.node(name)
        if not isinstance(node, Switch):
            raise ValueError(f"{name} is a host; the name must be a switch, such as p0l0 or p0s0")
        return node

    def kind_of(self, switch: Switch) -> SwitchKind:
        """What emulates this switch."""
        return self.switch_overrides.get(switch.name, self.switch)

    # --- packets and time -------------------------------------------------------------------------------------

    @property
    def overhead_bytes(self) -> int:
        """IP bytes around the payload of the largest data packet."""
        outer = IPV6_HEADER_BYTES if self.encapsulation == "none" else 0
        return sum(OVERHEAD_BYTES.values()) - outer

    @property
    def frame_bytes_max(self) -> int:
        """The largest Ethernet frame on any link: what one packet of a threshold in packets stands for."""
        return ETHERNET_HEADER_BYTES + self.links.mtu_bytes

    def path_links(self, crossed: int) -> list[tuple[int, int]]:
        """(rate_bps, delay_ns) of the links of a path from NIC to NIC that crosses so many switches."""
        edge = (self.links.host_rate_bps, self.links.edge_delay_ns)
        core = (self.links.fabric_rate_bps, self.links.fabric_delay_ns)
        return [edge, *[core] * (crossed - 1), edge]

    @property
    def base_rtt_ns(self) -> int:
        """A full data packet on a longest path and its SACK back, through empty store-and-forward queues."""
        return self.path_rtt_ns(self.topology.longest_path_switches)

    def path_rtt_ns(self, crossed: int) -> int:
        """The base round trip of two hosts with so many switches between them."""
        return sum(
            (self.frame_bytes_max + ACK_FRAME_BYTES + 2 * self.links.wire_overhead_bytes) * 8_000_000_000 // rate_bps
            + 2 * delay_ns
            for rate_bps, delay_ns in self.path_links(crossed)
        )

    def delay_ns(self, crossed: int) -> int:
        """The propagation of all links from a host to another, one way, with so many switches between them."""
        return sum(delay_ns for _, delay_ns in self.path_links(crossed))

    @property
    def plane_bdp_bytes(self) -> int:
        """Plane_BDP: one host port's rate × the base round trip."""
        return self.links.host_rate_bps * self.base_rtt_ns // (8 * 1_000_000_000)

    def threshold_bytes(self, multiple: float) -> int:
        """A queue length given as a multiple of Plane_BDP, in bytes."""
        return round(multiple * self.plane_bdp_bytes)

    def threshold_packets(self, multiple: float, share: float = 1.0) -> int:
        """The same in full frames, as the P4 program and BMv2 count, at least one; `share` is that of `queue_share`."""
        return max(1, round(self.threshold_bytes(multiple * share) / self.frame_bytes_max))

    def queue_share(self, rate_bps: int, usual_bps: int) -> float:
        """The share of thresholds and buffers that a port keeps that runs at `rate_bps` instead of the plan's rate."""
        return min(1.0, rate_bps / usual_bps) if self.queues.scale_with_rate else 1.0

    @property
    def depth_packets(self) -> int:
        """Tail drop of a data queue."""
        return self.threshold_packets(self.queues.depth)

    @property
    def control_depth_packets(self) -> int:
        """Tail drop of the priority queue, whose packets are about as long as trimmed ones."""
        return max(16, self.threshold_bytes(self.queues.control_depth) // self.trimming.size_bytes)

    @property
    def pace(self) -> float:
        """Seconds here to a second of lab time: this plan's base round trip over that of the default `Links`.

        So what lasts a thousand round trips in lab time lasts a thousand round trips here.
        """
        lab = replace(self, links=replace(Links(), mtu_bytes=self.links.mtu_bytes))
        return self.base_rtt_ns / lab.base_rtt_ns

    @property
    def time_scale(self) -> float:
        """How many times slower a port of this fabric is than the hardware port for which it stands."""
        return self.links.hardware_rate_bps / self.links.host_rate_bps

    # --- other plans --------------------------------------------------------------------------------------------

    def single_plane(self) -> Plan:
        """The same switches and hosts with one plane at port rate × planes: what the RoCE baseline runs on.

        Packets carry no outer header and switches choose by ECMP. Delays and buffers in bytes per plane add up in
        the one plane because Plane_BDP is recomputed from the faster port.
        """
        links = replace(
            self.links,
            host_rate_bps=self.links.host_rate_bps * self.planes,
            fabric_rate_bps=self.links.fabric_rate_bps * self.planes,
            hardware_rate_bps=self.links.hardware_rate_bps * self.planes,
        )
        name = f"{self.name}-single-plane"
        try:
            shape = None if self.shape is None else self.shape.single_plane()
        except TopologyError as error:
            raise PlanError(f"plan {self.name!r}: {error}") from None
        overrides = {key: kind for key, kind in self.switch_overrides.items() if key.startswith("p0")}
        names = {key: name for key, name in self.names.items() if key.startswith(("p0", "h"))}
        return replace(
            self,
            name=name,
            planes=1,
            links=links,
            encapsulation="none",
            switch_overrides=MappingProxyType(overrides),
            shape=shape,
            names=MappingProxyType(names),
        )

    def with_pfc(self) -> Plan:
        """The same with priority-based flow control for the baseline's data."""
        return replace(self, pfc=replace(self.pfc, enabled=True))

    def at_rate(self, host_rate_bps: int) -> Plan:
        """The same fabric slower or faster: every rate and delay scaled alike, so that Plane_BDP stays."""
        links = self.links

        def slower(delay_ns: int) -> int:
            return delay_ns * links.host_rate_bps // host_rate_bps

        scaled = replace(
            links,
            host_rate_bps=host_rate_bps,
            fabric_rate_bps=links.fabric_rate_bps * host_rate_bps // links.host_rate_bps,
            host_delay_ns=slower(links.host_delay_ns),
            nic_latency_ns=slower(links.nic_latency_ns),
            fabric_delay_ns=slower(links.fabric_delay_ns),
        )
        return replace(self, links=scaled)


def rate_of(mbps: float) -> int:
    """The port rate of `--rate` in bit/s. ValueError for one out of its range."""
    if not RATE_MBPS_MIN <= mbps <= RATE_MBPS_MAX:
        raise ValueError(f"--rate must be between {RATE_MBPS_MIN} and {RATE_MBPS_MAX} Mb/s (got {mbps:.15g})")
    return round(mbps * 1e6)
