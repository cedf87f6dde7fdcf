"""The events of an incident, in any world: hidden faults, oddities and the load, each at its time.

The list of faults is in the memory of this process, and nothing writes it down before the end.
"""

import heapq
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from common import plain_file
from controller import Entity
from controller.tables import tables
from endpoint import AgentClient, WorkloadGroup, call
from operations.incident.draw import NOISE_PERCENT, OLD_FOR_S, Hidden, Incident, Oddity
from operations.incident.tables import changed
from running import RunDirectory
from running.view import LabView, Managers
from topo import Host, Node, Plan, Switch
from topo.fault import ActiveFaults
from topo.graph import PortRef, link_between, peer, ports
from topo.path import paths

SAMPLE_S = 0.5
PROBE_S = 0.02
CONTROL = "control"  # the owner of denials that a request asks for


def reported(state: str, rate_bps: int, carrier_changes: int, changed_s: float | None) -> Mapping[str, Any]:
    """A port as JSON."""
    return {"state": state, "rate_bps": rate_bps, "carrier_changes": carrier_changes, "changed_s": changed_s}


def files(folder: Path) -> Iterator[str]:
    """Names and contents of everything in a folder."""
    for path in sorted(folder.rglob("*")):
        yield str(path.relative_to(folder))
        if path.is_file() and not path.is_symlink():
            yield plain_file.read_bytes(path).decode(errors="replace")


class IncidentAgenda:
    """Events that happen by themselves, in order of time."""

    def __init__(self) -> None:
        self._items: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()

    def add(self, t_ns: int, act: Callable[[], None]) -> None:
        """Have `act` called at an instant."""
        heapq.heappush(self._items, (t_ns, next(self._numbers), act))

    def next_ns(self) -> int | None:
        """When something happens next."""
        return self._items[0][0] if self._items else None

    def due(self, t_ns: int) -> Iterator[tuple[int, Callable[[], None]]]:
        """Everything up to an instant, also what is added meanwhile."""
        while self._items and self._items[0][0] <= t_ns:
            at_ns, _, act = heapq.heappop(self._items)
            yield at_ns, act


def unknowing(managers: Managers) -> Managers:
    """The counters as ports count them. A port cannot know what a cable loses behind it."""
    return {
        name: {port: {**row, "drop_loss": 0} for port, row in counted.items()} for name, counted in managers.items()
    }


class LiveIncident(LabView):
    """An incident under way, as its devices tell of it. `told` collects what a replay shows once the incident is over:
    (time, line)."""

    name = "incident"
    look_s: float
    """Lab time that a command costs by itself."""
    clients: Mapping[str, AgentClient]
    """The agents, for tools."""
    hands: Mapping[str, AgentClient]
    """The agents, for what happens by itself."""
    begin_ns = 0
    """The journal's clock when the lab had been built."""

    def __init__(self, incident: Incident, directory: RunDirectory) -> None:
        self.incident, self.plan = incident, incident.plan
        self.told: list[tuple[int, dict[str, Any]]] = []
        self.slow: set[PortRef] = set()
        """Ports that report the plan's rate and send at another one."""
        self.swaps = dict(_swaps(incident))
        self._directory = directory
        self._agenda = IncidentAgenda()
        self._groups: list[WorkloadGroup] = []
        self._active: ActiveFaults

    def _begin(self) -> None:
        """Start the load, and plan what happens. The world is up."""
        for workload in self.incident.workloads:
            ranks = list(workload.ranks) if workload.ranks is not None else list(self.clients)
            options = workload.options
            running = WorkloadGroup(
                self.clients, name=workload.name, kind=workload.kind, ranks=ranks, options=options, clock=self.now_ns
            )
            running.start(self.now_ns())
            self._groups.append(running)
        for client in self.clients.values():
            call(client, "sample", interval_ns=round(SAMPLE_S * 1e9), paths=True)
            call(client, "prober.start", interval_ns=round(PROBE_S * 1e9), window=100, deny=False)
        for odd in self.incident.oddities:
            self._plan_oddity(odd)
        for cable in self.incident.noisy:
            self._at(0.5, partial(self._inject, LOSS, cable, NOISE_PERCENT, 1, told=False))
        for fault in self.incident.hidden:
            self._plan_hidden(fault)

    # what a world does

    @abstractmethod
    def close(self) -> None:
        """End the workloads and the world; the journals stay."""

    @abstractmethod
    def _darken(self, fault: Hidden) -> None:
        """Switch a NIC's port off."""

    @abstractmethod
    def _late(self, fault: Hidden) -> None:
        """Have a host not run for moments, from the onset on."""

    @abstractmethod
    def _install(self, switch: Switch, entities: Collection[Entity]) -> None:
        """Bring the tables of a switch to these entries."""

    # what tools look at

    @abstractmethod
    def state(self, node: Node) -> tuple[str, float]:
        """Whether a node runs, and for how many seconds it has."""

    @abstractmethod
    def interface(self, ref: PortRef) -> Mapping[str, Any]:
        """A port as its node reports it: `state`, `rate_bps`, `carrier_changes`, and `changed_s`, when the carrier
        changed last in seconds of lab time, where the node knows. A NIC's port that is switched off is `off`; without
        carrier a port is `down`."""

    def states(self, nodes: Collection[Node]) -> Mapping[str, str]:
        also = {node.name: ", with an agent" if isinstance(node, Host) else "" for node in nodes}
        return {node.name: self.state(node)[0] + also[node.name] for node in nodes}

    def facts(self, node: Node) -> Mapping[str, Any]:
        return {"up_s": round(self.state(node)[1], 1)}

    def interfaces(self, node: Node) -> Mapping[int, Mapping[str, Any]]:
        return {ref.port: self.interface(ref) for ref in ports(self.plan, node)}

    def visible(self) -> Iterator[str]:
        """Everything that lies open beside the answers of tools: names and contents of files."""
        yield from files(self._directory.path)

    def namespace(self, node: Node) -> str:
        """The network namespace of a node. ValueError in virtual time, where there is none."""
        raise ValueError(f"exec {node}: only an incident on real links (--world emulated) has network namespaces")

    @property
    def now_s(self) -> float:
        """Lab time since the lab was built."""
        return (self.now_ns() - self.begin_ns) / 1e9

    def journal(self, host: str) -> Path:
        """The journal of a host."""
        return self._directory.journal(host)

    def wired(self, ref: PortRef) -> PortRef:
        """The port at the other end of the cable that is plugged in here."""
        there = peer(self.plan, ref)
        if there in self.swaps:
            return self.swaps[there]
        return peer(self.plan, self.swaps[ref]) if ref in self.swaps else there

    # what happens

    def _at(self, at_s: float, act: Callable[[], None]) -> None:
        self._agenda.add(self.begin_ns + round(at_s * 1e9), act)

    def _inject(self, verb: str, target: str, value: float | None = None, seed: int = 0, *, told: bool = True) -> None:
        fault = self._active.inject(verb, target, value, seed)
        if told:
            self.told.append((self.now_ns(), fault.line("begin")))

    def _undo(self, verb: str, target: str) -> None:
        for fault in self._active.faults():
            if (fault.verb, fault.target) == (verb, target):
                self._active.undo(fault)
                self.told.append((self.now_ns(), fault.line("end")))

    def _tell(self, kind: str, component: str) -> None:
        line = {"verb": kind, "target": component, "state": "begin", "arguments": {}}
        self.told.append((self.now_ns(), line))

    # oddities

    def _plan_oddity(self, odd: Oddity) -> None:
        match odd.kind:
            case "old-flap":
                self._for(odd.at_s, OLD_FOR_S, DOWN, odd.component)
            case "old-loss":
                self._for(odd.at_s, OLD_FOR_S, LOSS, odd.component, odd.value)
            case "long-cable":
                self._at(odd.at_s, partial(self._inject, DELAY, odd.component, odd.value, told=False))
            case _:
                self._at(odd.at_s, partial(self._deny, list(self.clients), odd.component))

    def _for(self, at_s: float, for_s: float, verb: str, target: str, value: float | None = None) -> None:
        self._at(at_s, partial(self._inject, verb, target, value))
        self._at(at_s + for_s, partial(self._undo, verb, target))

    def _deny(self, hosts: Sequence[str], via: str) -> None:
        for name in hosts:
            client, rows = self.hands[name], []
            for other in self.plan.hosts():
                if other.name != name:
                    rows += [
                        {"host": other.name, "ev": path.ev}
                        for path in paths(self.plan, self.plan.host(name), other)
                        if via in {switch.name for switch in path.switches}
                    ]
            held = call(client, "denylist.get", owner=CONTROL)["denied"]
            call(client, "denylist.set", owner=CONTROL, denied=[*held, *rows])

    # hidden faults

    def _plan_hidden(self, fault: Hidden) -> None:
        begin = partial(self._at, fault.onset_s)
        match fault.kind:
            case "dead-cable":
                begin(partial(self._inject, DOWN, fault.component))
            case "flapping-cable":
                begin(partial(self._again, fault, DOWN))
            case "rebooting-switch":
                begin(partial(self._again, fault, CRASH))
            case "one-way-loss":
                seed = int(fault.numbers["seed"])
                begin(partial(self._inject, LOSS, fault.component, fault.numbers["percent"], seed))
            case "wrong-rate":
                begin(partial(self._inject, RATE, fault.component, fault.numbers["mbps"]))
            case "slow-port":
                first, second = (self.plan.node(name) for name in fault.component.split(">"))
                link = link_between(self.plan, first, second)
                self.slow.add(link.a if link.a.node == first else link.b)
                begin(partial(self._inject, RATE, fault.component, fault.numbers["mbps"]))
            case "nic-port-down":
                begin(partial(self._darken, fault))
            case "denied-path":
                begin(partial(self._deny, [fault.component], fault.names["via"]))
                begin(partial(self._tell, fault.kind, fault.component))
            case "late-host":
                self._late(fault)
                begin(partial(self._tell, fault.kind, fault.component))
            case "swapped-cables":  # since the world was made
                begin(partial(self._tell, fault.kind, fault.component))
            case _:
                begin(partial(self._retable, fault))

    def _again(self, fault: Hidden, verb: str) -> None:
        """Break it now, undo it after `down_s`, and once more after `up_s`."""
        now_s = self.now_s
        self._inject(verb, fault.component)
        back_s = now_s + fault.numbers["down_s"]
        self._at(back_s, partial(self._undo, verb, fault.component))
        self._at(back_s + fault.numbers["up_s"], partial(self._again, fault, verb))

    def _retable(self, fault: Hidden) -> None:
        switch = self.plan.switch_node(fault.component)
        self._install(switch, changed(self.plan, fault, tables(self.plan, switch, virtual_time=self.virtual_time)))
        self._tell(fault.kind, fault.component)


DOWN, LOSS, DELAY, RATE, CRASH = "link-down", "loss", "delay", "rate", "switch-crash"


def _swaps(incident: Incident) -> Iterator[tuple[PortRef, PortRef]]:
    """The far ends that are exchanged, each with the end that takes its place."""
    for fault in incident.hidden:
        if fault.kind == "swapped-cables":
            first, second = (_far_end(incident.plan, name) for name in (fault.component, fault.names["other"]))
            yield first, second
            yield second, first


def _far_end(plan: Plan, cable: str) -> PortRef:
    lower, upper = (plan.node(name) for name in cable.split("-"))
    return link_between(plan, lower, upper).b
