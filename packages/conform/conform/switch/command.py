"""`./lab conform switch`: a switch behind interfaces of this machine, held against the rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from common import fields
from common.outcome import error_line
from common.terminal.standard_streams import write_error, write_out
from conform import capture, rule
from conform.bundle import Bundle
from conform.command import add_choices, add_seeds, closed
from conform.switch.device import DeviceError, SwitchDevice, read_device

FORMS = ("text", "linux", "p4runtime")


def register(kinds: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = kinds.add_parser("switch", help="a switch behind four interfaces of this machine")
    parser.add_argument("--ports", required=True, metavar="IF,IF,IF,IF", help="interfaces wired to ports 1 to 4")
    parser.add_argument("--device", type=Path, metavar="FILE", help="what the switch can do, as TOML")
    parser.add_argument("--print", choices=FORMS, dest="form", help="print the tables that the switch must hold")
    add_choices(parser)
    add_seeds(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    interfaces = options.ports.split(",")
    if options.form:
        from conform.switch.printing import printed  # late, here and below: help needs no gRPC

        write_out(printed(options.form, interfaces))
        return 0
    if options.device is None:
        write_error("conform switch: --device must name a file, or --print a form")
        return 2
    try:
        device = read_device(options.device)
        if device.about.p4runtime:
            fill(device)
        return _examine(options, interfaces, device)
    except (DeviceError, rule.RuleError, OSError) as error:
        write_error(f"conform switch: {error_line(error)}")
        return 2


def fill(device: SwitchDevice) -> None:
    """Load the lab's program and tables into a switch, by P4Runtime. DeviceError."""
    from conform.switch.bench import NODE, fabric
    from controller import Address
    from controller.push import push

    about = device.about
    report = push(fabric(about.rate_bps), {NODE: Address(about.p4runtime, about.device_id)})
    if not report.ok:
        raise DeviceError(f"the tables cannot be pushed: {report.differences[0]}")


def _examine(options: argparse.Namespace, interfaces: list[str], device: SwitchDevice) -> int:
    from conform.switch.again import CAPTURE
    from conform.switch.examine import examined, unknown_without_trimming

    rules = rule.chosen(rule.load(["switch"]), options.group, options.only)
    seeds = range(options.seed, options.seed + options.seeds)
    found, recordings = examined(interfaces, device, rules, dict.fromkeys(seeds))
    about = {
        "device": fields.document(device.about),
        "ports": interfaces,
        "seeds": list(recordings),
        "restarts": device.restart is not None,
        "counts": device.unknown_drops is not None,
    }
    bundle = Bundle("switch", sys.argv[1:], about, [found.result(one) for one in rules])
    for seed, events in recordings.items():
        bundle.contents[CAPTURE.format(seed)] = capture.packed(events, interfaces)
    status = closed(bundle, rules, options.output)
    if not device.about.trims:
        names = ", ".join(unknown_without_trimming())
        write_out(f"Without trimming, the verdict of these scenarios is unknown: {names}\n")
    return status
