"""`mrclab inspect`: the nodes of the running lab, their kinds, addresses, interfaces, namespaces and states."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from cli.command_table import add
from cli.commands.counters import traffic_managers
from common.terminal.columns import aligned
from topo import Host, Node
from topo.address import host_address, port_address, switch_usid, usid_address
from topo.emulation import Lab, labname, namespace
from topo.fault import healthy, port_states, switch_state
from topo.graph import PortRef, peer, ports
from topo.show import duration, rate

EXAMPLES = """examples:
  ./lab inspect
  ./lab inspect p0l0
  ./lab inspect --format json
without NODE one row per node, with it one row per interface; JSON holds both
With flow control: pauses that an interface received and sent, and the microseconds for which it was paused."""
PAUSES = {"RX_PAUSE": "pause_received", "TX_PAUSE": "pause_sent", "PAUSED_US": "paused_ns"}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    inspect = add(subparsers, "inspect", inspect_command, EXAMPLES)
    inspect.add_argument("node", nargs="?", metavar="NODE")
    inspect.add_argument("--format", choices=("text", "json"), default="text")
    labname.add_option(inspect)


def inspect_command(arguments: argparse.Namespace) -> int:
    lab = Lab.attach()
    nodes = list(lab.plan.nodes()) if arguments.node is None else [lab.plan.node(arguments.node)]
    silent = set(lab.status()["switches_silent"])
    paused = pauses(lab, nodes) if lab.plan.pfc.enabled else {}
    found = [described(lab, node, silent, paused.get(node.name, {})) for node in nodes]
    if arguments.format == "json":
        sys.stdout.write(json.dumps({"lab": lab.name.text, "plan": lab.plan.name, "nodes": found}, indent=1) + "\n")
    elif arguments.node is None:
        head = ["NODE", "KIND", "STATE", "ADDRESS", "NAMESPACE"]
        rows = [[str(node[name.lower()]) for name in head] for node in found]
        sys.stdout.write("\n".join(aligned([head, *rows])) + "\n")
    else:
        (node,) = found
        sys.stdout.write(f"{node['node']}  {node['kind']}, {node['state']}, {node['address']}, {node['namespace']}\n")
        sys.stdout.write("\n".join(aligned(interfaces_table(node["interfaces"]))) + "\n")
    return 0


def interfaces_table(interfaces: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A row an interface below its heading; columns of flow control where any of them has counts."""
    named = ["interface", "port", "state", "peer", "mac", "address"]
    counting = any("pauses" in row for row in interfaces)
    rows = [[*(name.upper() for name in named), "RATE", "DELAY", *(PAUSES if counting else ())]]
    for row in interfaces:
        cells = [*(str(row[name]) for name in named), rate(row["rate_bps"]), duration(row["delay_ns"])]
        pauses = row.get("pauses", {})
        if counting:
            cells += ["" if column not in pauses else f"{pauses[column]:,}" for column in PAUSES]
        rows.append(cells)
    return rows


def pauses(lab: Lab, nodes: Sequence[Node]) -> dict[str, dict[int, dict[str, int]]]:
    """The counters of PAUSES, by node name and port: embedded switches, and hosts whose agent has flow control."""
    from common.client import ControlClient

    managers = traffic_managers(lab)
    found: dict[str, dict[int, dict[str, int]]] = {}
    for node in nodes:
        if not isinstance(node, Host):
            rows = {int(port): counted for port, counted in managers.get(node.name, {}).items()}
        elif agent := ControlClient.of_living(lab.agent_socket(node)):
            with agent:
                rows = {row["port"]: row for row in agent.call("counters")["ports"]}
        else:
            continue
        found[node.name] = {port: paused(row) for port, row in rows.items() if PAUSES["RX_PAUSE"] in row}
    return found


def paused(row: Mapping[str, Any]) -> dict[str, int]:
    """The counts of a port by column. A NIC sends no pauses, and counts none."""
    counts = {column: int(row[name]) for column, name in PAUSES.items() if name in row}
    return {**counts, "PAUSED_US": counts["PAUSED_US"] // 1000}


def described(lab: Lab, node: Node, silent: set[str], paused: Mapping[int, Mapping[str, int]]) -> dict[str, Any]:
    """A node as JSON: rates in bit/s, delays in nanoseconds; `address` is a host's own or a switch's uSID. `paused` is
    what its ports count of flow control."""
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
        "interfaces": [
            {
                **interface(lab, ref, states.get(ref) or healthy(plan, ref)),
                **({"pauses": dict(paused[ref.port])} if ref.port in paused else {}),
            }
            for ref in ports(plan, node)
        ],
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
