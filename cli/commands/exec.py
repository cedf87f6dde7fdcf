"""`mrclab exec`: a command in the network namespace of a node."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from cli.root import need_root
from cli.words import add
from topo.address import host_address
from topo.emulation import labname, namespace
from topo.emulation.lab import Lab

EXAMPLES = """examples:
  ./lab exec h0 -- ping -c 3 h3
  ./lab exec p0l0 -- ip -br link
  ./lab exec h0 -- iperf3 -c h3
  ./lab exec h3 -- mrc_write_bw
  ./lab exec h0 -- mrc_write_bw h3
Names of hosts behind the command stand for their addresses, as at the prompt. The exit status is the command's."""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = add(subparsers, "exec", exec_command, EXAMPLES)
    run.add_argument("node", metavar="NODE")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    labname.add_option(run)


def exec_command(arguments: argparse.Namespace) -> int:
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if words and words[0].startswith("-"):
        raise ValueError(f"exec {arguments.node}: {words[0]}: options come before NODE, the command behind it")
    if not words:
        raise ValueError(f"exec {arguments.node}: a command is wanted behind it, such as -- ip -br address")
    lab = Lab.attach()
    node = lab.plan.node(arguments.node)
    need_root("exec enters a network namespace")
    addresses = {host.name: str(host_address(lab.plan, host)) for host in lab.plan.hosts()}
    command = [words[0], *(addresses.get(word, word) for word in words[1:])]
    # The lab's own programs and its Python, which has mrclab, come first: mrc_write_bw, mrc_write_lat, python.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    sys.stdout.flush()
    with namespace.entered(lab.name.netns(node)):  # the process is replaced: nothing has to find its way back
        try:
            os.execvp(command[0], command)
        except FileNotFoundError:
            raise FileNotFoundError(f"exec: there is no command {command[0]!r} on PATH") from None
