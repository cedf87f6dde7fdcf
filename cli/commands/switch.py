"""`mrclab switch`: the words of `python -m switch`."""

from __future__ import annotations

import argparse

import switch.__main__
from cli.command_table import COMMANDS


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    own = subparsers.add_parser("switch", help=COMMANDS["switch"].summary)
    switch.__main__.register(own.add_subparsers(metavar="COMMAND", required=True))
