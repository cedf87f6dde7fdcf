"""`mrclab inspect`: the nodes of the running lab, their kinds, addresses, interfaces, namespaces and states."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from cli.command_table import add
from common.terminal.columns import aligned
from running.view import attached, described
from topo.emulation import labname
from topo.show import duration, rate

HEAD = ("NODE", "KIND", "STATE", "ADDRESS", "NAMESPACE")
PAUSES = ("RX_PAUSE", "TX_PAUSE", "PAUSED_US")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    inspect = add(subparsers, "inspect", inspect_command, __file__)
    inspect.add_argument("node", nargs="?", metavar="NODE")
    inspect.add_argument("--format", choices=("text", "json"), default="text")
    labname.add_option(inspect)


def inspect_command(arguments: argparse.Namespace) -> int:
    view = attached()
    nodes = list(view.plan.nodes()) if arguments.node is None else [view.plan.node(arguments.node)]
    descriptions = described(view, nodes)
    if arguments.format == "json":
        sys.stdout.write(json.dumps({"lab": view.name, "plan": view.plan.name, "nodes": descriptions}, indent=1) + "\n")
    elif arguments.node is None:
        head = [name for name in HEAD if name.lower() in descriptions[0]]
        rows = [[str(node[name.lower()]) for name in head] for node in descriptions]
        sys.stdout.write("\n".join(aligned([head, *rows])) + "\n")
    else:
        (node,) = descriptions
        sys.stdout.write(
            f"{node['node']}  {', '.join(node[name.lower()] for name in HEAD[1:] if name.lower() in node)}\n"
        )
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
