"""The tables that a switch under test must hold, from the plan: the files that `./lab conform switch --print` shows.

python -m tests.helpers.conform.switch_tables
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from conform.switch import printing
from conform.switch.bench import NODE, fabric
from topo import Host, Plan
from topo.address import adjacency_usid, host_prefix, neighbour_usid, switch_address, switch_usid, usid_prefix
from topo.graph import PortRef, peer, ports, towards_host

GATEWAY = "fe80::1"
FLAVOUR = "flavors next-csid lblen 32 nflen 16"


def files() -> dict[Path, str]:
    """The text of each file."""
    return {printing.file("text"): "\n".join(text()) + "\n", printing.file("linux"): "\n".join(linux()) + "\n"}


def wired(plan: Plan) -> list[tuple[str, PortRef, PortRef]]:
    """Name in the files, port and far end of each port."""
    return [(f"PORT{ref.port}", ref, peer(plan, ref)) for ref in ports(plan, plan.switch_node(NODE))]


def text() -> Iterator[str]:
    """For a person."""
    plan = fabric()
    own, dscp, queues = switch_usid(plan.switch_node(NODE)), plan.dscp, plan.queues
    yield "Ports:"
    for name, ref, far in wired(plan):
        kind = "a host" if towards_host(plan, ref) else "a switch"
        yield f"  {ref.port}  {name}: MAC {ref.mac}, towards {kind} with MAC {far.mac}, MTU {plan.links.mtu_bytes}"
    yield f"uSIDs (RFC 9800, NEXT-C-SID, block of 32 bits, uSIDs of 16), in {plan.usid_block}:"
    yield f"  {usid_prefix(plan, own)}: uN, own"
    for _, ref, _ in wired(plan):
        yield f"  {usid_prefix(plan, adjacency_usid(ref.port))}: uA, out of port {ref.port}; also behind the uN"
    yield "Routes:"
    for _, ref, far in wired(plan):
        yield f"  {usid_prefix(plan, neighbour_usid(plan, far.node))}: port {ref.port}"
        if isinstance(far.node, Host):
            yield f"  {host_prefix(plan, far.node)}: port {ref.port}"
    yield f"  all else in {plan.usid_block}: dropped, and counted"
    yield "Classes, by DSCP:"
    yield f"  {dscp.trimmable} and {dscp.trimmable_retransmit} may be trimmed; {dscp.no_trim} and all others may not"
    yield f"  priority queue: {dscp.trimmed} (trimmed), {dscp.trimmed_lasthop} (last hop), {dscp.control} (control)"
    low, high, trim, last, drop = (
        plan.threshold_packets(limit, 1.0)
        for limit in (queues.ecn_min, queues.ecn_max, queues.trim, queues.trim_lasthop, queues.no_trim_drop)
    )
    yield "Queues, in packets that wait:"
    yield f"  mark CE above {high}, never up to {low}; no marks towards hosts"
    yield f"  trim from {trim}, towards hosts from {last}; drop what may not be trimmed from {drop}"
    yield f"  trim to {plan.trimming.size_bytes} bytes from the first Ethernet byte"
    yield f"  trimmed packets take at most {plan.trimming.share:.0%} of a port"
    yield f"Time Exceeded messages come from {switch_address(plan, plan.switch_node(NODE))}"


def linux() -> Iterator[str]:
    """For a shell: `seg6local` with static routes and permanent neighbours."""
    plan = fabric()
    node = plan.switch_node(NODE)
    for setting in ("conf.all.forwarding", "conf.all.seg6_enabled"):
        yield f"sysctl -qw net.ipv6.{setting}=1"
    yield f"ip -6 address replace {switch_address(plan, node)}/128 dev lo nodad"
    for name, ref, far in wired(plan):
        yield f"sysctl -qw net.ipv6.conf.{name}.addr_gen_mode=1 net.ipv6.conf.{name}.seg6_enabled=1"
        own = f"dev {name} metric {1024 + ref.port}"
        yield f"ip link set {name} address {ref.mac} up"
        yield f"ip -6 neigh replace {GATEWAY} lladdr {far.mac} dev {name} nud permanent"
        yield f"ip -6 route replace {usid_prefix(plan, switch_usid(node))} encap seg6local action End {FLAVOUR} {own}"
        yield f"ip -6 route replace {usid_prefix(plan, neighbour_usid(plan, far.node))} via {GATEWAY} dev {name}"
        # End.X looks its next hop up, and a link-local address would have no port.
        yield f"ip -6 neigh replace fd01::{ref.port} lladdr {far.mac} dev {name} nud permanent"
        yield f"ip -6 route replace fd01::{ref.port}/128 dev {name}"
        adjacency = usid_prefix(plan, adjacency_usid(ref.port))
        yield f"ip -6 route replace {adjacency} encap seg6local action End.X nh6 fd01::{ref.port} {FLAVOUR} dev {name}"
        if isinstance(far.node, Host):
            yield f"ip -6 route replace {host_prefix(plan, far.node)} via {GATEWAY} dev {name}"


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content)
