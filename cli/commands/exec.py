"""`mrclab exec`: a command in the network namespace of a node."""

from __future__ import annotations

import argparse
import os
import shutil

from cli.command_table import add
from cli.root import need_root
from common.interpreter import become
from running import sdk
from topo import Host
from topo.address import host_address
from topo.emulation import Lab, front_end, labname, namespace


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = add(subparsers, "exec", exec_command, __file__)
    run.add_argument("--verbs", action="store_true", help="treat a script as a program that uses verbs")
    run.add_argument("--strict", action="store_true", help="refuse what a NIC refuses and the lab takes")
    run.add_argument("--sdk", action="store_true", help="print the flags that compile and link a C program with libmrc")
    run.add_argument("node", metavar="NODE", nargs="?")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    labname.add_option(run)


def exec_command(arguments: argparse.Namespace) -> int:
    if arguments.sdk:
        if arguments.node is not None:
            raise ValueError(f"exec --sdk takes no node and no command (got {arguments.node})")
        print(sdk.flags())
        return 0
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if arguments.node is None:
        raise ValueError("exec must be followed by a node and a command, such as h0 -- ip -br address; or by --sdk")
    if words and words[0].startswith("-"):
        raise ValueError(f"exec {arguments.node}: {words[0]}: options come before NODE, the command behind it")
    if not words:
        raise ValueError(f"exec {arguments.node} must be followed by a command, such as -- ip -br address")
    lab = Lab.attach()
    node = lab.plan.node(arguments.node)
    need_root("exec enters a network namespace")
    os.environ["PATH"] = sdk.search_path()
    hosts = {host.name: host for host in lab.plan.hosts()}
    addresses = {name: str(host_address(lab.plan, host)) for name, host in hosts.items()}
    if isinstance(node, Host) and (arguments.verbs or arguments.strict or sdk.uses_verbs(shutil.which(words[0]))):
        os.environ.update(sdk.environment(sdk.library()))
        if arguments.strict:
            os.environ[sdk.STRICT] = "1"
        named = [hosts[word] for word in words[1:] if word in hosts]
        for other in named:
            if other != node:
                front_end.connect(node, other, lab.name.netns(node), lab.name.netns(other))
        addresses.update((host.name, "127.0.0.1" if host == node else front_end.address(host)) for host in named)
    command = [words[0], *(addresses.get(word, word) for word in words[1:])]
    with namespace.entered(lab.name.netns(node)):  # the process is replaced: nothing has to find its way back
        return become(command)
