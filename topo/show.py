"""A plan and its paths in words: what `topo show` and `topo paths` print."""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from common.terminal.counted import counted
from topo.count import THREE_TIER_NICS, THREE_TIER_OPTICS, THREE_TIER_SWITCHES, PartCount, count_parts
from topo.fault import Condition, Fault, arrival, conditions
from topo.node import ROLES, Host, Switch, SwitchRole
from topo.path import Path, hops, path_da, path_of_ev, paths
from topo.plan import Plan

__all__ = ["add_format", "duration", "rate", "show_paths", "switch_kinds", "switch_words"]


def add_format(parser: argparse.ArgumentParser) -> None:
    """`--format`, for a word that prints for people or for programs."""
    parser.add_argument("--format", choices=("text", "json"), default="text")


def rate(bps: float) -> str:
    """Bits a second for people."""
    for unit, size in (("Pb/s", 1e15), ("Tb/s", 1e12), ("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.4g} {unit}"
    return f"{bps:g} b/s"


def duration(ns: int) -> str:
    """Nanoseconds for people."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"


def switch_kinds(plan: Plan) -> str:
    """The kind of all switches, or how many there are of each: "embedded", "11 embedded and 1 linux"."""
    counts = Counter(plan.kind_of(switch) for switch in plan.switches()) if plan.switch_overrides else {plan.switch: 1}
    if len(counts) == 1:
        return next(iter(counts))
    return " and ".join(f"{count} {kind}" for kind, count in counts.items())


def switch_words(plan: Plan) -> str:
    """ "12 embedded switches", or "12 switches (11 embedded and 1 linux)"."""
    kinds = switch_kinds(plan)
    mixed = " " in kinds
    return f"{plan.switch_count} switches ({kinds})" if mixed else f"{plan.switch_count} {kinds} switches"


def show_plan(plan: Plan) -> str:
    """What `topo show` prints: parts, times, queues, MTU arithmetic, and the three-tier network beside them."""
    count = count_parts(plan)
    links, queues = plan.links, plan.queues
    rows = [
        ("plan", f"{plan.name}: {plan.description}" if plan.description else plan.name),
        ("switches", f"{count.switches:,}: {_tiers(plan, count)}, {_planes(plan)}; {plan.switch}{_overrides(plan)}"),
        ("hosts", f"{count.nics:,}, {_hosts(plan)} per leaf; NIC {plan.planes} × {rate(links.host_rate_bps)}"),
        ("links", f"{count.links_edge:,} NIC–T0 of {rate(links.host_rate_bps)} and {duration(links.edge_delay_ns)};"
                  f" {count.links_fabric:,} {_above(plan)} of {_fabric_rate(plan)} and"
                  f" {duration(links.fabric_delay_ns)}"),
        ("optics", f"{count.optics:,.0f} of {rate(count.nic_rate_bps)}"),
        ("paths", f"{count.paths_across} between hosts of different leaves, {count.paths_same_leaf} under one leaf"),
        ("bisection", f"{_bisection(count)}, oversubscription {count.oversubscription:.4g}:1"),
        ("tiers", f"{count.tiers}; longest path {count.longest_path_switches} switches;"
                  f" {count.nics_in_one_hop} NICs in one hop"),
        ("losing a link", f"{'T0–T1' if count.spines else 'T0–T0'}: {count.fabric_link_loss_share:.1%} of a leaf's"
                          " uplinks in one plane;"
                          f" NIC–T0: {count.nic_port_loss_share:.1%} of a NIC"),
        ("time", f"base RTT {duration(plan.base_rtt_ns)}, Plane_BDP {plan.plane_bdp_bytes:,} bytes;"
                 f" {_time_scale(plan)}"),
        ("queues", f"in full frames of {plan.frame_bytes_max}: ECN {plan.threshold_packets(queues.ecn_min)} to"
                   f" {plan.threshold_packets(queues.ecn_max)}, trim {plan.threshold_packets(queues.trim)}"
                   f" (last hop {plan.threshold_packets(queues.trim_lasthop)}), no-trim drop"
                   f" {plan.threshold_packets(queues.no_trim_drop)}, depth {plan.depth_packets}"
                   f"{_retransmissions(plan)}"),
        ("MTU", f"{links.mtu_bytes} = payload {plan.packets.pmtu_bytes} + headers {plan.overhead_bytes}"
                f" + {links.mtu_bytes - plan.packets.pmtu_bytes - plan.overhead_bytes} to spare"),
    ]  # fmt: skip
    return "\n".join([*_aligned(rows), "", *_comparison(plan, count)])


def _retransmissions(plan: Plan) -> str:
    priority = plan.queues.retransmit_priority
    return f"; retransmissions in a queue of priority {priority}" if priority else ""


def _time_scale(plan: Plan) -> str:
    hardware = rate(plan.links.hardware_rate_bps)
    if plan.time_scale == 1:
        return f"at the hardware's own {hardware}"
    return f"time runs {plan.time_scale:,.6g} times slower than at {hardware}"


def _above(plan: Plan) -> str:
    """The place of links between switches."""
    return "T0–T1" if plan.shape is None else "between switches"


def _fabric_rate(plan: Plan) -> str:
    """The rate of links between switches: "10 Mb/s", or "5 Mb/s to 10 Mb/s"."""
    usual = plan.links.fabric_rate_bps
    speeds = {1.0} if plan.shape is None else {c.speed for c in plan.topology.cables() if isinstance(c.lower, Switch)}
    return " to ".join(rate(usual * speed) for speed in sorted({min(speeds), max(speeds)}))


def _tiers(plan: Plan, count: PartCount) -> str:
    """ "16 T0 of 6 ports, 16 T1 of 4 ports"; "up to" where the switches of a tier differ."""
    most = (count.leaf_ports, count.spine_ports, count.core_ports)
    numbers = (count.leaves, count.spines, count.cores)
    ports: dict[SwitchRole, set[int]] = {role: set() for role in ROLES}
    for switch in plan.switches() if plan.shape is not None else ():
        ports[switch.role].add(plan.topology.port_count(switch))
    return ", ".join(
        f"{number:,} T{tier} of {'up to ' if len(ports[role]) > 1 else ''}{ports_max} ports"
        for tier, (role, number, ports_max) in enumerate(zip(ROLES, numbers, most, strict=True))
        if number
    )


def _bisection(count: PartCount) -> str:
    return "unknown where a tier is wired to itself" if count.bisection_bps is None else rate(count.bisection_bps)


def _hosts(plan: Plan) -> str:
    least = min(plan.topology.hosts_under(index) for index in range(plan.leaves))
    return f"{plan.hosts_per_leaf}" if least == plan.hosts_per_leaf else f"{least} to {plan.hosts_per_leaf}"


def _planes(plan: Plan) -> str:
    """The planes, and the shape beyond two even tiers."""
    return counted(plan.planes, "plane") if plan.shape is None else plan.topology.describe()


def _overrides(plan: Plan) -> str:
    return "".join(f", {name} {kind}" for name, kind in plan.switch_overrides.items())


def _comparison(plan: Plan, count: PartCount) -> list[str]:
    return [
        f"{'per NIC':14}{plan.name:>14}{'three tiers':>14}   ratio",
        f"{'switches':14}{count.switches_per_nic:14.6f}{THREE_TIER_SWITCHES / THREE_TIER_NICS:14.6f}"
        f"   {_ratio(count.switch_ratio)}",
        f"{'optics':14}{count.optics_per_nic:14.3f}{THREE_TIER_OPTICS / THREE_TIER_NICS:14.3f}"
        f"   {_ratio(count.optic_ratio)}",
        f"{'longest path':14}{count.longest_path_switches:14}{5:14}   switches",
        f"Three tiers: one plane of 64-port switches at the NIC's full rate ends at {THREE_TIER_NICS:,} NICs and"
        f" {THREE_TIER_SWITCHES:,} switches.",
        "An optic is a transceiver of a NIC's full rate; it breaks out into one link per plane.",
    ]


def _ratio(value: float) -> str:
    fraction = Fraction(value).limit_denominator(100)
    exact = abs(float(fraction) - value) < 1e-9
    return f"{value:.3f}" + (f" = {fraction}" if exact and fraction.denominator > 1 else "")


def _aligned(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name:14}{text}" for name, text in rows]


def chosen_paths(plan: Plan, source: Host, destination: Host, ev: int | None = None) -> list[Path]:
    """All paths of a pair of hosts, or the one of an EV. Raises ValueError for an EV that the pair does not have."""
    return list(paths(plan, source, destination)) if ev is None else [path_of_ev(plan, source, destination, ev)]


def show_paths(plan: Plan, chosen: list[Path], faults: Sequence[Fault] = ()) -> str:
    """One line per path; each switch with the port the packet leaves by and the destination it leaves with.

    Each of the faults in force stands where packets meet it, up to the place that no packet survives.
    """
    lines = []
    for path in chosen:
        via = path.via or "(same leaf)"
        met = conditions(plan, faults, path)
        lines.append(f"EV {path.ev:#010x}  plane {path.plane}  {via:12} {path_da(plan, path)}{_outcome(met)}")
        here = f"{path.source}>"
        lines += _met(met, here)
        for hop in hops(plan, path) if not _ended(met, here) else ():
            lines += _met(met, hop.switch.name, exactly=True)
            if _ended(met, hop.switch.name, exactly=True):
                break
            lines.append(
                f"    {hop.switch.name:8} in {hop.port_in:<3} takes {hop.usid:04x}, out {hop.port_out:<3} {hop.da_out}"
            )
            here = f"{hop.switch.name}>"
            lines += _met(met, here)
            if _ended(met, here):
                break
        if arrival(met):
            lines.append(f"    {path.destination.name:8} in {path.plane + 1:<3} decapsulates")
    return "\n".join(lines)


def _outcome(met: Sequence[Condition]) -> str:
    share = arrival(met)
    return "" if share == 1 else f"  LOSES {1 - share:.3g}" if share else "  DEAD"


def _at(met: Sequence[Condition], place: str, exactly: bool) -> list[Condition]:
    return [c for c in met if c.place == place or (not exactly and c.place.startswith(place))]


def _met(met: Sequence[Condition], place: str, exactly: bool = False) -> list[str]:
    return [f"    {'✗' if c.ends else '!'} {c}" for c in _at(met, place, exactly)]


def _ended(met: Sequence[Condition], place: str, exactly: bool = False) -> bool:
    return any(c.ends for c in _at(met, place, exactly))


def paths_json(plan: Plan, chosen: list[Path], faults: Sequence[Fault] = ()) -> list[dict[str, Any]]:
    """What `topo paths --format json` prints: each path hop by hop, addresses and uSIDs as text.

    `conditions` are the faults on its way; `arrival` is the share of packets that gets through them.
    """
    return [
        {
            "source": path.source.name,
            "destination": path.destination.name,
            "ev": path.ev,
            "plane": path.plane,
            "port": path.port,
            "via": path.via,
            "da": str(path_da(plan, path)),
            "arrival": arrival(conditions(plan, faults, path)),
            "conditions": [condition.as_json() for condition in conditions(plan, faults, path)],
            "hops": [
                {
                    "switch": hop.switch.name,
                    "port_in": hop.port_in,
                    "port_out": hop.port_out,
                    "usid": f"{hop.usid:04x}",
                    "da_in": str(hop.da_in),
                    "da_out": str(hop.da_out),
                }
                for hop in hops(plan, path)
            ],
        }
        for path in chosen
    ]
