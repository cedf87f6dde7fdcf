"""`mrclab step`: let time pass in a lab in virtual time."""

from __future__ import annotations

import argparse
import re
import sys

from cli.command_table import add
from running.view import find
from topo.emulation import NoLabError, labname
from topo.show import duration

UNITS_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def seconds(text: str) -> float:
    """A duration such as 10ms."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s)", text, re.ASCII)
    if match is None and text != "0":
        raise argparse.ArgumentTypeError(
            f"must be a number with ns, us, ms or s, such as 10ms, and not negative (got {text!r})"
        )
    return float(match[1]) * UNITS_S[match[2]] if match else 0.0


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    step = add(subparsers, "step", step_command, __file__)
    step.add_argument("time", type=seconds, metavar="TIME", help="of the lab, such as 10ms; 0 stops it")
    step.add_argument("--background", action="store_true", help="do not wait")
    labname.add_option(step)


def step_command(arguments: argparse.Namespace) -> int:
    lab, at = find(), labname.chosen().option()
    if lab is None:
        raise NoLabError(f"no lab in virtual time is up here: ./lab up lab --world simulated{at} starts one")
    if arguments.background or not arguments.time:
        lab.step(arguments.time)
    else:
        lab.pass_time(arguments.time)
    sys.stdout.write(f"it is {duration(lab.now_ns())}\n")
    return 0
