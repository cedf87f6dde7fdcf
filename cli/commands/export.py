"""`mrclab export`: a plan for other gear and other programs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from cli.words import add
from topo.cli import chosen_plan
from topo.emulation import labname
from topo.planfile import PlanError

EXAMPLES = """examples:
  ./lab export json tiny
  ./lab export frr tiny -o frr/
  ./lab export sonic lab --switch p1l2
json: nodes, links and every switch's entries. frr, sonic: a file a switch, or --switch on the output. Next hops are the
lab's link-local ones and interfaces its own (frr) or Ethernet0, Ethernet4, … (sonic): put in those of your gear.
FRR 10.3 took and installed them (older ones know no static SIDs); SONiC was not run, golden files hold its files."""
SUFFIX = {"frr": ".conf", "sonic": ".json"}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    export = add(subparsers, "export", export_command, EXAMPLES)
    export.add_argument("form", choices=("json", "frr", "sonic"), metavar="json|frr|sonic")
    export.add_argument("plan", nargs="?", metavar="PLAN", help="the running lab's, or else lab")
    export.add_argument("--switch", metavar="NAME", help="only this switch, on the output")
    export.add_argument("-o", "--output", type=Path, metavar="PLACE", help="a file (json), or a folder")
    labname.add_option(export)


def export_command(arguments: argparse.Namespace) -> int:
    plan = chosen_plan(arguments.plan)
    if arguments.form == "json":
        from cli.exporting.document import document

        text = json.dumps(document(plan), indent=1, ensure_ascii=False) + "\n"
        if arguments.output is None:
            sys.stdout.write(text)
        else:
            arguments.output.write_text(text)
            sys.stdout.write(f"wrote {arguments.output}\n")
        return 0
    from cli.exporting.frr import frr
    from cli.exporting.sonic import sonic

    made = {"frr": frr, "sonic": sonic}[arguments.form]
    if arguments.switch is not None:
        sys.stdout.write(made(plan, plan.switch_node(arguments.switch)))
        return 0
    if arguments.output is None:
        raise PlanError(f"export {arguments.form}: -o FOLDER for all {plan.switch_count} switches, or --switch NAME")
    arguments.output.mkdir(parents=True, exist_ok=True)
    for switch in plan.switches():
        (arguments.output / f"{switch}{SUFFIX[arguments.form]}").write_text(made(plan, switch))
    sys.stdout.write(f"wrote {plan.switch_count} files into {arguments.output}\n")
    return 0
