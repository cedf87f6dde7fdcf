"""`mrclab counters`: what the switches of the running lab forwarded, trimmed, marked and dropped, and why."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from cli.words import add
from common.columns import aligned
from topo.emulation import labname
from topo.emulation.lab import Lab
from topo.graph import PortRef, link_between, peer, ports
from topo.node import Switch
from topo.plan import Plan

EXAMPLES = """examples:
  ./lab counters
  ./lab counters p0l0
  ./lab counters p0l0-p0s0 --watch 1
  ./lab counters --format json

Columns have SONiC's names: RX_OK and TX_OK are packets, RX_DRP and TX_DRP those that died in the switch, by cause in
DROPS; TRIM_PKTS were cut and sent on, ECN_MARKED marked; QUEUE is packets waiting now, QUEUE_MAX the most ever.
With flow control: pauses received and sent, microseconds paused, pauses longer than the watchdog allows (PAUSE_WD),
and MAC control frames that were ignored (PAUSE_BAD).
Only what is not zero is shown. Totals count from the switch's start; --watch shows what was added in each interval."""
# The traffic manager counts a drop at the port by which the packet came, or at the port by which it was to leave.
RX_DROPS = ("drop_no_program", "drop_no_port", "drop_passes", "drop_socket", "drop_headroom")
TX_DROPS = ("drop_queue_full", "drop_port_down", "drop_loss", "drop_wiped")
PAUSES = {  # columns of flow control, where there is any
    "RX_PAUSE": "pause_received",
    "TX_PAUSE": "pause_sent",
    "PAUSED_US": "paused_ns",
    "PAUSE_WD": "pause_watchdog",
    "PAUSE_BAD": "pause_ignored",
}
P4_RX_DROPS = ("not_ipv6", "hop_limit", "list_ended", "unknown_usid", "no_route", "no_next_hop")
GAUGES = ("QUEUE", "QUEUE_MAX")
Row = dict[str, Any]


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    counters = add(subparsers, "counters", counters_command, EXAMPLES)
    counters.add_argument("target", nargs="?", metavar="NODE|LINK", help="p0l0, or p0l0-p0s0 (all switches)")
    counters.add_argument("--watch", type=float, metavar="S", nargs="?", const=2.0, help="every S seconds (2)")
    counters.add_argument("--format", choices=("text", "json"), default="text")
    labname.add_option(counters)


def counters_command(arguments: argparse.Namespace) -> int:
    lab = Lab.attach()
    chosen = chosen_ports(lab.plan, arguments.target)
    if arguments.watch is None:
        show(read(lab, chosen), arguments.format)
        return 0
    if arguments.watch < 0.2:
        raise ValueError(f"--watch must be 0.2 s or more (got {arguments.watch:g})")
    pause, before = threading.Event(), read(lab, chosen)
    while not pause.wait(arguments.watch):
        now = read(lab, chosen)
        if arguments.format == "text" and sys.stdout.isatty():
            sys.stdout.write("\033[2J\033[H")
        show(added(before, now), arguments.format)
        sys.stdout.flush()
        before = now
    return 0


def chosen_ports(plan: Plan, target: str | None) -> list[PortRef]:
    """The ports of all switches, of one node, or the two ends of a link. ValueError with what there is."""
    if target is None:
        return [ref for switch in plan.switches() for ref in ports(plan, switch)]
    if "-" in target:
        first, _, second = target.partition("-")
        link = link_between(plan, plan.node(first), plan.node(second))
        return [link.a, link.b]
    return list(ports(plan, plan.node(target)))


def read(lab: Lab, chosen: Sequence[PortRef]) -> dict[str, list[Row]]:
    """A row a port in `ports`, a row a port and class in `classes`; numbers are packets."""
    import controller
    from controller.counting import read_counters
    from controller.provisioning import addresses

    plan = lab.plan
    switches = list(dict.fromkeys(ref.node for ref in chosen if isinstance(ref.node, Switch)))
    program = read_counters(plan, addresses(lab, switches), controller.compiled_pipelines()) if switches else {}
    managers = traffic_managers(lab)
    found: dict[str, list[Row]] = {"ports": [], "classes": []}
    for ref in chosen:
        classes = program.get(ref.node.name, {}).get(ref.port, {})
        row: Row = {"IFACE": ref.interface, "PEER": peer(plan, ref).node.name}
        manager = managers.get(ref.node.name, {}).get(str(ref.port))
        if manager is None:
            own = lab.counters(ref.node)[ref.port]  # a host, or a switch that counts nothing itself
            row |= {"RX_OK": own["rx_packets"], "TX_OK": own["tx_packets"]}
        else:
            row |= {"RX_OK": manager["rx_packets"], "TX_OK": manager["tx_packets"]}
            row |= {"QUEUE": manager["queue_packets"], "QUEUE_MAX": manager["queue_packets_max"]}
            row |= {column: manager[name] for column, name in PAUSES.items()}
            row["PAUSED_US"] //= 1000
        drops = {name.removeprefix("drop_"): count for name, count in (manager or {}).items() if name in RX_DROPS}
        out = {name.removeprefix("drop_"): count for name, count in (manager or {}).items() if name in TX_DROPS}
        for name, cell in classes.items():
            for cause, count in cell.drops.items():
                side = drops if cause in P4_RX_DROPS else out
                side[cause] = side.get(cause, 0) + count
            told = {"RX": cell.received, "TX": cell.sent, "TRIM_PKTS": cell.trimmed, "ECN_MARKED": cell.ecn_marked}
            found["classes"].append({"IFACE": ref.interface, "CLASS": name, **told, "DROPS": dict(cell.drops)})
        row["TRIM_PKTS"] = sum(cell.trimmed for cell in classes.values())
        row["ECN_MARKED"] = sum(cell.ecn_marked for cell in classes.values())
        row |= {"RX_DRP": sum(drops.values()), "TX_DRP": sum(out.values())}
        row["DROPS"] = {cause: count for cause, count in {**drops, **out}.items() if count}
        found["ports"].append(row)
    return found


def traffic_managers(lab: Lab) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """The counters of every embedded switch's ports, by name and port number; none of other kinds."""
    from common.client import ControlClient

    if lab.switch_control is None:
        return {}
    with ControlClient(lab.switch_control) as client:
        names = {str(device["device_id"]): str(device["name"]) for device in client.call("devices")}
        return {names[number]: counted for number, counted in client.call("counters").items()}


def added(before: Mapping[str, Sequence[Row]], now: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """The counts between two readings; packets waiting now stay as they are."""
    result: dict[str, list[Row]] = {}
    for kind, rows in now.items():
        earlier = {(row["IFACE"], row.get("CLASS")): row for row in before[kind]}
        result[kind] = [difference(earlier.get((row["IFACE"], row.get("CLASS")), {}), row) for row in rows]
    return result


def difference(before: Row, now: Row) -> Row:
    """One row less another. A counter that fell belongs to a switch that has started anew: its whole count is new."""

    def less(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            old = before.get(name, {})
            return {cause: more for cause, count in value.items() if (more := rise(old.get(cause, 0), count))}
        counts = isinstance(value, int) and name not in GAUGES
        return rise(before.get(name, 0), value) if counts else value

    return {name: less(name, value) for name, value in now.items()}


def rise(before: int, now: int) -> int:
    return now - before if now >= before else now


def show(found: Mapping[str, Sequence[Row]], form: str) -> None:
    """As JSON with every number, or as tables of what is not zero."""
    if form == "json":
        sys.stdout.write(json.dumps({"unit": "packets", **found}) + "\n")
        return
    port_columns = (
        "IFACE",
        "PEER",
        "RX_OK",
        "RX_DRP",
        "TX_OK",
        "TX_DRP",
        "TRIM_PKTS",
        "ECN_MARKED",
        *GAUGES,
        *PAUSES,
        "DROPS",
    )
    class_columns = ("IFACE", "CLASS", "RX", "TX", "TRIM_PKTS", "ECN_MARKED", "DROPS")
    tables = [table(found["ports"], port_columns), table(found["classes"], class_columns)]
    sys.stdout.write("\n\n".join(filter(None, tables)) + "\n" if any(tables) else "all counters are zero\n")


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Rows and columns in which something is not zero; "" when there are none."""
    counted = columns[2:]
    kept = [row for row in rows if any(row.get(name) for name in counted)]
    if not kept:
        return ""
    shown = [*columns[:2], *(name for name in counted if any(row.get(name) for row in kept))]
    return "\n".join(aligned([shown, *([worded(row.get(name)) for name in shown] for row in kept)]))


def worded(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{cause} {count:,}" for cause, count in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value or "")
