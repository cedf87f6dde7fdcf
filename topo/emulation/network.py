"""Mininet, all of it: the plan as a Mininet network whose nodes live in named namespaces, and Mininet's prompt.

Three things differ from stock Mininet. Nodes are namespaces that outlive the process that made them, so a shell is
started when a node is first used and not one per node from the beginning. Links are made in one batch, both ends in
place. And nothing is deleted link by link: deleting the namespaces is enough (see `topo.emulation.lab`).
"""

import os
import readline
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mininet.cli import CLI
from mininet.link import Intf, Link
from mininet.log import error, output, setLogLevel
from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo

from common import plain_file
from common.interpreter import at_home
from common.interrupts import ending, held_back, taking_over
from topo.address import host_address
from topo.emulation import namespace
from topo.emulation.labname import DEFAULT_LAB, LabName
from topo.emulation.wiring import link_commands, sysctls
from topo.fault.verb import usages
from topo.graph import links
from topo.plan import Plan

__all__ = ["PromptCommand", "network", "prompt"]


class FabricTopo(Topo):  # type: ignore[misc]
    """The plan's nodes and cables, with the names, ports and MACs of `topo.graph`."""

    def build(self, plan: Plan, name: LabName) -> None:
        for host in plan.hosts():
            self.addHost(host.name, netns=name.netns(host), address=str(host_address(plan, host)))
        for switch in plan.switches():
            self.addSwitch(switch.name, netns=name.netns(switch))
        for link in links(plan):
            a, b = link.a, link.b
            self.addLink(
                a.node.name,
                b.node.name,
                port1=a.port,
                port2=b.port,
                intfName1=a.interface,
                intfName2=b.interface,
                addr1=a.mac,
                addr2=b.mac,
            )


class NamespaceNode(Node):  # type: ignore[misc]
    """A node that is a named network namespace. Its shell starts with the first command."""

    def __init__(self, name: str, netns: str, address: str | None = None, **params: Any) -> None:
        self.netns = netns
        self.address = address
        params["inNamespace"] = False  # Mininet's sense: a nameless namespace of the shell's own
        self._wanted = False
        super().__init__(name, **params)

    @classmethod
    def setup(cls) -> None:
        """Mininet wants ifconfig here; we do not."""

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802
        if self._wanted:
            super().startShell(mnopts)

    def _open(self) -> None:
        if not self.shell:
            if not namespace.exists(self.netns):
                raise RuntimeError(f"{self.name} has no namespace: the lab is gone")
            self._wanted = True
            self.startShell()

    def sendCmd(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
        self._open()
        return super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        self._open()
        return super().cmd(*args, **kwargs)

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("mncmd", ["mnexec", "-d"])
        return super().popen(*args, **kwargs)

    def _popen(self, cmd: Sequence[str], **params: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["nsenter", f"--net={namespace.path_of(self.netns)}", *cmd], **params)

    # What Mininet calls on switches.

    def start(self, controllers: Sequence[Any]) -> None:
        """Switches run outside of Mininet."""

    def IP(self, intf: Any = None) -> str | None:  # noqa: N802
        return self.address

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class FabricIntf(Intf):  # type: ignore[misc]
    """An interface that is set up elsewhere."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}

    def IP(self) -> str | None:  # noqa: N802
        return self.node.address if self.node else None

    def updateIP(self) -> str | None:  # noqa: N802
        return self.IP()


class FabricLink(Link):  # type: ignore[misc]
    """A link that `FabricNet` makes together with all others."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_kwargs: Any) -> None:  # noqa: N802
        """Nothing yet."""

    def delete(self) -> None:
        """Links go with their namespaces."""


class FabricNet(Mininet):  # type: ignore[misc]
    """The plan in Mininet. `create()` makes it; without that the object stands for a running lab."""

    def __init__(self, plan: Plan, name: LabName) -> None:
        self.plan = plan
        self.name = name
        super().__init__(
            topo=FabricTopo(plan, name),
            host=NamespaceNode,
            switch=NamespaceNode,
            link=FabricLink,
            intf=FabricIntf,
            controller=None,
        )

    def create(self, progress: Callable[[str, int, int], None]) -> None:
        names = list(self.keys())
        progress("namespaces", 0, len(names))
        namespace.create(self.name.netns(node) for node in self.plan.nodes())
        for done, node in enumerate(self.plan.nodes(), 1):
            with namespace.entered(self.name.netns(node)):  # before there are links, so that the defaults hold for them
                namespace.set_sysctls(sysctls(self.plan, node))
            progress("namespaces", done, len(names))
        progress("links", 0, len(self.links))
        namespace.run_ip(link_commands(self.plan, self.name))
        progress("links", len(self.links), len(self.links))

    def end_shells(self) -> None:
        for node in self.values():
            node.terminate()


# Mininet's words for what this network cannot do, each with the words to use instead.
REFUSED = {
    "iperf": "Mininet's iperf speaks IPv4: use h0 iperf3 …, or ./lab traffic write_bw h0 h3",
    "iperfudp": "Mininet's iperf speaks IPv4: use h0 iperf3 -u …, or ./lab traffic write_bw h0 h3",
    "dpctl": "there is no OpenFlow here: use ./lab controller show SWITCH",
    "switch": f"use: {usages('switch')}, undo",
    "link": f"use: {usages('link')}, undo",
}


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """Another verb at the prompt. `complete` gives what may follow, from the words so far."""

    usage: str
    run: Callable[[list[str]], str]
    complete: Callable[[list[str]], Iterable[str]] = lambda words: ()


class FabricCLI(CLI):  # type: ignore[misc]
    """Mininet's prompt with further verbs, by name. No word ends it, whatever it raises."""

    prompt = "mrclab> "
    identchars = CLI.identchars + "-"  # or a fault verb would end at its hyphen for cmd.Cmd

    def __init__(self, net: FabricNet, verbs: Mapping[str, PromptCommand], **kwargs: Any) -> None:
        self.verbs = verbs
        super().__init__(net, **kwargs)

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802
        """Mininet's, but names keep their hyphens when they are completed, and the history is root's: Mininet reads
        and writes it in HOME, also through a link of that folder's owner."""
        with at_home(os.path.expanduser("~root")):
            super().initReadline()
        readline.set_completer_delims(" \t\n")

    def onecmd(self, line: str) -> Any:
        """Carry out one of our verbs, else one of Mininet's; a failure is told in one line."""
        words = line.split()
        try:
            if words and words[0] in self.verbs:
                output(self.verbs[words[0]].run(words[1:]) + "\n")
                return None
            if words and words[0] in REFUSED:
                error(f"*** {words[0]}: {REFUSED[words[0]]}\n")
                return None
            return super().onecmd(line)
        except (ValueError, RuntimeError) as problem:
            error(f"*** {problem}\n")
        except Exception as problem:  # Mininet's own words raise whatever they like
            error(f"*** {words[0]}: {type(problem).__name__}: {problem}\n")
        return None

    def do_source(self, line: str) -> None:
        """Read commands from an input file.
        Usage: source <file>"""
        try:
            with open(line.strip()) as file:  # Mininet keeps one file, and loses it to a script that reads another
                for command in file:
                    self.onecmd(command)
        except OSError as problem:
            error(f"*** source: {line.strip()}: {plain_file.why(problem)}\n")

    def do_help(self, line: str) -> None:
        if line in self.verbs:
            output(self.verbs[line].usage + "\n")
            return
        if line in REFUSED:
            output(f"{line}: {REFUSED[line]}\n")
            return
        super().do_help(line)
        if not line:
            output("mrclab's own:\n" + "".join(f"  {word.usage}\n" for word in self.verbs.values()) + "\n")

    def get_names(self) -> list[str]:
        """The words that help lists and Tab offers: all but those that would be refused."""
        return [name for name in super().get_names() if name.removeprefix("do_") not in REFUSED]

    def completenames(self, text: str, *_ignored: Any) -> list[str]:
        nodes = [name for name in self.mn if name.startswith(text)]
        return [*super().completenames(text), *(verb for verb in self.verbs if verb.startswith(text)), *nodes]

    def completedefault(self, text: str, line: str, *_ignored: Any) -> list[str]:
        """What may follow one of our verbs: targets of a fault, hosts, numbers."""
        words = line.split()
        word = self.verbs.get(words[0]) if words else None
        given = words[1:] if line.endswith(" ") else words[1:-1]
        return [offer for offer in word.complete(given) if offer.startswith(text)] if word else []


def network(plan: Plan, name: LabName = DEFAULT_LAB) -> FabricNet:
    """The plan as the Mininet network of the lab of this name; nothing is created yet."""
    setLogLevel("warning")
    return FabricNet(plan, name)


def prompt(net: FabricNet, verbs: Mapping[str, PromptCommand], script: str | None = None) -> None:
    """Mininet's prompt, or its commands from a file. Signals end it; after Ctrl-C it goes on."""
    setLogLevel("output")
    with taking_over(lambda number, _: sys.exit(128 + number), *ending()):
        try:
            FabricCLI(net, verbs, script=script)
        finally:
            with held_back():  # the end of a session sends several signals
                net.end_shells()
