"""A switch of the plan as another router: FRR's configuration, and SONiC's CONFIG_DB.

FRR: zebra's locator, staticd's SID (10.3 or newer) and static routes. SONiC: static SRv6 (srv6_static_config_hld),
routes and packet trimming.
"""

import json
from dataclasses import dataclass
from ipaddress import IPv6Network
from typing import Any

from topo import Host, Plan, Switch
from topo.address import host_prefix, leaf_prefix, neighbour_usid, switch_usid, usid_prefix
from topo.graph import PortRef, peer, ports
from topo.plain_routes import plain_route
from topo.plan import PRIORITY_CONTROL

NEXT_HOP = "fe80::1"  # every interface's peer in the lab (topo/emulation/wiring.py); other gear has its own
SID_DEVICE = "sr0"  # staticd of FRR 10.3 installs SIDs on this device, and on no other
LANES = 4  # of a port: SONiC numbers the first one of each


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """A static route out of one or, by ECMP, several ports."""

    prefix: IPv6Network
    out: tuple[PortRef, ...]


def own_usid(plan: Plan, switch: Switch) -> IPv6Network:
    """The uN of a switch: /48 in F3216."""
    return usid_prefix(plan, switch_usid(switch))


def routes(plan: Plan, switch: Switch) -> list[StaticRoute]:
    """The static table without uA: neighbours' uSIDs, then plain prefixes of hosts and leaves."""
    table = []
    for ref in ports(plan, switch) if plan.encapsulation == "srv6" else ():
        table.append(StaticRoute(usid_prefix(plan, neighbour_usid(plan, peer(plan, ref).node)), (ref,)))
    for ref in ports(plan, switch):
        if isinstance(host := peer(plan, ref).node, Host):
            table.append(StaticRoute(host_prefix(plan, host), (ref,)))
    for index in range(plan.leaves):
        out = tuple(PortRef(switch, port) for port in plain_route(plan, switch, index).ports)
        table += [StaticRoute(leaf_prefix(index), out)] if out else []
    return table


def frr(plan: Plan, switch: Switch) -> str:
    """The text of `frr.conf`."""
    lines = [
        f"! {switch} of plan {plan.name}: interfaces are the lab's, next hops are its {NEXT_HOP}",
        "frr defaults datacenter",
        f"hostname {switch}",
        "!",
    ]
    for route in routes(plan, switch):
        lines += [f"ipv6 route {route.prefix} {NEXT_HOP} {ref.interface}" for ref in route.out]
    if plan.encapsulation == "srv6":
        own = own_usid(plan, switch)
        lines += [
            "!",
            f"! ip link add {SID_DEVICE} type dummy && ip link set {SID_DEVICE} up: without it no SID is installed",
            "segment-routing",
            " srv6",
            "  locators",
            "   locator MAIN",
            f"    prefix {own} block-len 32 node-len 16 func-bits 16",
            "    behavior usid",
            "   exit",
            "  exit",
            "  static-sids",
            f"   sid {own} locator MAIN behavior uN",
            "  exit",
            " exit",
            "exit",
        ]
    return "\n".join([*lines, "!"]) + "\n"


def port_name(ref: PortRef) -> str:
    """Ethernet0, Ethernet4, …: ports of four lanes."""
    return f"Ethernet{(ref.port - 1) * LANES}"


def sonic(plan: Plan, switch: Switch) -> str:
    """The text of a partial `config_db.json`, for `config load`."""
    document: dict[str, Any] = {
        "DEVICE_METADATA": {"localhost": {"hostname": switch.name}},
        "STATIC_ROUTE": {
            f"default|{route.prefix}": {
                "nexthop": ",".join(NEXT_HOP for _ in route.out),
                "ifname": ",".join(port_name(ref) for ref in route.out),
            }
            for route in routes(plan, switch)
        },
    }
    if plan.encapsulation == "srv6":
        own = own_usid(plan, switch)
        lengths = {"block_len": "32", "node_len": "16", "func_len": "16", "arg_len": "0"}
        document["SRV6_MY_LOCATORS"] = {"MAIN": {"prefix": str(own.network_address), **lengths, "vrf": "default"}}
        document["SRV6_MY_SIDS"] = {f"MAIN|{own}": {"action": "uN", "decap_dscp_mode": "pipe"}}
    if plan.trimming.enabled:
        document["SWITCH_TRIMMING"] = {
            "GLOBAL": {
                "size": str(plan.trimming.size_bytes),
                "dscp_value": str(plan.dscp.trimmed),
                "queue_index": str(PRIORITY_CONTROL),
            }
        }
    return json.dumps(document, indent=2) + "\n"
