"""The emulated world: Mininet, real links, real switches and one agent process in each host, in real time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack

from common.client import ControlClient, ControlError
from scenarios.running.directory import RunDirectory
from scenarios.running.transport import Transport
from scenarios.worlds import provision
from scenarios.worlds.world import WorldGoneError
from topo.emulation.lab import Lab
from topo.fault import Fault
from topo.node import Host
from topo.plan import Plan

READY_S = 30.0
POLL_S = 0.05
LOOK_S = 0.5  # how often a waiting run looks whether its lab is still there


class EmulatedWorld:
    """Brings the lab and its agents up when it is made; nothing is left when that fails."""

    def __init__(
        self, plan: Plan, transport: Transport, seed: int, directory: RunDirectory, tell: Callable[[str], None]
    ) -> None:
        self._directory = directory
        self._transport = transport
        self._seed = seed
        self._pause = threading.Event()  # never set: a wait that Ctrl-C ends
        self._clients: dict[str, ControlClient] = {}
        with ExitStack() as stack:
            tell(f"building {plan.switch_count} switches and {plan.host_count} hosts")
            self.lab = Lab.up(plan, provision=provision.install, journals=directory.journals)
            stack.callback(self.lab.down)
            tell("starting an agent in every host")
            processes = self.lab.start_agents(self._command)
            for host, process in processes.items():
                client = self._connect(host, process)
                stack.callback(client.close)
                self._clients[host.name] = client
            self._open = stack.pop_all()

    @property
    def clients(self) -> Mapping[str, ControlClient]:
        return self._clients

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def wait_until(self, t_ns: int) -> None:
        while (left_s := (t_ns - self.now_ns()) / 1e9) > 0:
            self._pause.wait(min(left_s, LOOK_S))
            if not self.is_up():
                raise WorldGoneError

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        return self.lab.inject(verb, target, value, seed)

    def undo(self, fault: Fault) -> None:
        self.lab.undo(fault)

    def faults(self) -> list[Fault]:
        return self.lab.faults()

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        provision.reconverge(self.lab, dead_links)

    def verify(self) -> int:
        return provision.differences(self.lab)

    def is_up(self) -> bool:
        return self.lab.is_up()

    def close(self) -> None:
        self._open.close()

    def _command(self, host: Host) -> list[str]:
        words = [sys.executable, "-m", "endpoint", "agent", "--profile", str(self.lab.profile(host))]
        words += ["--socket", str(self.lab.agent_socket(host)), "--journal", str(self._directory.journal(host.name))]
        words += ["--transport", self._transport.agent, "--seed", str(self._seed)]
        for name, value in self._transport.settings.items():
            words += ["--set", f"{name}={json.dumps(value)}"]
        return words

    def _connect(self, host: Host, process: subprocess.Popen[bytes]) -> ControlClient:
        """The agent's client as soon as it answers; RuntimeError when it has ended or takes too long."""
        deadline_s = time.monotonic() + READY_S
        while True:
            try:
                return ControlClient(self.lab.agent_socket(host))
            except ControlError as error:
                log = self.lab.root / "logs" / f"{host}-agent.log"
                if process.poll() is not None:
                    last = log.read_text().strip()[-500:] if log.exists() else "no output"
                    raise RuntimeError(f"the agent of {host} ended with {process.returncode}: {last}") from error
                if time.monotonic() > deadline_s:
                    raise RuntimeError(
                        f"the agent of {host} did not answer within {READY_S:g} s (see {log})"
                    ) from error
            self._pause.wait(POLL_S)
