"""The world of an incident on real links: a sealed lab, agents, and a thread that does what happens by itself.

The faults are carried out by the same machinery as those of `./lab fault`, with their list in this process's memory
instead of the lab's folder.
"""

import json
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from common.client import ControlClient, ControlError
from common.journal import Journal
from controller import Entity, addresses, compiled_pipelines, provision, write_entities
from endpoint import call
from operations.incident.draw import Hidden, Incident
from operations.incident.live_incident import SAMPLE_S, LiveIncident, files, reported, unknowing
from running import RunDirectory
from running.transport_choice import transport
from running.view import Managers, RealLab
from running.worlds import running_agents, start_agents
from topo import Host, Node, Switch
from topo.emulation import Lab, LabError, LabFabric, namespace, process, serve_config
from topo.fault import ActiveFaults, Change, SwitchChange, port_states
from topo.graph import PortRef, device_id, link_at, ports

LOOK_S = 0.25


class SealedFabric(LabFabric):
    """Carries changes out, and remembers since when each switch has run."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab.site, lab.driver, lab.provision)
        self.booted_ns: dict[Switch, int] = {}

    def carry_out(self, change: Change) -> None:
        super().carry_out(change)
        if isinstance(change, SwitchChange) and change.state == "running":
            self.booted_ns[change.switch] = time.monotonic_ns()


class EmulatedIncident(LiveIncident, RealLab):
    """An incident on real links, in real time. Needs root; LabError when there is a lab of this name already."""

    look_s = 0.0

    def __init__(self, incident: Incident, directory: RunDirectory) -> None:
        LiveIncident.__init__(self, incident, directory)
        self._over = threading.Event()
        self._broken: Exception | None = None
        choice = transport("mrc")
        with ExitStack() as stack:
            self.lab = Lab.up(self.plan, provision=provision, run="incident", sealed=True)
            stack.callback(self.lab.down)
            RealLab.__init__(self, self.lab)
            if self.swaps:
                self._rewire()
            # A command line can be read: the agents' seed says nothing of the incident's.
            seed = secrets.randbits(31)
            # One process per host in every incident, so that any host can be late, and no process list tells which.
            clients = start_agents(
                self.lab, choice.agent, choice.settings, seed, lambda host: directory.journal(host.name),
                processes=self.plan.host_count,
            )  # fmt: skip
            hands = running_agents(self.lab)
            for client in (*clients.values(), *hands.values()):
                stack.callback(client.close)
            self.clients: Mapping[str, ControlClient] = clients
            self.hands = hands
            self._switches = self._control()
            stack.callback(self._switches.close)
            self._fabric = SealedFabric(self.lab)
            self._active = ActiveFaults(self.plan, self._fabric)
            self._journal = Journal(directory.journal("switches"), "switches", lossy=True)
            stack.callback(self._journal.close)
            self.begin_ns = self.now_ns()
            every = [ref for node in self.plan.nodes() for ref in ports(self.plan, node)]
            self._changes_before = {ref.interface: _changes(self._link(ref)) for ref in every}
            self._begin()
            self._at(SAMPLE_S, self._sample)
            self._thread = threading.Thread(target=self._live, name="agenda", daemon=True)
            self._thread.start()
            self._open = stack.pop_all()

    # what happens by itself

    def _live(self) -> None:
        """Do what is due, until the end."""
        while True:
            due_ns = self._agenda.next_ns()
            left_s = LOOK_S if due_ns is None else min(LOOK_S, (due_ns - self.now_ns()) / 1e9)
            if self._over.wait(max(0.0, left_s)):
                return
            try:
                for _, act in self._agenda.due(self.now_ns()):
                    act()
            except Exception as error:  # the next command says so
                self._broken = error
                return

    def pass_time(self, seconds: float) -> None:
        end_ns = self.now_ns() + round(seconds * 1e9)
        while True:
            if not self.lab.is_up():
                raise LabError("the lab of the incident was taken down: ./lab incident end shows what was wrong")
            if self._broken is not None:
                raise LabError(f"the incident cannot go on ({type(self._broken).__name__}): ./lab incident end")
            left_s = (end_ns - self.now_ns()) / 1e9
            if left_s <= 0 or self._over.wait(min(left_s, LOOK_S)):
                return

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        try:
            with suppress(ControlError, LabError):
                self._resume()
                for running in self._groups:
                    running.stop()
                    running.remove()
        finally:
            self._open.close()

    def _sample(self) -> None:
        for switch, rows in self.managers().items():
            numbered = [{"port": port, **row} for port, row in rows.items()]
            self._journal.write("sample", node=switch, device=switch, ports=numbered)
        self._at(self.now_s + SAMPLE_S, self._sample)

    def _darken(self, fault: Hidden) -> None:
        self._inject("port-down", fault.component)

    def _late(self, fault: Hidden) -> None:
        """The kernel does not run the host's agent for a while, again and again."""

        def stop() -> None:
            self._signal(fault.component, signal.SIGSTOP)
            self._at(self.now_s + fault.numbers["late_s"], go_on)

        def go_on() -> None:
            self._signal(fault.component, signal.SIGCONT)
            self._at(self.now_s + fault.numbers["every_s"] - fault.numbers["late_s"], stop)

        self._at(fault.onset_s, stop)

    def _signal(self, host: str, number: signal.Signals) -> None:
        served = f"--netns {self.lab.name.netns(self.plan.host(host))} "
        for pid in process.find(self.lab.record.token):
            if served in process.command_line(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def _resume(self) -> None:
        for fault in self.incident.hidden:
            if fault.kind == "late-host":
                self._signal(fault.component, signal.SIGCONT)

    def _install(self, switch: Switch, entities: Collection[Entity]) -> None:
        (address,) = addresses(self.lab, [switch]).values()
        write_entities(switch.name, address, compiled_pipelines()[switch.program], entities)

    def _rewire(self) -> None:
        """Exchange the upper ends of two cables. Their switches open the interfaces that are there then."""
        first, second = self.swaps
        names = {ref: self.lab.name.netns(ref.node) for ref in (first, second)}
        nodes = [ref.node for ref in (first, second) if isinstance(ref.node, Switch)]
        with self._control() as control:
            for node in nodes:
                control.call("device.remove", device=device_id(self.plan, node))
            moving = "moving"
            namespace.run_ip([f"link set {first.interface} down name {moving} netns {names[second]}"], names[first])
            namespace.run_ip(
                [f"link set {second.interface} down name {first.interface} netns {names[first]}"], names[second]
            )
            namespace.run_ip([f"link set {moving} name {second.interface}"], names[second])
            for ref in (first, second):
                namespace.run_ip([f"link set {ref.interface} address {ref.mac} up"], names[ref])
            config = serve_config(self.plan, nodes, self.lab.root / "switch", name=self.lab.name)
            for device in config["devices"]:
                control.call("device.add", device=device)
        provision(self.lab, nodes)

    # what tools look at

    def _control(self) -> ControlClient:
        address = self.lab.switch_control
        assert address is not None  # the plans of incidents have embedded switches
        return ControlClient(address)

    def managers(self) -> Managers:
        return unknowing(super().managers())

    def agents(self) -> Mapping[str, ControlClient]:
        return self.clients

    def port_counters(self, node: Node) -> Mapping[int, Mapping[str, int]]:
        return {row["port"]: row for row in call(self.clients[node.name], "counters")["ports"]}

    def state(self, node: Node) -> tuple[str, float]:
        if isinstance(node, Host):
            running, since_ns = namespace.exists(self.lab.name.netns(node)), self.begin_ns
        else:
            devices = {row["name"]: row["state"] for row in self._switches.call("devices")}
            running, since_ns = devices.get(node.name) == "running", self._fabric.booted_ns.get(node, self.begin_ns)
        return "running" if running else "silent", (self.now_ns() - since_ns) / 1e9

    def interface(self, ref: PortRef) -> Mapping[str, Any]:
        link, planned_bps = self._link(ref), link_at(self.plan, ref).rate_bps
        state = "up" if "LOWER_UP" in link["flags"] else "down"
        if isinstance(ref.node, Host) and "UP" not in link["flags"]:
            state = "off"
        told = None if ref in self.slow else port_states(self.plan, self._active.faults()).get(ref)
        changes = _changes(link) - self._changes_before[ref.interface]
        return reported(state, told.rate_bps if told else planned_bps, changes, None)

    def _link(self, ref: PortRef) -> Mapping[str, Any]:
        words = ["ip", "-n", self.lab.name.netns(ref.node), "-j", "-d", "-s", "-s", "link", "show", ref.interface]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        (link,) = json.loads(done.stdout)
        assert isinstance(link, dict)
        return link

    def visible(self) -> Iterator[str]:
        """Also the lab's files, and the command lines of its processes."""
        yield from super().visible()
        yield from files(self.lab.root)
        yield from (process.command_line(pid) for pid in process.find(self.lab.record.token))

    def namespace(self, node: Node) -> str:
        return self.lab.name.netns(node)


def _changes(link: Mapping[str, Any]) -> int:
    return int(link["stats64"]["tx"]["carrier_changes"])
