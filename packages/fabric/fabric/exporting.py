"""A plan as files of other gear: a containerlab topology, and configurations of FRR, SONiC, Cumulus (NVUE) or EOS.

Names are those of the plan's source. uSIDs are the lab's: a switch consumes its uN and routes the next uSID, which is a
neighbour's or, at a leaf, a NIC's. FRR and SONiC files can be imported again.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Network
from typing import Any

from fabric.shape import role_of_node
from topo import Host, Node, Plan, Switch
from topo.address import neighbour_usid, switch_usid, usid_prefix
from topo.graph import PortRef, link_at, links, peer, ports
from topo.plan import PRIORITY_CONTROL

NEXT_HOP = "fe80::1"
"""Every neighbour's, as in the lab; other gear has addresses that `show ipv6 neighbors` tells."""
LANES = 8
MBPS = 1_000_000


@dataclass(frozen=True, slots=True)
class ExportForm:
    """A form: the name of its file per switch, the function that writes it, its names of ports, its containerlab kind,
    and how far it was tried."""

    file: str
    write: Callable[[Plan, Switch], str]
    port: Callable[[PortRef], str]
    kind: str
    tried: str


def source_name(plan: Plan, node: Node) -> str:
    """The name of a node in the plan's source; its own where there is none."""
    return plan.names.get(node.name, node.name)


def export(plan: Plan, form: str) -> Iterator[tuple[str, str]]:
    """Every file of a form: its name and its text."""
    chosen = FORMS[form]
    yield "topology.clab.yml", topology(plan, chosen)
    for switch in plan.switches():
        yield f"config/{source_name(plan, switch)}/{chosen.file}", chosen.write(plan, switch)


def topology(plan: Plan, form: ExportForm) -> str:
    """The containerlab topology."""
    lines = [f"# {form.tried}", f"name: {json.dumps(plan.name)}", "topology:", "  nodes:"]
    for node in plan.nodes():
        kind = "linux" if isinstance(node, Host) else form.kind
        lines.append(f"    {source_name(plan, node)}: {{kind: {kind}, labels: {{role: {role_of_node(node)}}}}}")
    lines.append("  links:")
    for link in links(plan):
        ends = (f'"{source_name(plan, end.node)}:eth{end.port}"' for end in (link.a, link.b))
        lines.append(f"    - endpoints: [{', '.join(ends)}]")
    return "\n".join(lines) + "\n"


def own_prefix(plan: Plan, switch: Switch) -> IPv6Network:
    """The locator of a switch, and its uN."""
    return usid_prefix(plan, switch_usid(switch))


def next_usids(plan: Plan, switch: Switch) -> list[tuple[IPv6Network, PortRef]]:
    """The uSIDs that a switch routes, with the port of each."""
    return [(usid_prefix(plan, neighbour_usid(plan, peer(plan, ref).node)), ref) for ref in ports(plan, switch)]


def eth(ref: PortRef) -> str:
    """containerlab's name of a port."""
    return f"eth{ref.port}"


def frr(plan: Plan, switch: Switch) -> str:
    """`frr.conf`."""
    own = own_prefix(plan, switch)
    lines = ["frr defaults datacenter", f"hostname {source_name(plan, switch)}", "!"]
    for ref in ports(plan, switch):
        far = peer(plan, ref)
        lines += [f"interface {eth(ref)}", f" description {source_name(plan, far.node)}:{eth(far)}", "exit", "!"]
    lines += [f"ipv6 route {prefix} {NEXT_HOP} {eth(ref)}" for prefix, ref in next_usids(plan, switch)]
    lines += ["!", "segment-routing", " srv6", "  locators", "   locator MAIN"]
    lines += [f"    prefix {own} block-len 32 node-len 16 func-bits 16", "    behavior usid", "   exit", "  exit"]
    lines += ["  static-sids", f"   sid {own} locator MAIN behavior uN", "  exit", " exit", "exit", "!"]
    return "\n".join(lines) + "\n"


def ethernet(ref: PortRef) -> str:
    """SONiC's name of a port of eight lanes."""
    return f"Ethernet{(ref.port - 1) * LANES}"


def speed_mbps(plan: Plan, ref: PortRef) -> int:
    """The speed of the hardware that a port is for."""
    return round(link_at(plan, ref).rate_bps * plan.links.hardware_rate_bps / plan.links.host_rate_bps / MBPS)


def sonic(plan: Plan, switch: Switch) -> str:
    """A partial `config_db.json`."""
    own = own_prefix(plan, switch)
    mtu = str(plan.links.mtu_bytes)
    document: dict[str, Any] = {
        "DEVICE_METADATA": {"localhost": {"hostname": source_name(plan, switch)}},
        "PORT": {
            ethernet(ref): {"speed": str(speed_mbps(plan, ref)), "mtu": mtu, "admin_status": "up"}
            for ref in ports(plan, switch)
        },
        "SRV6_MY_LOCATORS": {"MAIN": {"prefix": str(own.network_address)}},
        "SRV6_MY_SIDS": {f"MAIN|{own}": {"action": "uN", "decap_dscp_mode": "pipe"}},
        "STATIC_ROUTE": {
            f"default|{prefix}": {"nexthop": NEXT_HOP, "ifname": ethernet(ref)}
            for prefix, ref in next_usids(plan, switch)
        },
    }
    if plan.trimming.enabled:
        size, dscp = str(plan.trimming.size_bytes), str(plan.dscp.trimmed)
        document["SWITCH_TRIMMING"] = {
            "GLOBAL": {"size": size, "dscp_value": dscp, "queue_index": str(PRIORITY_CONTROL)}
        }
    return json.dumps(document, indent=1) + "\n"


def swp(ref: PortRef) -> str:
    """Cumulus's name of a port."""
    return f"swp{ref.port}"


def cumulus(plan: Plan, switch: Switch) -> str:
    """`nv set` commands, for Cumulus Linux 5.14 or newer on Spectrum-4 or newer."""
    own = own_prefix(plan, switch)
    locator, sid = "nv set router segment-routing srv6 locator MAIN", "nv set router segment-routing static srv6-sid"
    lines = [
        f"# {source_name(plan, switch)}: written by NVIDIA's documentation of NVUE; not run",
        "nv set router segment-routing srv6 state enabled",
        f"{locator} prefix {own}",
        f"{locator} block-length 32",
        f"{locator} node-length 16",
        f"{locator} func-length 0",
        f"{sid} {own} locator-name MAIN",
        f"{sid} {own} behavior uN",
    ]
    for prefix, ref in next_usids(plan, switch):
        lines.append(f"nv set interface {swp(ref)} link mtu {plan.links.mtu_bytes}")
        lines.append(f"nv set vrf default router static {prefix} address-family ipv6-unicast")
        lines.append(f"nv set vrf default router static {prefix} via {swp(ref)}")
    return "\n".join([*lines, "nv config apply"]) + "\n"


def ethernet_of_eos(ref: PortRef) -> str:
    """EOS's name of a port."""
    return f"Ethernet{ref.port}"


def eos(plan: Plan, switch: Switch) -> str:
    """`startup-config` of ports, static routes and the switch's uN as the first node of a locator.

    The block `router srv6` follows the configurations of switches that MRC-Client publishes (github.com/anichol67/
    MRC-Client, 986ded2, `configs/`).
    """
    name, own = source_name(plan, switch), own_prefix(plan, switch)
    block, usid = own.supernet(16), int(own.network_address) >> 128 - own.prefixlen & 0xFFFF
    lines = [f"! {name}: not run", f"hostname {name}", "!", "ipv6 unicast-routing", "!"]
    for ref in ports(plan, switch):
        far = peer(plan, ref)
        lines += [f"interface {ethernet_of_eos(ref)}", f"   description {source_name(plan, far.node)}:{eth(far)}"]
        lines += [f"   mtu {plan.links.mtu_bytes}", "   no switchport", "   ipv6 enable", "!"]
    lines += ["router srv6", "   vrf default", "      micro-segment domain MRC", f"         block {block}", "      !"]
    lines += ["      locator LOC1", f"         prefix micro-segment domain MRC end usid {usid:#x}", "!"]
    lines += [f"ipv6 route {prefix} {ethernet_of_eos(ref)} {NEXT_HOP}" for prefix, ref in next_usids(plan, switch)]
    return "\n".join([*lines, "!", "end"]) + "\n"


FORMS: Mapping[str, ExportForm] = {
    "frr": ExportForm("frr.conf", frr, eth, "linux", "FRR 10.3 or newer: not run"),
    "sonic": ExportForm("config_db.json", sonic, ethernet, "sonic-vs", "SONiC: not run"),
    "eos": ExportForm("startup-config", eos, ethernet_of_eos, "arista_ceos", "EOS: not run"),
    "cumulus": ExportForm("nvue.sh", cumulus, swp, "cumulus_cvx", "Cumulus Linux 5.14 or newer: not run"),
}
