"""NIC profiles: all that an endpoint needs to know of the fabric, one JSON object a host (docs/contracts.md)."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from common import files
from topo.address import host_address, nic_usid, port_address, switch_usid, usid_address
from topo.graph import PortRef, peer
from topo.node import Host
from topo.path import EV_BASE, crossed, evs, probe_there_and_back, probe_ways
from topo.pfc import classes
from topo.plan import BASELINE_EVS, Plan

__all__ = ["PathTemplate", "nic_profile", "pair_rtt_ns", "path_templates", "probe_rows"]

PROFILE_VERSION = 1


def nic_profile(
    plan: Plan, host: Host, *, jitter_ns: int = 0, destinations: Iterable[Host] | None = None, with_probes: bool = True
) -> dict[str, Any]:
    """`jitter_ns`: how late a process may be scheduled in the world that the profile is for; none in virtual time.

    `destinations` are all other hosts, or those given. Without `with_probes` the list of self-probes is empty.
    """
    others = plan.hosts() if destinations is None else destinations
    return {
        "version": PROFILE_VERSION,
        "plan": plan.name,
        "host": host.name,
        "index": host.index,
        "address": str(host_address(plan, host)),
        "usid_block": str(plan.usid_block),
        "mtu": plan.links.mtu_bytes,
        "pmtu": plan.packets.pmtu_bytes,
        "udp_port": plan.packets.udp_port,
        "base_rtt_ns": plan.base_rtt_ns,
        "jitter_ns": jitter_ns,
        "plane_bdp_bytes": plan.plane_bdp_bytes,
        "time_scale": plan.time_scale,
        "dscp": asdict(plan.dscp),
        "retransmit_priority": plan.queues.retransmit_priority,
        "pfc_classes": classes(plan),
        "trimming": plan.trimming.enabled,
        "encapsulation": plan.encapsulation,
        "ports": [_port(plan, host, plane) for plane in range(plan.planes)],
        "self_probes": probe_rows(plan, host) if with_probes else [],
        "destinations": {other.name: _destination(plan, host, other) for other in others if other != host},
    }


def write_profile(plan: Plan, host: Host, path: Path, *, jitter_ns: int = 0) -> None:
    """One host's profile as a JSON file."""
    files.write_json(path, nic_profile(plan, host, jitter_ns=jitter_ns))


def _port(plan: Plan, host: Host, plane: int) -> dict[str, Any]:
    ref = PortRef(host, plane + 1)
    return {
        "port": ref.port,
        "plane": plane,
        "interface": ref.interface,
        "mac": ref.mac,
        "gateway_mac": peer(plan, ref).mac,
        "address": str(port_address(plan, host, plane)),
        "usid_address": str(usid_address(plan, [nic_usid(plan.downlink_of(host))])),
        "rate_bps": plan.links.host_rate_bps,
        "delay_ns": plan.links.edge_delay_ns,
        "overhead_bytes": plan.links.wire_overhead_bytes,
    }


def probe_rows(plan: Plan, host: Host) -> list[dict[str, Any]]:
    """Every self-probe of a host, as in the profile; none without SRv6, which takes them there and back."""
    probes = []
    for plane in range(plan.planes) if plan.encapsulation == "srv6" else ():
        for way in probe_ways(plan, host, plane):
            port, da = probe_there_and_back(plan, host, way)
            behind = {"behind": way[1].name} if len(way) > 2 else {}
            probes.append({"target": way[-1].name, "port": port, **behind, "da": str(da)})
    return probes


def _destination(plan: Plan, host: Host, other: Host) -> dict[str, Any]:
    return {
        "index": other.index,
        "address": str(host_address(plan, other)),
        "base_rtt_ns": pair_rtt_ns(plan, host, other),
        "paths": path_rows(plan, host, other),
    }


def pair_rtt_ns(plan: Plan, host: Host, other: Host) -> int:
    """The base round trip of two hosts."""
    return plan.path_rtt_ns(crossed(plan, host, other))


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """A path from the hosts of one leaf to those of another, but for the last uSID, which names the NIC.

    The destination address is `prefix | nic << shift`; without a `shift` it is `prefix`, the baseline's.
    """

    ev: int
    port: int
    plane: int
    via: str | None
    prefix: int
    shift: int | None

    def address(self, nic: int) -> IPv6Address:
        """The outer destination of packets to the NIC with this uSID."""
        return IPv6Address(self.prefix if self.shift is None else self.prefix | nic << self.shift)


def path_templates(plan: Plan, host: Host, other: Host) -> tuple[PathTemplate, ...]:
    """The templates of a pair's paths, in the order of `path_rows`: the same for all hosts under the same two leaves,
    but where switches choose by ECMP: there each receiver has its own, and an EV is a number that they hash.
    """
    if plan.encapsulation == "none":
        address = int(IPv6Address(host_address(plan, other)))
        return tuple(
            PathTemplate(plane << 16 | EV_BASE + seed, plane + 1, plane, None, address, None)
            for plane in range(plan.planes)
            for seed in range(BASELINE_EVS)
        )
    templates = []
    for ev, path in evs(plan, host, other):
        prefix = int(usid_address(plan, [switch_usid(switch) for switch in path.switches]))
        shift = 80 - 16 * len(path.switches)
        templates.append(PathTemplate(ev, path.port, path.plane, path.via, prefix, shift))
    return tuple(templates)


def path_rows(plan: Plan, host: Host, other: Host) -> list[dict[str, Any]]:
    """Every path from a host to another, as in the profile."""
    nic = nic_usid(plan.downlink_of(other))
    return [
        {"ev": path.ev, "port": path.port, "plane": path.plane, "via": path.via, "da": str(path.address(nic))}
        for path in path_templates(plan, host, other)
    ]
