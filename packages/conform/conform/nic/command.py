"""`./lab conform nic`: a NIC under test."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from cli import hand_over
from common import plain_file
from common.terminal.printable import printable
from common.terminal.standard_streams import write_out
from conform import result, rule
from conform.bundle import Bundle
from conform.nic import device_file, run
from conform.nic.control import ControlError, channel
from conform.nic.link import InterfaceLink, Link, SocketLink

OUTPUT = Path("runs/conform/nic")


def register(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `nic`."""
    parser = kinds.add_parser("nic", help="a NIC on interfaces or behind a socket: the lab is its peer and the fabric")
    add = parser.add_argument
    add("--device", type=Path, required=True, metavar="FILE", help="the device file (docs/conformance.md)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--interface", action="append", metavar="IF", help="the interface of a port, in their order")
    where.add_argument("--socket", type=Path, metavar="PATH", help="listen here for a device that is a program")
    add("--group", choices=rule.GROUPS, default="basic", help="which rules: basic, all of them, or hunt")
    add("--only", action="append", default=[], metavar="RULE", help="only rules whose id begins so, such as RSP")
    add("--seed", type=int, default=0, help="of PSNs, data and schedules")
    add("--seconds", type=float, default=30.0, metavar="S", help="how long a hunt draws schedules (30)")
    add("--output", type=Path, default=OUTPUT, metavar="DIR", help=f"the bundle's folder ({OUTPUT})")
    parser.set_defaults(run=nic_command)


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
        write_out(f"not reachable: {printable(str(error))}\n")
        return 2
    finally:
        link.close()
    bundle.write(arguments.output, rules)
    hand_over(arguments.output)
    write_out(f"{result.summary(bundle.results)}\n{arguments.output}, after {time.monotonic() - begun:.1f} s\n")
    return 1 if any(one.outcome == result.FAIL for one in bundle.results) else 0
