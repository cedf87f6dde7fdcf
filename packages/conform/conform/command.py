"""`./lab conform`: hold a device against the rules."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from cli import CommandEntry, hand_over
from cli import add as add_command
from common.terminal.printable import printable
from common.terminal.standard_streams import write_out
from conform import bundle, matrix, result, rule

CONFORM = CommandEntry("hold a NIC, a switch or a library against the rules of MRC", "conform.command:register")
SUBJECTS = ("nic", "switch", "library")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `conform`; each kind of device adds its own command, by `register` of `conform.KIND.command`."""
    conform = add_command(subparsers, "conform", none_given, __file__)
    kinds = conform.add_subparsers(title="what", metavar="WHAT")
    for subject in SUBJECTS:
        if (Path(__file__).with_name(subject) / "command.py").is_file():
            import_module(f"conform.{subject}.command").register(kinds)
    add_rules(kinds)
    check = kinds.add_parser("verify", help="check a bundle's digests and judge its captures again")
    check.add_argument("bundle", type=Path, help="a folder or a zip file")
    check.set_defaults(run=verify_command)
    conform.set_defaults(parser=conform)


def add_choices(parser: argparse.ArgumentParser, groups: Sequence[str] = ("basic", "all")) -> None:
    """Adds what all kinds have: the rules to try, the seed, and where the evidence goes."""
    add = parser.add_argument
    add("--group", choices=groups, default="all", help="the rules to try (default: %(default)s)")
    add("--only", action="append", default=[], metavar="RULE", help="rules whose id begins so, such as RSP or SWI-001")
    add("--seed", type=int, default=1, help="decides numbers, sizes, bytes and schedules (default: %(default)s)")
    add("--output", type=Path, metavar="DIR", help="write the evidence here")


def add_seeds(parser: argparse.ArgumentParser) -> None:
    """Adds the number of seeds, of kinds whose tests draw anew for each."""
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from this one on (default: %(default)s)")


def closed(made: bundle.Bundle, rules: Sequence[rule.Rule], output: Path | None, *, shown: bool = False) -> int:
    """Print results, unless that has been done, and their summary, and write the evidence; 1 if a rule is broken."""
    write_out("".join(f"{printable(one.line())}\n" for one in made.results if not shown))
    write_out(f"{result.summary(made.results)}\n")
    if output:
        made.write(output, rules)
        hand_over(output)
    return 1 if any(one.outcome in result.BROKEN for one in made.results) else 0


def none_given(arguments: argparse.Namespace) -> int:
    arguments.parser.print_help()
    return 2


def add_rules(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rules = kinds.add_parser("rules", help="print the rules, one line each")
    rules.add_argument("role", nargs="?", choices=rule.ROLES, help="of this role only")
    rules.add_argument("--page", action="store_true", help="the whole page, as Markdown")
    rules.set_defaults(run=rules_command)


def rules_command(arguments: argparse.Namespace) -> int:
    found = rule.load([arguments.role] if arguments.role else rule.ROLES)
    if arguments.page:
        write_out(matrix.page(found))
    else:
        write_out("".join(f"{one.id}  {one.level:6}  {one.group:5}  {one.rule}\n" for one in found))
    return 0


def verify_command(arguments: argparse.Namespace) -> int:
    wrong, again = bundle.verify(arguments.bundle)
    for line in wrong:
        write_out(f"{printable(line)}\n")
    if again:
        write_out(f"judged again: {result.summary(again)}\n")
    write_out(f"{'differs' if wrong else 'holds'}: {printable(str(arguments.bundle))}\n")
    return 1 if wrong else 0
