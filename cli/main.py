"""The `mrclab` command: imports the module of the given word, runs the word, turns errors into one clear line."""

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from cli import huge_pages
from cli.command_table import commands, entry, place
from cli.compiled_form import StartAgainError, start_again
from cli.names import check_names
from cli.ownership import handing_over, named_places
from cli.root import need_root
from common.interrupts import all_alike
from common.outcome import NOT_DONE, carry_out
from common.terminal.choices import close
from common.terminal.printable import printable
from common.terminal.standard_streams import PROGRAM, write_error

OPTION = re.compile(r"--?[A-Za-z]")
NUMBER = re.compile("argument ([^:]*): invalid (int|float) value: (.*)")
CHOICE = re.compile("invalid choice: '(.*?)' ")


class _StoredOnce(argparse._StoreAction):
    """An option that may be given once; again if its metavar has a comma, when the values add up."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if option is not None and isinstance(parser, CommandParser):
            if self.dest in parser.given_options:
                before = getattr(namespace, self.dest)
                if "," not in str(self.metavar):
                    raise argparse.ArgumentError(self, f"is given more than once ({before}, {values})")
                values = f"{before},{values}"
            parser.given_options.add(self.dest)
        super().__call__(parser, namespace, values, option)


class CommandParser(argparse.ArgumentParser):
    """Options are given in full, also to subcommands: an abbreviation would change its meaning with the next option.

    argparse hands unknown words of a subcommand up to the whole command line, whose usage names no option of the
    subcommand. Here each parser rejects its own.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})
        for name in (None, "store"):
            self.register("action", name, _StoredOnce)
        self.given_options: set[str] = set()
        self._given: list[str] = []
        self._negative_number_matcher = re.compile(r"-\.?\d")  # also -5ms is a value: no option begins so

    def parse_known_args(  # type: ignore[override]  # argparse's own has two overloads
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._given = list(args or ())
        self.given_options.clear()
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown_option(unknown) or f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, []

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 after one line; the usage would push it off the screen. A misspelled option is
        named rather than the argument that is wrong because of it."""
        if message.startswith("the following arguments are required"):
            message = self._unknown_option(self._given) or message
        elif (choice := CHOICE.search(message)) and choice[1] in self._given:
            before = self._given[: self._given.index(choice[1])]
            if choice[1] in commands():
                message = f"{choice[1]} is a command by itself: {PROGRAM} {choice[1]}"
            message = self._unknown_option(before) or _with_close(message, choice[1])
        elif number := NUMBER.fullmatch(message):
            kind = "a whole number" if number[2] == "int" else "a number"
            message = f"{number[1]} must be {kind} (got {number[3]})"
        self.exit(NOT_DONE, f"{self.prog}: {printable(message.removeprefix('argument '))} (see {self.prog} --help)\n")

    def _unknown_option(self, words: Sequence[str]) -> str:
        """The complaint about the first word that looks like an option and is none of this parser; "" without one."""
        for word in words:
            option = word.split("=")[0]
            if word == "--":
                return ""
            if OPTION.match(option) and option not in self._option_string_actions:
                from cli.suggestions import nearest_option  # knows the fault verbs, which take a moment to import

                meant = nearest_option(option, self._option_string_actions)
                return f"no option {option}" + (f": did you mean {meant}?" if meant else "")
        return ""


def _with_close(message: str, word: str) -> str:
    """argparse's complaint about a choice, with the choice that was probably meant."""
    meant = close(word, re.findall(r"[\w@.-]+", message.partition("(choose from ")[2]))
    return message.replace("(choose from", f"(did you mean {meant}? Choose from", 1) if meant else message


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
    if word is not None and not word.startswith("-") and entry(word):  # options need no look at packages
        module, function = place(word)
        getattr(importlib.import_module(module), function)(subparsers)
    elif word != "--version":
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
    with all_alike():
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


REAL_LINKS = ("controller", "exec", "launch", "shell")
"""Commands that know no lab in virtual time."""


def in_virtual_time(namespace: argparse.Namespace) -> bool:
    """Whether a command line runs scenarios in virtual time."""
    return getattr(namespace, "world", None) == "simulated"


def without_root(namespace: argparse.Namespace) -> bool:
    """Whether a command that usually needs root does not this time: it is for a lab in virtual time, or only reads."""
    if in_virtual_time(namespace) or (namespace.command == "fault" and namespace.verb == "list"):
        return True
    if namespace.command not in ("down", "fault", "undo"):
        return False
    if getattr(namespace, "all", False):
        return True  # ends labs in virtual time, and then asks for root where there are others
    from running.view import find

    return find() is not None


def refuse_virtual_time(namespace: argparse.Namespace) -> None:
    """NoLabError where a command for real links finds only a lab in virtual time. Without a lab the command says so."""
    elsewhere = (getattr(namespace, name, None) for name in ("sdk", "addresses"))
    if namespace.command not in REAL_LINKS or any(elsewhere):
        return
    if getattr(namespace, "planned", False) and namespace.plan:
        return
    from running.view import find
    from topo.emulation import NoLabError, labname, state

    name = labname.chosen()
    if state.read_record(name.root) is None and find() is not None:
        at = name.option()
        raise NoLabError(
            f"{namespace.command} needs real links, and {name.describe()} is in virtual time: ./lab down{at}, then"
            f" ./lab up PLAN{at}"
        )


def needs(namespace: argparse.Namespace) -> tuple[str, ...]:
    """Of `compiler`, `headers`, `extensions`, `network` and `tcpdump` those that this command line needs; or `shell`
    alone, which is p4runtime-shell."""
    if getattr(namespace, "controller_command", None) == "shell":
        return ("shell",)
    known = entry(namespace.command)
    named = known.needs if known else ()
    check_names(namespace)  # a wrong one is told before minutes of installing
    return tuple(need for need in named if need != "network" or not in_virtual_time(namespace))
