"""`mrclab capture`: a pcap of any link of the running lab."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from scenarios.commands.root import need_root
from topo.emulation.lab import Lab
from topo.graph import PortRef, link_between, ports
from topo.plan import Plan


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    capture = subparsers.add_parser(
        "capture",
        help="capture packets on a link of the running lab",
        description="Run tcpdump at the first node's end of a link, both directions.",
        epilog=(
            "examples:\n  ./lab capture p1l0-p1s2 --count 20\n"
            "  ./lab capture h0-p0l0 --write h0.pcap --seconds 5\n"
            "  wireshark -X lua_script:endpoint/wireshark/mrc.lua h0.pcap"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    capture.add_argument("link", help="two neighbours, such as p1l0-p1s2 or h0-p0l0")
    capture.add_argument("--write", type=Path, metavar="FILE", help="write a pcap instead of printing")
    capture.add_argument("--count", type=int, metavar="N", help="stop after N packets")
    capture.add_argument("--seconds", type=float, metavar="S", help="stop after S seconds")
    capture.add_argument("--filter", default="", metavar="EXPRESSION", help="a tcpdump filter expression")
    capture.set_defaults(run=capture_command)


def near_end(plan: Plan, link: str) -> PortRef:
    """The port at the first node of `A-B`; ValueError names what is wrong with it."""
    first, dash, second = link.partition("-")
    if not dash:
        raise ValueError(f"{link!r} is no link: two neighbours are wanted, such as p1l0-p1s2")
    a, b = plan.node(first), plan.node(second)
    cable = link_between(plan, a, b)
    return next(ref for ref in ports(plan, a) if ref in (cable.a, cable.b))


def command_line(interface: str, arguments: argparse.Namespace) -> list[str]:
    """tcpdump's words. It keeps root (-Z) because a pcap may go where only root can write."""
    words = ["tcpdump", "-n", "-i", interface, "-Z", "root"]
    words += ["-e", "-v"] if arguments.write is None else ["-U", "-w", str(arguments.write.absolute())]
    if arguments.count is not None:
        words += ["-c", str(arguments.count)]
    return [*words, *arguments.filter.split()]


def capture_command(arguments: argparse.Namespace) -> int:
    if shutil.which("tcpdump") is None:
        raise RuntimeError("tcpdump is not installed: apt-get install tcpdump")
    need_root("capture listens on an interface")
    lab = Lab.attach()
    ref = near_end(lab.plan, arguments.link)
    words = ["nsenter", f"--net={lab.netns(ref.node)}", *command_line(ref.interface, arguments)]
    process = subprocess.Popen(words)
    try:
        return process.wait(arguments.seconds)
    except subprocess.TimeoutExpired:
        return 0
    finally:
        # tcpdump writes what it still holds when it is told to stop.
        process.terminate()
        process.wait()
        sys.stdout.flush()
