"""`./lab topo import` and `./lab topo check`, as `pyproject.toml` names them."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROLE = "PATTERN=ROLE"


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files, or folders with all their files")
    command.add_argument(
        "--role", action="append", default=[], metavar=ROLE, help="the role of devices by name: 'l*=leaf'; repeatable"
    )


def add_import(commands: Any) -> None:
    """`topo import`."""
    command = commands.add_parser(
        "import",
        help="a plan from files of containerlab, netlab, SONiC, FRR, LLDP and NetBox",
        description="Makes a plan file; every fact in it has its file and line. Docs: docs/guide/your-fabric.md",
    )
    _common(command)
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="the plan file; without it, it is printed")
    command.add_argument("--name", metavar="NAME", help="of the plan (that of the first PATH)")
    command.set_defaults(run=run_import)


def add_check(commands: Any) -> None:
    """`topo check`."""
    command = commands.add_parser(
        "check",
        help="what the files' tables hold against what the fabric needs; exit 1 when something is found",
        description="Walks every EV of every pair of hosts over the tables of the files, and compares what must agree.",
    )
    _common(command)
    command.add_argument("--json", action="store_true", help="findings as JSON")
    command.set_defaults(run=run_check)


def add_export(commands: Any) -> None:
    """`topo export`."""
    from fabric.exporting import FORMS

    command = commands.add_parser(
        "export",
        help="a plan as containerlab topology with FRR, SONiC, Cumulus (NVUE) or EOS configurations",
        description="Names are those of the plan's source, uSIDs the lab's. "
        + "; ".join(f.tried for f in FORMS.values())
        + ".",
    )
    command.add_argument("form", choices=sorted(FORMS))
    command.add_argument("plan", metavar="PLAN", help="a shipped plan, or a .toml file")
    command.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="made if it is missing")
    command.set_defaults(run=run_export)


def roles(given: Sequence[str]) -> list[tuple[str, str]]:
    """What --role says."""
    from fabric.shape import ROLES

    pairs = [tuple(each.rpartition("=")[::2]) for each in given]
    for each, (pattern, role) in zip(given, pairs, strict=True):
        if not pattern or role not in ROLES:
            raise ValueError(f"--role must be {ROLE} with one of {', '.join(ROLES)} (got {each!r})")
    return [(pattern, role) for pattern, role in pairs]


def run_import(arguments: argparse.Namespace) -> int:
    """Make a plan of files, and say how it differs from them."""
    from common import files
    from common.terminal.printable import path_line
    from common.terminal.standard_streams import write_error, write_out
    from fabric.planning import imported, plan_name
    from fabric.reading import read
    from fabric.shape import shape_of

    given = roles(arguments.role)
    facts = read(arguments.paths)
    made = imported(facts, shape_of(facts, given), arguments.name or plan_name(arguments.paths))
    say = write_out if arguments.output else write_error
    say(f"{made.plan.name}: {made.plan.description}\n")
    say("".join(f"differs: {each}\n" for each in made.differences))
    if facts.remarks:
        say("".join(f"not used: {each}\n" for each in facts.remarks[:10]))
    if len(facts.remarks) > 10:
        say(f"not used: {len(facts.remarks) - 10} more, listed in the plan file\n")
    if arguments.output is None:
        write_out(made.text)
        return 0
    if arguments.output.suffix != ".toml":
        raise ValueError(f"-o must end in .toml, as plan files do (got {arguments.output})")
    files.write_named(arguments.output, made.text)
    write_out(path_line("wrote", arguments.output))
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    """List what does not hold."""
    from common.terminal.standard_streams import write_out
    from fabric.checking import check
    from fabric.reading import read

    given = roles(arguments.role)
    facts = read(arguments.paths)
    checked = check(facts, given)
    if arguments.json:
        rows = [
            {
                "file": each.place.file,
                "line": each.place.line,
                "device": each.device,
                "text": each.text,
                "fix": each.fix,
            }
            for each in checked.findings
        ]
        write_out(json.dumps({"findings": rows, "walked": checked.walked, "links": checked.links}, indent=1) + "\n")
    else:
        write_out("".join(f"{each}\n" for each in (*checked.findings, checked.summary())))
    return 1 if checked.findings else 0


def run_export(arguments: argparse.Namespace) -> int:
    """Write every file of a form."""
    from common import files
    from common.terminal.printable import path_line
    from common.terminal.standard_streams import write_out
    from fabric.exporting import FORMS, export
    from topo import load_plan

    plan = load_plan(arguments.plan)
    if plan.encapsulation == "none":
        raise ValueError(f"plan {plan.name!r} must have uSIDs to be exported: its encapsulation is 'none'")
    for name, text in export(plan, arguments.form):
        files.make_folder((arguments.output / name).parent)
        files.write(arguments.output / name, text)
    write_out(path_line(f"wrote a topology and {plan.switch_count} configurations into", arguments.output))
    write_out(f"{FORMS[arguments.form].tried}\n")
    return 0
