"""`mrclab counters`: what the switches of the running lab forwarded, trimmed, marked and dropped, and why."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from cli.command_table import add
from cli.options import check_seconds
from common.terminal import source_names
from common.terminal.columns import aligned
from running.view import LabView, attached, chosen_ports, programs, rows_of
from running.view.port_rows import GAUGES, PAUSES, Row, Rows, added
from topo.emulation import labname
from topo.graph import PortRef

WATCH_LEAST_S = 0.2


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    counters = add(subparsers, "counters", counters_command, __file__)
    counters.add_argument("target", nargs="?", metavar="NODE|LINK", help="p0l0, or p0l0-p0s0 (all switches)")
    counters.add_argument("--watch", type=float, metavar="S", nargs="?", const=2.0, help="every S seconds (2)")
    counters.add_argument("--format", choices=("text", "json"), default="text")
    labname.add_option(counters)


def counters_command(arguments: argparse.Namespace) -> int:
    check_seconds("--watch", arguments.watch, least=WATCH_LEAST_S)
    view = attached()
    chosen = chosen_ports(view.plan, arguments.target)
    if arguments.watch is None:
        show(counter_rows(view, chosen), arguments.format, view.plan.names)
        return 0
    before = rows_of(view, chosen)
    while True:
        view.pass_time(arguments.watch)
        now = counter_rows(view, chosen)
        if arguments.format == "text" and sys.stdout.isatty():
            sys.stdout.write("\033[2J\033[H")
        show(added(before, now), arguments.format, view.plan.names)
        sys.stdout.flush()
        before = now


def counter_rows(view: LabView, chosen: Sequence[PortRef]) -> Rows:
    """The counters of these ports; standard error names the switches that run no program."""
    program = programs(view, chosen)
    if missing := [name for name, cells in program.items() if cells is None]:
        verb = "runs" if len(missing) == 1 else "run"
        sys.stderr.write(f"{', '.join(missing)} {verb} no program: the counts of P4 programs are missing there\n")
    return rows_of(view, chosen, program)


def show(rows: Mapping[str, Sequence[Row]], form: str, names: Mapping[str, str]) -> None:
    """As JSON with every number, or as tables of what is not zero; `names` are those of the plan's source."""
    if form == "json":
        sys.stdout.write(json.dumps({"unit": "packets", **rows}) + "\n")
        return
    counted = ["IFACE", "PEER", "RX_OK", "RX_DRP", "TX_OK", "TX_DRP", "TRIM_PKTS", "ECN_MARKED"]
    port_columns = (*counted, *GAUGES, *PAUSES, "DROPS")
    class_columns = ("IFACE", "CLASS", "RX", "TX", "TRIM_PKTS", "ECN_MARKED", "DROPS")
    tables = [table(rows["ports"], port_columns), table(rows["classes"], class_columns)]
    text = "\n\n".join(filter(None, tables)) + "\n" if any(tables) else "all counters are zero\n"
    sys.stdout.write(source_names.shown(text, names))


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
