"""The words of the tools: one parser for the command line, for recorded paths and for solvers."""

import argparse
import shlex
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from topo.summaries import FIRST_EV, HOST

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "counters": ("target", "watch"),
    "inspect": ("node",),
    "trace": ("source", "destination", "ev"),
    "paths": ("source", "destination"),
    "capture": ("link", "seconds", "count"),
    "prober": ("all",),
    "log": ("node", "count"),
    "tables": ("node", "table"),
    "wait": ("seconds",),
    "exec": ("node", "line"),
}
"""Every tool with the names of its arguments."""
HELP = {
    "counters": "what switches and NICs counted, by port, class and cause",
    "inspect": "nodes, how long they have run, and their interfaces",
    "trace": "one packet through the tables that the switches hold",
    "paths": "the paths between two hosts, as the first host's NIC sees them",
    "capture": "packets at one end of a cable",
    "prober": "what the path probers of all hosts know of the links",
    "log": "the newest events of a NIC",
    "tables": "the entries that a switch holds",
    "wait": "let lab time pass",
    "exec": "execute a program in a node's network namespace (real links only)",
}


class WordsError(ValueError):
    """Words that are no command of a tool."""


class _ToolParser(argparse.ArgumentParser):
    """Raises instead of printing or ending the process."""

    def error(self, message: str) -> NoReturn:
        raise WordsError(f"{self.prog}: {message}")

    def print_help(self, file: object = None) -> NoReturn:
        raise WordsError(self.format_help())

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise WordsError(f"{self.prog}: {message or 'no command'}")


def add_tools(subparsers: Any, prepare: Callable[[argparse.ArgumentParser], object] = lambda parser: None) -> None:
    """A parser for each tool; `prepare` may add to each of them."""

    def new(name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = subparsers.add_parser(name, help=HELP[name], description=HELP[name])
        parser.set_defaults(tool=name)
        prepare(parser)
        return parser

    counters = new("counters")
    counters.add_argument("target", nargs="?", default="", metavar="NODE|LINK", help="h0, p0l0 or p0l0-p0s0 (all)")
    counters.add_argument("--watch", type=float, default=0.0, metavar="S", help="what S seconds of lab time add")
    new("inspect").add_argument("node", nargs="?", default="", metavar="NODE")
    for name in ("trace", "paths"):
        parser = new(name)
        parser.add_argument("source", metavar="FROM", help=HOST)
        parser.add_argument("destination", metavar="TO")
        if name == "trace":
            parser.add_argument("--ev", default="", help=FIRST_EV)
    capture = new("capture")
    capture.add_argument("link", metavar="LINK", help="two neighbours; the first one's end is looked at")
    capture.add_argument("--seconds", type=float, default=0.2, metavar="S", help="of lab time (0.2)")
    capture.add_argument("--count", type=int, default=10_000, metavar="N", help="the first N packets")
    new("prober").add_argument("--all", action="store_true", help="also the links that are well")
    log = new("log")
    log.add_argument("node", metavar="HOST")
    log.add_argument("--count", type=int, default=20, metavar="N", help="so many events (20)")
    tables = new("tables")
    tables.add_argument("node", metavar="SWITCH")
    tables.add_argument("table", nargs="?", default="", metavar="TABLE", help="one table only")
    new("wait").add_argument("seconds", type=float, metavar="SECONDS")
    run = new("exec")
    run.add_argument("node", metavar="NODE")
    run.add_argument("line", nargs=argparse.REMAINDER, metavar="-- COMMAND")


def request(namespace: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The tool of parsed words, and its arguments."""
    given = {name: getattr(namespace, name) for name in ARGUMENTS[namespace.tool]}
    if namespace.tool == "exec":
        given["line"] = shlex.join(given["line"][given["line"][:1] == ["--"] :])
    return namespace.tool, given


OPTIONS = ("watch", "ev", "seconds", "count", "all")
"""Arguments that are written with their names, but for the seconds of `wait`."""


def spelled(tool: str, arguments: Mapping[str, Any]) -> str:
    """The command as a user types it, without options that have their usual value."""
    usual = parse(" ".join([tool, *("1" for name in ARGUMENTS[tool] if name not in OPTIONS or tool == "wait")]))[1]
    words = [tool]
    for name in ARGUMENTS[tool]:
        value = arguments.get(name, usual[name])
        if name in OPTIONS and tool != "wait":
            if value != usual[name]:
                words += [f"--{name}"] if value is True else [f"--{name}", _number(value)]
        elif value != "":
            words += ["--", str(value)] if name == "line" else [_number(value)]
    return " ".join(words)


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """The tool and the arguments of a line such as `counters p0l0 --watch 8`. WordsError for another line, and with the
    help for `-h`.
    """
    parser = _ToolParser(prog="incident", allow_abbrev=False)
    add_tools(parser.add_subparsers(required=True, metavar="TOOL", parser_class=_ToolParser))
    return request(parser.parse_args(shlex.split(text)))
