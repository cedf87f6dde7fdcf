"""`mrclab switch`: the words of `python -m switch`."""

from __future__ import annotations

import argparse

import switch
from cli.command_table import COMMANDS

EXAMPLES = """examples:
  ./lab switch compile p4/leaf.p4 -o out
  ./lab switch serve --config switches.json
  ./lab switch stf my_test.stf --program p4/leaf.p4
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    own = subparsers.add_parser(
        "switch", help=COMMANDS["switch"].summary, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    switch.register(own.add_subparsers(metavar="COMMAND", required=True))
