"""`./lab conform nic`: a NIC under test."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from common import plain_file
from common.terminal.printable import printable
from common.terminal.standard_streams import write_out
from conform import rule
from conform.bundle import Bundle
from conform.command import add_choices, closed
from conform.nic import device_file, run
from conform.nic.control import ControlError, channel
from conform.nic.link import InterfaceLink, Link, SocketLink


def register(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `nic`."""
    parser = kinds.add_parser("nic", help="a NIC on interfaces or behind a socket: the lab is its peer and the fabric")
    add = parser.add_argument
    add("--device", type=Path, required=True, metavar="FILE", help="the device file (docs/conformance.md)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--interface", action="append", metavar="IF", help="the interface of a port, in their order")
    where.add_argument("--socket", type=Path, metavar="PATH", help="listen here for a device that is a program")
    add_choices(parser, rule.GROUPS)
    add("--seconds", type=float, default=30.0, metavar="S", help="how long a hunt draws schedules (30)")
    parser.set_defaults(run=nic_command, group="basic", seed=0, output=Path("runs/conform/nic"))


def nic_command(arguments: argparse.Namespace) -> int:
    """The status is 0 if no rule is broken, 1 if one is, 2 if the device cannot be tried."""
    text = plain_file.read_named(arguments.device)
    about = device_file.parse(text)
    rules = rule.chosen(rule.load(run.ROLES), arguments.group, arguments.only)
    link: Link = SocketLink(arguments.socket) if arguments.socket else InterfaceLink(arguments.interface)
    begun = time.monotonic()
    try:
        control = channel(about.control)
        try:
            tester = run.Tester(about, link, control, arguments.seed)
            tester.greet()
            said: dict[str, Any] = {"device_file": text, "seed": arguments.seed, "ev_probe": tester.about.ev_probe}
            bundle = Bundle("nic", ["./lab", *sys.argv[1:]], said)
            hunt = run.Hunt(tester, rules if arguments.group == "hunt" else [])
            said["schedules"] = hunt.schedules
            for found in hunt.go(arguments.seconds) if hunt.rules else map(tester.run, rules):
                bundle.add(*found)
                write_out(f"{printable(found[0].line())}\n")
        finally:
            control.close()
    except ControlError as error:
        place = f"; it must connect to {arguments.socket}" if arguments.socket else ""
        write_out(f"not reachable: {printable(f'{error}{place}')}\n")
        return 2
    finally:
        link.close()
    status = closed(bundle, rules, arguments.output, shown=True)
    write_out(f"{arguments.output}, after {time.monotonic() - begun:.1f} s\n")
    return status
