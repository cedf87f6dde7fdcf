"""The options that testers of switches and of libraries have in common."""

import argparse
from pathlib import Path


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which rules, on how many seeds, and where the evidence goes."""
    add = parser.add_argument
    add("--group", choices=("basic", "all"), default="all", help="the rules to try (default: all)")
    add("--only", action="append", default=[], metavar="RULE", help="rules whose id begins so")
    add("--seeds", type=int, default=1, help="how many seeds, from this one on (default: 1)")
    add("--output", type=Path, metavar="DIR", help="write the evidence here")
