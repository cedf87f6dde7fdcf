"""The `mrclab` command: imports the module of the given word, runs the word, turns errors into one clear line."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from cli import huge_pages
from cli.command_parser import CommandParser
from cli.command_table import commands, entry, place
from cli.compiled_form import StartAgainError, start_again
from cli.needs import in_virtual_time, needs, refuse_virtual_time, without_root
from cli.ownership import handing_over, named_places
from cli.root import need_root
from common.outcome import NOT_DONE, carry_out
from common.terminal.standard_streams import PROGRAM, write_error

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
DESCRIPTION = "A laboratory for Multipath Reliable Connection (MRC) over an SRv6, packet-trimming P4 fabric."
EXAMPLES = """examples:
  ./lab run link-flap
  ./lab list
  ./lab trace h0 h5
  ./lab up tiny
  ./lab doctor
  ./lab install
  ./lab test"""


class _Version(argparse.Action):
    """Read from the one place that has it: the lab is a clone, and nothing is installed yet when a new user asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import tomllib

        number = tomllib.loads(PROJECT.read_text())["project"]["version"]
        sys.stdout.write(f"mrclab {number}\n")
        parser.exit()


def parser(word: str | None = None) -> argparse.ArgumentParser:
    """The whole command line, of which only this word can be parsed; the others are named in the help."""
    whole = CommandParser(
        prog=PROGRAM, description=DESCRIPTION, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    subparsers = whole.add_subparsers(metavar="COMMAND", required=True, dest="command")
    if word is not None and entry(word):
        module, function = place(word)
        getattr(importlib.import_module(module), function)(subparsers)
    else:
        for name, known in commands().items():
            subparsers.add_parser(name, help=known.summary)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of the command; 2 when it could not be carried out, 130 for Ctrl-C, 141 without a reader."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asking = words[:1] == ["--needs"]
    if asking:
        del words[0]
    if words[:1] == ["--name"] and len(words) > 2:
        words = [words[2], *words[:2], *words[3:]]
    if not words:
        parser().print_help()
        return NOT_DONE
    if not words[0].startswith("-") and entry(words[0]) is None:
        from cli.suggestions import suggest  # knows the fault verbs, which take a moment to import

        meant = suggest(words[0], commands())
        hint = f"did you mean ./lab {meant}?" if meant else f"valid are {', '.join(commands())}"
        write_error(f"mrclab: no command {words[0]!r}: {hint}")
        return NOT_DONE
    return carry_out("mrclab", lambda: _say_needs(words) if asking else _run(words, whole=arguments is None))


def _say_needs(words: list[str]) -> int:
    sys.stdout.write(" ".join(needs(parser(words[0]).parse_args(words))) + "\n")
    return 0


def _run(words: list[str], whole: bool) -> int:
    """Carry out a command; `whole` says that these are the words of this process and not of a caller in it."""
    namespace = parser(words[0]).parse_args(words)  # imports the command's module: Ctrl-C may also come here
    namespace.whole = whole
    if whole and in_virtual_time(namespace):
        huge_pages.start_with_them()
    refuse_virtual_time(namespace)
    known = entry(namespace.command)
    if known and known.root and not without_root(namespace):
        need_root(known.root)
    try:
        with handing_over(*named_places(namespace)):
            return int(namespace.run(namespace))
    except StartAgainError:
        start_again()
