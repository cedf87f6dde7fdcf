"""The `mrclab` command: mounts every part's own commands and turns their errors into one clear line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import controller.cli
import switch.__main__
import topo.cli
import topo.emulation.cli
from controller.client import ClientError
from scenarios.commands import capture, report, run, trace
from scenarios.commands.root import NeedsRootError, need_root
from scenarios.running.provision import install

DESCRIPTION = "A laboratory for Multipath Reliable Connection (MRC) over an SRv6, packet-trimming P4 fabric."
# What the lab's own words need root for; `run` and `capture` ask for it themselves, once they know that they do.
NEED_ROOT = {
    "up": "up builds network namespaces",
    "down": "down removes network namespaces",
    "shell": "the prompt runs commands in network namespaces",
    "fault": "a fault changes links and switches",
    "undo": "mending a fault changes links and switches",
}
EXAMPLES = """examples:
  ./lab run link-flap          run the main demonstration, judge it, write a report
  ./lab list                   the scenarios there are
  ./lab trace h0 h5            one packet through every switch's tables
  ./lab up tiny                bring a fabric up and keep it; then: shell, fault, trace, capture, down
  ./lab doctor                 what this machine has, and what an absence costs
  ./lab install                install now what any of these may need, and nothing else
  ./lab test                   style, types and tests"""


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="./lab", description=DESCRIPTION, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    subparsers = whole.add_subparsers(metavar="COMMAND", required=True, dest="command")
    run.register(subparsers)
    report.register(subparsers)
    topo.emulation.cli.register(subparsers, provision=install)
    topo.cli.add_paths(subparsers)
    trace.register(subparsers)
    capture.register(subparsers)
    topo.cli.register(subparsers)
    controller.cli.register(subparsers)
    own = subparsers.add_parser("switch", help="the P4 compiler and the embedded switch by themselves")
    switch.__main__.register(own.add_subparsers(metavar="COMMAND", required=True))
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status of the command; 2 for what could not be done, 130 for Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words:
        parser().print_help()
        return 2
    namespace = parser().parse_args(words)
    try:
        reading = namespace.command == "fault" and namespace.verb is None
        if namespace.command in NEED_ROOT and not reading:
            need_root(NEED_ROOT[namespace.command])
        return int(namespace.run(namespace))
    except KeyboardInterrupt:
        sys.stderr.write("mrclab: interrupted\n")
        return 130
    except BrokenPipeError:
        # The reader has gone (such as `| head`): nothing is wrong, but the interpreter must not try to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, RuntimeError, ClientError, NeedsRootError) as error:
        sys.stderr.write(f"mrclab: {error}\n")
        return 2
