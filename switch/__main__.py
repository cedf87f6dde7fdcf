"""`python -m switch`: compile, serve, stf, trace. Each module registers its own words."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from common.outcome import carry_out

# A module here has `register(subparsers)`, which adds parsers whose default `run` takes the namespace and returns
# the exit status.
COMMANDS = ("p4c.frontend.cli", "switch.serve", "switch.stf.cli")


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """All commands, onto any command line."""
    for name in COMMANDS:
        importlib.import_module(name).register(subparsers)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m switch", description="A P4 compiler and an embedded P4 switch.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    register(subparsers)
    namespace = parser.parse_args(arguments)
    return carry_out("switch", lambda: int(namespace.run(namespace)))


if __name__ == "__main__":
    sys.exit(main())
