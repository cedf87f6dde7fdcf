"""Every entry of every switch as a pure function of the plan: what p4/README.md says a controller installs.

Ids that the P4 programs leave open are chosen here: a next hop's id is its port, an ECMP member's id its next hop, an
ECMP group's id the destination leaf's index + 1. Thresholds are in packets of the plan's largest frame.
"""

from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv6Network
from types import MappingProxyType

from controller.entries import DefaultEntry, Entity, GroupEntry, MeterEntry, SelectorGroup, SelectorMember, TableEntry
from p4c.entries import Exact, Lpm
from switch import MeterConfig
from topo import Host, Plan, Switch
from topo.address import (
    adjacency_usid,
    host_prefix,
    leaf_prefix,
    neighbour_usid,
    switch_address,
    switch_usid,
    usid_prefix,
)
from topo.graph import link_at, peer, ports, towards_host
from topo.plain_routes import live_ports, plain_route
from topo.plan import PRIORITY_CONTROL, PRIORITY_DATA, PRIORITY_LOSSLESS

__all__ = ["tables"]

# Traffic classes of the P4 programs (p4/README.md, "Classes").
NO_TRIM, TRIMMABLE, TRIMMABLE_RETRANSMIT, TRIMMED, TRIMMED_LAST_HOP, CONTROL, ROCE = range(7)
MRC_DATA = (NO_TRIM, TRIMMABLE, TRIMMABLE_RETRANSMIT)

PATIENCE_US_MIN = 10_000  # in real time; a descheduled switch process must not look like an empty queue
PATIENCE_US_MIN_VIRTUAL = 10
TRIMMED_BURST_PACKETS = 32
TIME_EXCEEDED = MeterConfig(10, 10, 10, 10)  # a second, and at once: RFC 4443, 2.4 (f), of a small or mid-size device
ECMP_PROFILE = "ecmp_selector"

NO_SHARES: Mapping[int, float] = MappingProxyType({})
DeadLinks = Collection[tuple[str, str]]
"""Pairs of switch names, in either order: links that routing (ECMP) must avoid."""


Shares = Mapping[int, float]
"""By port: what is left of its queues while it is slower (`Plan.queue_share`)."""


def tables(
    plan: Plan, switch: Switch, *, dead_links: DeadLinks = (), shares: Shares = NO_SHARES, virtual_time: bool = False
) -> list[Entity]:
    """All entries of one switch, in an order in which they can be written. Only plain routes heed `dead_links`, and
    only limits of queues `shares`."""
    return [
        *_classes(plan),
        DefaultEntry("hop_limit_exceeded", "send_time_exceeded", (int(switch_address(plan, switch)),)),
        MeterEntry("time_exceeded_meter", 0, TIME_EXCEEDED),
        *_next_hops(plan, switch),
        *(_segments(plan, switch) if plan.encapsulation == "srv6" else ()),
        *_routes(plan, switch, {frozenset(link) for link in dead_links}),
        *_queues(plan, switch, shares, PATIENCE_US_MIN_VIRTUAL if virtual_time else PATIENCE_US_MIN),
        *_ecn(plan, switch, shares),
        *_trimming(plan, switch, shares),
    ]


def _prefix(field: str, network: IPv6Network) -> tuple[tuple[str, Lpm], ...]:
    return ((field, Lpm(int(network.network_address), network.prefixlen)),)


def _classes(plan: Plan) -> Iterator[Entity]:
    dscp = plan.dscp
    for value, traffic_class, priority in (
        (dscp.no_trim, NO_TRIM, PRIORITY_DATA),
        (dscp.trimmable, TRIMMABLE, PRIORITY_DATA),
        (dscp.trimmable_retransmit, TRIMMABLE_RETRANSMIT, plan.queues.retransmit_priority),
        (dscp.trimmed, TRIMMED, PRIORITY_CONTROL),
        (dscp.trimmed_lasthop, TRIMMED_LAST_HOP, PRIORITY_CONTROL),
        (dscp.control, CONTROL, PRIORITY_CONTROL),
        (dscp.roce, ROCE, PRIORITY_LOSSLESS if plan.pfc.enabled else PRIORITY_DATA),
    ):
        yield TableEntry("dscp_to_class", (("dscp", Exact(value)),), "set_class", (traffic_class, priority))


def _mac(text: str) -> int:
    return int(text.replace(":", ""), 16)


def _next_hops(plan: Plan, switch: Switch) -> Iterator[Entity]:
    for ref in ports(plan, switch):
        adjacency = (ref.port, _mac(ref.mac), _mac(peer(plan, ref).mac))
        yield TableEntry("next_hop", (("next_hop", Exact(ref.port)),), "set_adjacency", adjacency)


def _segments(plan: Plan, switch: Switch) -> Iterator[Entity]:
    """The switch's own uSIDs, routes to its neighbours' uSIDs, and the entry that drops and counts all other uSIDs."""
    own = switch_usid(switch)
    yield TableEntry("my_sid", _prefix("dst_addr", usid_prefix(plan, own)), "end_un")
    for ref in ports(plan, switch):
        adjacency = adjacency_usid(ref.port)
        yield TableEntry("my_sid", _prefix("dst_addr", usid_prefix(plan, adjacency)), "end_ua", (ref.port,))
        yield TableEntry("my_sid", _prefix("dst_addr", usid_prefix(plan, own, adjacency)), "end_un_ua", (ref.port,))
        usid = neighbour_usid(plan, peer(plan, ref).node)
        yield TableEntry("ipv6_route", _prefix("dst_addr", usid_prefix(plan, usid)), "set_next_hop", (ref.port,))
    yield TableEntry("ipv6_route", _prefix("dst_addr", plan.usid_block), "drop_unknown_usid")


def _routes(plan: Plan, switch: Switch, dead: Collection[frozenset[str]]) -> Iterator[Entity]:
    """Plain IPv6 routes: to the hosts here, and to every other leaf by its one port down or by ECMP over live links."""
    for ref in ports(plan, switch):
        host = peer(plan, ref).node
        if isinstance(host, Host):
            yield TableEntry("ipv6_route", _prefix("dst_addr", host_prefix(plan, host)), "set_next_hop", (ref.port,))
    ways = {index: plain_route(plan, switch, index) for index in range(plan.leaves)}
    for port in sorted({port for route in ways.values() if route.ecmp for port in route.ports}):
        yield SelectorMember(ECMP_PROFILE, port, "set_next_hop", (port,))
    for index, route in ways.items():
        alive = live_ports(plan, switch, index, dead)
        prefix = _prefix("dst_addr", leaf_prefix(index))
        if route.ecmp:
            group_id = index + 1
            yield SelectorGroup(ECMP_PROFILE, group_id, alive, max_size=len(route.ports))
            yield GroupEntry("ecmp", (("ecmp_group", Exact(group_id)),), group_id)
            yield TableEntry("ipv6_route", prefix, "set_ecmp_group", (group_id, _hash_shift(switch)))
        elif alive:
            yield TableEntry("ipv6_route", prefix, "set_next_hop", alive)


def _hash_shift(switch: Switch) -> int:
    """How many low bits of the hash a switch leaves out. The second switch on a way must not repeat the first's choice.

    Eight bits for groups of up to 256 at a leaf; neighbours above differ as well.
    """
    return 0 if switch.role == "leaf" else 8 + switch.index % 8


def _queues(plan: Plan, switch: Switch, shares: Shares, patience_us_min: int) -> Iterator[Entity]:
    for ref in ports(plan, switch):
        share = shares.get(ref.port, 1.0)
        drop_packets = plan.threshold_packets(plan.queues.no_trim_drop, share)
        drain_us = int(drop_packets * plan.frame_bytes_max * 8_000_000 // (share * link_at(plan, ref).rate_bps))
        patience_us = max(patience_us_min, drain_us)
        trim = plan.queues.trim_lasthop if towards_host(plan, ref) else plan.queues.trim
        trim_packets = plan.threshold_packets(trim, share)
        for traffic_class in MRC_DATA if plan.pfc.enabled else (*MRC_DATA, ROCE):  # what is lossless is paused
            trims = plan.trimming.enabled and traffic_class in (TRIMMABLE, TRIMMABLE_RETRANSMIT)
            yield TableEntry(
                "queue_limit",
                (("egress_port", Exact(ref.port)), ("traffic_class", Exact(traffic_class))),
                "trim_beyond" if trims else "drop_beyond",
                (trim_packets if trims else drop_packets, patience_us),
            )


def _ecn(plan: Plan, switch: Switch, shares: Shares) -> Iterator[Entity]:
    """ECN marking: of the baseline's class on every port, of MRC's classes on every port but those towards hosts."""
    limits = plan.queues.ecn_min, plan.queues.ecn_max
    for ref in ports(plan, switch):
        share = shares.get(ref.port, 1.0)
        low, high = (plan.threshold_packets(limit, share) for limit in limits)
        for traffic_class in (ROCE,) if towards_host(plan, ref) else (*MRC_DATA, ROCE):
            yield TableEntry(
                "ecn_profile",
                (("egress_port", Exact(ref.port)), ("traffic_class", Exact(traffic_class))),
                "mark_between",
                (low, high),
            )


def _trimming(plan: Plan, switch: Switch, shares: Shares) -> Iterator[Entity]:
    size = plan.trimming.size_bytes
    yield DefaultEntry("trim_profile", "trim_to", (size, plan.dscp.trimmed, PRIORITY_CONTROL))
    for ref in ports(plan, switch):
        share = plan.trimming.share * shares.get(ref.port, 1.0)
        rate_pps = max(1, round(share * link_at(plan, ref).rate_bps / (8 * size)))
        config = MeterConfig(rate_pps, TRIMMED_BURST_PACKETS, rate_pps, TRIMMED_BURST_PACKETS)
        yield MeterEntry("trimmed_meter", ref.port, config)
        if towards_host(plan, ref):
            match = (("egress_port", Exact(ref.port)),)
            yield TableEntry("host_facing", match, "mark_last_hop", (plan.dscp.trimmed_lasthop,))
