"""`mrclab switch`: the words of `python -m switch`."""

from __future__ import annotations

import argparse

import switch.__main__
from cli.words import WORDS


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    own = subparsers.add_parser("switch", help=WORDS["switch"].summary)
    switch.__main__.register(own.add_subparsers(metavar="COMMAND", required=True))
