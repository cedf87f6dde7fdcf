"""The emulated world: Mininet, real links, real switches and an agent for each host, in real time."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import controller
from common.client import ControlClient
from running.directory import RunDirectory
from running.transport_choice import TransportChoice
from running.worlds.agents import start_agents
from running.worlds.world import Process, WorldGoneError
from topo import Plan, Switch
from topo.address import host_address
from topo.emulation import Lab, namespace
from topo.emulation.front_end import address, connect
from topo.fault import switch_state

LOOK_S = 0.5  # how often a waiting run looks whether its lab is still there


class EmulatedWorld:
    """Brings the lab and its agents up when it is made; nothing is left when that fails."""

    def __init__(
        self, plan: Plan, transport: TransportChoice, seed: int, directory: RunDirectory, tell: Callable[[str], None]
    ) -> None:
        self._directory = directory
        self._pause = threading.Event()  # never set: a wait that Ctrl-C ends
        self.clients: Mapping[str, ControlClient] = {}
        with ExitStack() as stack:
            tell(f"building {plan.switch_count} switches and {plan.host_count} hosts")
            scenario = directory.path.parent.name
            self.lab = Lab.up(plan, provision=controller.provision, journals=directory.journals, run=scenario)
            self.active = self.lab.active
            stack.callback(self.lab.down)
            tell("starting an agent in every host")
            self.clients = start_agents(
                self.lab, transport.agent, transport.settings, seed, lambda host: directory.journal(host.name)
            )
            for client in self.clients.values():
                stack.callback(client.close)
            self._open = stack.pop_all()

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def sample_switches(self, interval_ns: int) -> None:
        """Nothing: the lab's switches always do so."""

    def wait_until(self, t_ns: int) -> None:
        while (left_s := (t_ns - self.now_ns()) / 1e9) > 0:
            self._pause.wait(min(left_s, LOOK_S))
            if not self.is_up():
                raise WorldGoneError
            self.lab.check_switches()

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        """Of running switches: crashed ones are provisioned when they come back, stopped ones do not answer."""
        faults = self.active.faults()
        running = [switch for switch in self.lab.plan.switches() if switch_state(faults, switch) == "running"]
        controller.reconverge(self.lab.plan, dead_links=dead_links, **self._reachable(running))

    def verify(self) -> int:
        return len(controller.verify(self.lab.plan, **self._reachable(self.lab.plan.switches())).differences)

    def _reachable(self, switches: Iterable[Switch]) -> dict[str, Any]:
        """Where the switches are, and what the controller needs beside the plan."""
        places = controller.addresses(self.lab, switches)
        known = {"pipelines": controller.compiled_pipelines(), "journal": self.lab.controller_journal}
        return {"addresses": places, **known}

    def record_packets(self, start_ns: int, stop_ns: int, path: Path) -> None:
        raise ValueError(
            "packets on real links are recorded by `./lab capture`: no process there sees all of them at once"
        )

    def spawn(self, host: str, argv: Sequence[str], log: str) -> Process:
        return self.lab.popen(self.lab.plan.host(host), argv, self._directory.log(log))

    def reach(self, host: str, other: str, *, front_end: bool) -> str:
        here, there = self.lab.plan.host(host), self.lab.plan.host(other)
        if not front_end:
            return str(host_address(self.lab.plan, there))
        connect(here, there, self.lab.name.netns(here), self.lab.name.netns(there))
        return address(there)

    def listens(self, host: str) -> bool:
        return namespace.listens(self.lab.name.netns(self.lab.plan.host(host)))

    def is_up(self, *, settled: bool = False) -> bool:
        return self.lab.is_up(settled=settled)

    def close(self) -> None:
        self._open.close()
