"""`mrclab switch`: the words of `python -m switch`."""

from __future__ import annotations

import argparse

import switch.__main__


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    own = subparsers.add_parser("switch", help="the P4 compiler and the embedded switch by themselves")
    switch.__main__.register(own.add_subparsers(metavar="COMMAND", required=True))
