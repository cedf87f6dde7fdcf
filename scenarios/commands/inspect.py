"""`mrclab inspect`: the nodes of the running lab, their kinds, addresses, interfaces, namespaces and states."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from common.columns import aligned
from scenarios.commands.words import add
from topo.address import host_address, port_address, switch_usid, usid_address
from topo.emulation import labname, namespace
from topo.emulation.lab import Lab
from topo.fault import healthy, port_states, switch_state
from topo.graph import PortRef, peer, ports
from topo.node import Host, Node
from topo.show import duration, rate

EXAMPLES = """examples:
  ./lab inspect
  ./lab inspect p0l0
  ./lab inspect --format json
without NODE a row a node, with it a row an interface; JSON holds both"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    inspect = add(subparsers, "inspect", inspect_command, EXAMPLES)
    inspect.add_argument("node", nargs="?", metavar="NODE")
    inspect.add_argument("--format", choices=("text", "json"), default="text")
    labname.add_option(inspect)


def inspect_command(arguments: argparse.Namespace) -> int:
    lab = Lab.attach()
    nodes = list(lab.plan.nodes()) if arguments.node is None else [lab.plan.node(arguments.node)]
    silent = set(lab.status()["switches_silent"])
    found = [described(lab, node, silent) for node in nodes]
    if arguments.format == "json":
        sys.stdout.write(json.dumps({"lab": lab.name.text, "plan": lab.plan.name, "nodes": found}, indent=1) + "\n")
    elif arguments.node is None:
        head = ["NODE", "KIND", "STATE", "ADDRESS", "NAMESPACE"]
        rows = [[str(node[name.lower()]) for name in head] for node in found]
        sys.stdout.write("\n".join(aligned([head, *rows])) + "\n")
    else:
        (node,) = found
        sys.stdout.write(f"{node['node']}  {node['kind']}, {node['state']}, {node['address']}, {node['namespace']}\n")
        head = ["INTERFACE", "PORT", "STATE", "PEER", "MAC", "ADDRESS", "RATE", "DELAY"]
        rows = [
            [
                *(str(row[name]) for name in ("interface", "port", "state", "peer", "mac", "address")),
                *(rate(row["rate_bps"]), duration(row["delay_ns"])),
            ]
            for row in node["interfaces"]
        ]
        sys.stdout.write("\n".join(aligned([head, *rows])) + "\n")
    return 0


def described(lab: Lab, node: Node, silent: set[str]) -> dict[str, Any]:
    """A node as JSON: rates in bit/s, delays in nanoseconds; `address` is a host's own or a switch's uSID."""
    plan, faults = lab.plan, lab.faults()
    if isinstance(node, Host):
        kind, address = "host", str(host_address(plan, node))
        state = "running" if namespace.exists(lab.name.netns(node)) else "gone"
        if lab.agent_socket(node).exists():
            state += ", with an agent"
    else:
        kind = f"{node.role}, {plan.kind_of(node)}"
        address = str(usid_address(plan, [switch_usid(node)]))
        state = "silent" if node.name in silent else switch_state(faults, node)
    states = port_states(plan, faults)
    return {
        "node": node.name,
        "kind": kind,
        "state": state,
        "address": address,
        "namespace": str(lab.netns(node)),
        "interfaces": [interface(lab, ref, states.get(ref) or healthy(plan, ref)) for ref in ports(plan, node)],
    }


def interface(lab: Lab, ref: PortRef, state: Any) -> dict[str, Any]:
    """One port with its transmit side as the faults in force have it."""
    other = peer(lab.plan, ref)
    address = str(port_address(lab.plan, ref.node, ref.plane)) if isinstance(ref.node, Host) else ""
    return {
        "interface": ref.interface,
        "port": ref.port,
        "state": "up" if state.up else "down",
        "peer": other.interface,
        "mac": ref.mac,
        "address": address,
        "rate_bps": state.rate_bps,
        "delay_ns": state.delay_ns,
        "loss": state.loss,
    }
