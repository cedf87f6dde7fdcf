"""`mrclab counters`: what the switches of the running lab forwarded, trimmed, marked and dropped, and why."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli.command_table import add
from cli.options import check_seconds
from common.terminal.columns import aligned
from running.port_rows import GAUGES, PAUSES, Row, Rows, added, class_rows, classes_of, managed_row, plain_row
from topo import Plan, Switch
from topo.emulation import Lab, labname
from topo.graph import PortRef, link_between, ports

if TYPE_CHECKING:  # gRPC comes with it, which the help of the command does not need
    from controller import Cells

EXAMPLES = """examples:
  ./lab counters
  ./lab counters p0l0
  ./lab counters p0l0-p0s0 --watch 1
  ./lab counters --format json

Columns have SONiC's names: RX_OK and TX_OK are packets, RX_DRP and TX_DRP those that died in the switch, by cause in
DROPS; TRIM_PKTS were cut and sent on, ECN_MARKED marked; QUEUE is packets waiting now, QUEUE_MAX the most ever.
With flow control: pauses received and sent, microseconds paused, pauses longer than the watchdog allows (PAUSE_WD),
and MAC control frames that were ignored (PAUSE_BAD).
A switch that has crashed is named: its program's counts are missing until it is back.
Only what is not zero is shown. Totals count from the switch's start; --watch shows what was added in each interval."""

WATCH_LEAST_S = 0.2


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    counters = add(subparsers, "counters", counters_command, EXAMPLES)
    counters.add_argument("target", nargs="?", metavar="NODE|LINK", help="p0l0, or p0l0-p0s0 (all switches)")
    counters.add_argument("--watch", type=float, metavar="S", nargs="?", const=2.0, help="every S seconds (2)")
    counters.add_argument("--format", choices=("text", "json"), default="text")
    labname.add_option(counters)


def counters_command(arguments: argparse.Namespace) -> int:
    check_seconds("--watch", arguments.watch, least=WATCH_LEAST_S)
    lab = Lab.attach()
    chosen = chosen_ports(lab.plan, arguments.target)
    if arguments.watch is None:
        show(told(lab, chosen), arguments.format)
        return 0
    pause, before = threading.Event(), read(lab, chosen)
    while not pause.wait(arguments.watch):
        now = told(lab, chosen)
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


def told(lab: Lab, chosen: Sequence[PortRef]) -> Rows:
    """The same as `read`; standard error names the switches that run no program."""
    program = programs(lab, chosen)
    if missing := [name for name, cells in program.items() if cells is None]:
        verb = "runs" if len(missing) == 1 else "run"
        sys.stderr.write(f"{', '.join(missing)} {verb} no program: the counts of P4 programs are missing there\n")
    return rows_of(lab, chosen, program)


def read(lab: Lab, chosen: Sequence[PortRef]) -> Rows:
    """A row a port in `ports`, a row a port and class in `classes`; numbers are packets."""
    return rows_of(lab, chosen, programs(lab, chosen))


def programs(lab: Lab, chosen: Sequence[PortRef]) -> dict[str, Cells | None]:
    """The counts of the program of each P4 switch with a chosen port; None for a switch that runs no program now."""
    import controller
    from controller import addresses, read_counters

    switches = list(dict.fromkeys(ref.node for ref in chosen if isinstance(ref.node, Switch)))
    where = addresses(lab, switches)
    found = read_counters(lab.plan, where, controller.compiled_pipelines()) if where else {}
    return {name: found.get(name) for name in where}


def rows_of(lab: Lab, chosen: Sequence[PortRef], programs: Mapping[str, Cells | None]) -> Rows:
    """The rows of `read`, from what programs have counted."""
    plan = lab.plan
    program = {name: cells for name, cells in programs.items() if cells is not None}
    managers = traffic_managers(lab)
    found: Rows = {"ports": [], "classes": []}
    for ref in chosen:
        classes = classes_of(program, ref)
        manager = managers.get(ref.node.name, {}).get(str(ref.port))
        if manager is None:
            found["ports"].append(plain_row(plan, ref, lab.counters(ref.node)[ref.port], classes))
        else:
            found["ports"].append(managed_row(plan, ref, manager, classes))
        found["classes"] += class_rows(ref, classes)
    return found


def traffic_managers(lab: Lab) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """The counters of every embedded switch's ports, by name and port number; none of other kinds."""
    from common.client import ControlClient

    if lab.switch_control is None:
        return {}
    with ControlClient(lab.switch_control) as client:
        names = {str(device["device_id"]): str(device["name"]) for device in client.call("devices")}
        return {names[number]: counted for number, counted in client.call("counters").items()}


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
