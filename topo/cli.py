"""The words `topo show`, `topo draw` and `topo paths`. None of them needs root or a running lab."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import files
from common.door import added, of_packages, thing
from common.terminal.printable import path_line
from common.terminal.source_names import shown
from topo.count import count_parts
from topo.emulation import labname, state
from topo.graph import peer, ports
from topo.node import ROLES, Switch, SwitchRole, tier
from topo.pictures.part import PLANES_MAX, SWITCHES_MAX, drawn, part_of
from topo.plan import Plan
from topo.planfile import PlanError, load_plan, plan_document, shipped_plans
from topo.show import add_format, chosen_paths, paths_json, show_paths, show_plan
from topo.summaries import SUMMARIES

__all__ = ["chosen_plan"]


GROUP = "mrclab.topo"
"""Entry points of packages: functions that add a command below `topo`."""
SPEEDS_SHOWN_MAX = 8
NOTHING = "–"  # for a switch without such neighbours, in a tier that has some


def _roles(plan: Plan) -> list[SwitchRole]:
    """The tiers that the plan has, the highest first."""
    return [role for role in reversed(ROLES) if plan.topology.count(role)]


def draw_text(plan: Plan) -> str:
    """Planes one above the other, hosts last."""
    leaves, roles = min(plan.leaves, SWITCHES_MAX), _roles(plan)
    usual = "every leaf of a plane is wired to every spine of it, every host to one leaf of each plane"
    lines = [f"{plan.name}: {usual if plan.shape is None else plan.topology.describe()}", ""]
    for plane in range(min(plan.planes, PLANES_MAX)):
        names = {role: [switch.name for switch in drawn(plan, plane, role)] for role in roles}
        for role in roles:
            place = f"  plane {plane}   " if role == roles[0] else " " * 12
            count = plan.topology.count(role)
            more = _more(count, min(count, SWITCHES_MAX))
            words = _wired(plan, plane, role)
            wide = max(6, *map(len, words)) if words else 6
            lines.append(f"{place}T{ROLES.index(role)}   " + "  ".join(f"{name:{wide}}" for name in names[role]) + more)
            if words:
                lines.append("             to   " + "  ".join(f"{text:{wide}}" for text in words))
            elif role != "leaf":
                lower = roles[roles.index(role) + 1]
                lines.append("             ×    " + "──" * (4 * max(len(names[role]), len(names[lower]))))
        lines.append("")
    if plan.planes > PLANES_MAX:
        lines += [f"  … and {plan.planes - PLANES_MAX} more planes alike", ""]
    groups = []
    for index in range(leaves):
        count = plan.topology.hosts_under(index)
        own = [plan.host_at(index, d).name for d in range(min(count, 4))]
        groups.append(f"[l{index}: " + " ".join(own) + _more(count, 4) + "]")
    lines.append("  hosts   " + " ".join(groups) + _more(plan.leaves, leaves))
    if odd := _odd_speeds(plan):
        lines += ["", "  rates   " + ", ".join(odd[:SPEEDS_SHOWN_MAX]) + _more(len(odd), SPEEDS_SHOWN_MAX)]
    return "\n".join(lines)


def _odd_speeds(plan: Plan) -> list[str]:
    """The cables that have another rate than the plan's, with their share of it."""
    if plan.shape is None:
        return []
    return [f"{cable.lower}–{cable.upper} × {cable.speed:g}" for cable in plan.topology.cables() if cable.speed != 1.0]


def _wired(plan: Plan, plane: int, role: SwitchRole) -> list[str]:
    """The neighbours of each drawn switch of a tier, but for hosts and higher tiers: "l0-3", "l0 l1".

    Empty where the tier is a leaf's without such cables, or wired whole to the tier below: then a cross says it all.
    """
    shown = drawn(plan, plane, role)
    roles = _roles(plan)
    if plan.shape is None or not shown:
        return []
    others = [[neighbour for neighbour in _cabled(plan, switch) if tier(neighbour) <= tier(switch)] for switch in shown]
    if role == "leaf":
        return [_ranges(own) or NOTHING for own in others] if any(others) else []
    lower = roles[roles.index(role) + 1]
    whole = [switch for switch in plan.switches() if switch.plane == plane and switch.role == lower]
    return [] if all(own == whole for own in others) else [_ranges(own) for own in others]


def _cabled(plan: Plan, switch: Switch) -> list[Switch]:
    """The switches that a switch is wired to, the lowest tier first."""
    others = (peer(plan, ref).node for ref in ports(plan, switch))
    switches = (other for other in others if isinstance(other, Switch))
    return sorted(switches, key=lambda other: (tier(other), other.index))


def _ranges(switches: Sequence[Switch]) -> str:
    """ "l0-3 s1": switches of one plane without its number; three in a row or more are a range."""
    runs: list[list[Switch]] = []
    for switch in switches:
        if runs and switch.role == runs[-1][-1].role and switch.index == runs[-1][-1].index + 1:
            runs[-1].append(switch)
        else:
            runs.append([switch])
    short = ([f"{_short(run[0])}-{run[-1].index}"] if len(run) > 2 else [_short(end) for end in run] for run in runs)
    return " ".join(word for words in short for word in words)


def _short(switch: Switch) -> str:
    return switch.name.removeprefix(f"p{switch.plane}")


def _more(count: int, shown: int) -> str:
    return f" … {count - shown} more" if count > shown else ""


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
    for added_by_package in (of_packages(GROUP) or added(GROUP)).values():
        thing(added_by_package)(commands)


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
        print(shown(show_plan(plan), plan.names))
    return 0


def run_draw(arguments: argparse.Namespace) -> int:
    plan = chosen_plan(arguments.plan)
    if arguments.output is None:
        print(shown(draw_text(plan), plan.names))
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
    if source == destination:
        raise PlanError(f"paths must be between two hosts (got {source} twice)")
    chosen = chosen_paths(plan, source, destination, arguments.ev)
    # A plan given by name is shown without faults; without a name the running lab is shown with its faults.
    faults = state.read_faults() if arguments.plan is None and state.running_plan() is not None else []
    if arguments.format == "json":
        print(json.dumps(paths_json(plan, chosen, faults), indent=1))
    else:
        print(shown(show_paths(plan, chosen, faults), plan.names))
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
