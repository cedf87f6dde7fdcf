"""`mrclab list`."""

from __future__ import annotations

import argparse
import json
import sys

from cli.command_table import add


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listing = add(subparsers, "list", list_command, __file__)
    listing.add_argument("--format", choices=("text", "json"), default="text")


def list_command(arguments: argparse.Namespace) -> int:
    from rich.table import Table

    from common.terminal.console import LastingConsole
    from scenarios import library

    scenarios = library.scenarios()
    if arguments.format == "json":
        rows = [
            {
                "name": s.name,
                "title": s.title,
                "plan": s.plan,
                "seconds": sum(p.seconds for p in s.phases),
                "forms": [f"{s.name}@{word}" for word in s.forms],
            }
            for s in scenarios
        ]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return 0
    table = Table(box=None, pad_edge=False)
    for column in ("scenario", "plan", "seconds", "what it shows"):
        table.add_column(column)
    for scenario in scenarios:
        table.add_row(scenario.name, scenario.plan, f"{sum(p.seconds for p in scenario.phases):.0f}", scenario.title)
    LastingConsole().print(table)
    for scenario in scenarios:
        if scenario.forms:
            forms = ", ".join(f"{scenario.name}@{word}" for word in scenario.forms)
            sys.stdout.write(f"\nforms of {scenario.name}: {forms}\n")
    return 0
