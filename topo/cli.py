"""The words `topo show`, `topo draw` and `topo paths`. None of them needs root or a running lab."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import files
from common.terminal.printable import path_line
from topo.count import count_parts
from topo.draw import draw_text
from topo.emulation import labname, state
from topo.pictures.part import part_of
from topo.plan import Plan
from topo.planfile import PlanError, load_plan, plan_document, shipped_plans
from topo.show import add_format, chosen_paths, paths_json, show_paths, show_plan
from topo.summaries import SUMMARIES

__all__ = ["chosen_plan"]

EXAMPLES = """\
examples:
  ./lab topo show paper                     the 131,072-NIC fabric, beside a three-tier network
  ./lab topo show lab --single-plane        what the RoCE baseline runs on
  ./lab topo draw lab                       text for the terminal
  ./lab topo draw lab -o lab.svg            SVG; --path h1 h5 draws the paths of a pair in thick blue
  ./lab topo paths h1 h5                    every EV with its uSID list, switch by switch
  ./lab topo paths h1 h5 --ev 0x1c003 --format json

PLAN is a shipped plan or the path of a .toml file; without it the running lab's, or else lab.
"""


def register(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "topo",
        help=SUMMARIES["topo"],
        description="The fabric of a plan, without building it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    labname.add_option(parser)
    commands = parser.add_subparsers(dest="topo_command", required=True, metavar="COMMAND")

    show = commands.add_parser("show", help="switches, links, optics, paths, bisection, thresholds")
    show.add_argument("plan", nargs="?", metavar="PLAN", help=f"one of {', '.join(shipped_plans())}, or a .toml file")
    show.add_argument("--single-plane", action="store_true", help="the plan's single-plane equivalent")
    add_format(show)
    labname.add_option(show)
    show.set_defaults(run=run_show)

    draw = commands.add_parser("draw", help="a picture of the plan")
    draw.add_argument("plan", nargs="?", metavar="PLAN")
    draw.add_argument("-o", "--output", type=Path, metavar="FILE", help="write SVG to this file instead of text")
    draw.add_argument(
        "--path", nargs=2, metavar=("FROM", "TO"), help="draw the paths between two hosts in thick blue (SVG)"
    )
    draw.add_argument("--ev", type=_ev, help="only the path of this EV")
    labname.add_option(draw)
    draw.set_defaults(run=run_draw)

    add_paths(commands)


def add_paths(subparsers: Any) -> None:
    """The word `paths`, also for the top level."""
    paths = subparsers.add_parser("paths", help=SUMMARIES["paths"])
    paths.add_argument("source", metavar="FROM", help="a host, such as h1")
    paths.add_argument("destination", metavar="TO")
    paths.add_argument("--plan", metavar="PLAN")
    paths.add_argument("--ev", type=_ev, help="only this EV, decimal or 0x…")
    add_format(paths)
    labname.add_option(paths)
    paths.set_defaults(run=run_paths)


def run_show(arguments: argparse.Namespace) -> int:
    plan = chosen_plan(arguments.plan)
    if arguments.single_plane:
        plan = replace(plan.single_plane(), description=f"the single-plane equivalent of {plan.name}")
    if arguments.format == "json":
        print(json.dumps({"plan": plan_document(plan), "counts": count_parts(plan).as_json()}, indent=1))
    else:
        print(show_plan(plan))
    return 0


def run_draw(arguments: argparse.Namespace) -> int:
    plan = chosen_plan(arguments.plan)
    if arguments.output is None:
        print(draw_text(plan))
        return 0
    if arguments.output.suffix != ".svg":
        raise ValueError(f"{arguments.output}: `topo draw` writes .svg; `./lab graph` writes .png, .dot and .mmd too")
    bold = []
    if arguments.path:
        bold = chosen_paths(plan, plan.host(arguments.path[0]), plan.host(arguments.path[1]), arguments.ev)
    from topo.pictures.fabric import picture  # late: matplotlib

    files.write_named(arguments.output, picture(part_of(plan, bold), "svg"))
    print(path_line("wrote", arguments.output), end="")
    return 0


def run_paths(arguments: argparse.Namespace) -> int:
    plan = chosen_plan(arguments.plan)
    if plan.encapsulation == "none":
        raise PlanError(f"plan {plan.name!r} has no uSID paths: its switches choose by ECMP")
    source, destination = plan.host(arguments.source), plan.host(arguments.destination)
    chosen = chosen_paths(plan, source, destination, arguments.ev)
    # A plan given by name is shown without faults; without a name the running lab is shown with its faults.
    faults = state.read_faults() if arguments.plan is None and state.running_plan() is not None else []
    if arguments.format == "json":
        print(json.dumps(paths_json(plan, chosen, faults), indent=1))
    else:
        print(show_paths(plan, chosen, faults))
    return 0


def chosen_plan(name: str | None) -> Plan:
    """The plan of this name or file, else the running lab's, else `lab`."""
    if name is not None:
        return load_plan(name)
    return state.running_plan() or load_plan("lab")


def _ev(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no EV: a number such as 0x1c003") from None
