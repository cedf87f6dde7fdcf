"""The world of an incident in virtual time: what is hidden is carried out here, and nothing writes it down."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from common.seeds import Purpose, derive
from controller.entries import Entity
from controller.tables import tables
from endpoint.group import Group
from operations.incident.draw import NOISE_PERCENT, OLD_FOR_S, Hidden, Incident, Oddity
from operations.incident.late import LateHost
from operations.incident.tables import changed
from running.directory import RunDirectory
from running.runner import group, start
from running.transport_choice import transport
from running.worlds.simulated import SimulatedWorld
from running.worlds.virtual_time import Resident
from running.worlds.world import call
from switch.fabric import End
from switch.native.fabric import NativeFabric
from switch.packet_log import NodeKind
from topo.fault import VERBS, ActiveFaults, Change, PortChange, PortState, SwitchChange, healthy
from topo.graph import PortRef, link_between, peer
from topo.node import Host, Node, Switch
from topo.path import paths, switches
from topo.plan import Plan

SAMPLE_S = 0.5
PROBE_S = 0.02
CONTROL = "control"  # the owner of denials that a request asks for
Swaps = Mapping[PortRef, PortRef]


@dataclass(slots=True)
class Carrier:
    """A port's light, as the node itself reports it."""

    up: bool = True
    changes: int = 0
    changed_ns: int = 0


class RewiredFabric(NativeFabric):
    """A fabric in which the far ends of some cables are exchanged."""

    def __init__(self, swaps: Mapping[End, End], seeds: Sequence[int], hosts: int, host_ports: int) -> None:
        self._swaps = swaps
        super().__init__(seeds, hosts, host_ports)

    def connect(self, a: End, b: End) -> None:
        super().connect(a, self._swaps.get(b, b))


class ArenaWorld(SimulatedWorld):
    """Virtual time whose journals hold what devices see, and not what the traffic manager knows of the cables."""

    def __init__(self, plan: Plan, seed: int, directory: RunDirectory, swaps: Swaps) -> None:
        self.carriers: dict[PortRef, Carrier] = {}
        self.rates_bps: dict[PortRef, int] = {}
        self.booted_ns: dict[Switch, int] = {}
        self.silent: set[Switch] = set()
        make = partial(RewiredFabric, {end(plan, a): end(plan, b) for a, b in swaps.items()})
        super().__init__(plan, transport("mrc"), seed, directory, lambda line: None, make)

    def carry_out(self, change: Change) -> None:
        if isinstance(change, PortChange):
            self.rates_bps[change.ref] = change.state.rate_bps
            carrier = self.carriers.setdefault(change.ref, Carrier())
            if carrier.up != change.state.up:
                carrier.up, carrier.changed_ns = change.state.up, self.now_ns()
                carrier.changes += 1
        if isinstance(change, SwitchChange):
            if change.state == "running":
                self.booted_ns[change.switch] = self.now_ns()
                self.silent.discard(change.switch)
            else:
                self.silent.add(change.switch)
        super().carry_out(change)

    def residents(self, wrapped: Mapping[str, Callable[[Any, Any], Resident]]) -> None:
        """Replace some hosts by wrappers around them, made from the host and its NIC."""
        found: list[Resident] = []
        for host, simulated in self._hosts.items():
            assert simulated.virtual is not None
            make = wrapped.get(host.name)
            found.append(simulated.virtual if make is None else make(simulated.virtual, simulated.nic))
        self.time.settle(found, self._settle)

    def port_counters(self) -> Iterator[tuple[Switch, list[dict[str, int]]]]:
        """Every switch's ports as it counts them. A port cannot know what a cable loses behind it."""
        for switch, rows in self.fabric.counters():
            yield switch, [{**row, "drop_loss": 0} for row in rows]

    def _journal_switches(self) -> None:
        for switch, counters in self.port_counters():
            self._switch_journal.write("sample", node=switch.name, device=switch.name, ports=counters)


class Agenda:
    """What happens by itself, in order of time."""

    def __init__(self) -> None:
        self._items: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()

    def add(self, t_ns: int, act: Callable[[], None]) -> None:
        """Have `act` called at an instant."""
        heapq.heappush(self._items, (t_ns, next(self._numbers), act))

    def due(self, t_ns: int) -> Iterator[tuple[int, Callable[[], None]]]:
        """Everything up to an instant, also what is added meanwhile."""
        while self._items and self._items[0][0] <= t_ns:
            at_ns, _, act = heapq.heappop(self._items)
            yield at_ns, act


class Arena:
    """An incident under way. `faults` collects what a replay shows once the incident is over: (time, line)."""

    def __init__(self, incident: Incident, directory: RunDirectory) -> None:
        self.incident, self.plan = incident, incident.plan
        self.swaps = dict(_swaps(incident))
        seed = int(derive(incident.seed, Purpose.SWITCHES))
        self.world = ArenaWorld(self.plan, seed, directory, self.swaps)
        self.faults: list[tuple[int, dict[str, Any]]] = []
        self._directory = directory
        self._numbers = {node: (NodeKind.SWITCH, n) for n, node in enumerate(self.plan.switches())}
        self.slow: set[PortRef] = set()
        """Ports that report the plan's rate and send at another one."""
        self._active = ActiveFaults(self.plan, self.world)
        self._agenda = Agenda()
        late = {
            one.component: partial(
                LateHost,
                begin_ns=round(one.onset_s * 1e9),
                every_ns=round(one.numbers["every_s"] * 1e9),
                late_ns=round(one.numbers["late_s"] * 1e9),
            )
            for one in incident.hidden
            if one.kind == "late-host"
        }
        if late:
            self.world.residents(late)
        self._groups = [self._begun(workload) for workload in incident.workloads]
        self.world.sample_switches(round(SAMPLE_S * 1e9))
        for client in self.world.clients.values():
            call(client, "sample", interval_ns=round(SAMPLE_S * 1e9), paths=True)
            call(client, "prober.start", interval_ns=round(PROBE_S * 1e9), window=100, deny=False)
        for odd in incident.oddities:
            self._plan_oddity(odd)
        for cable in incident.noisy:
            self._at(0.5, partial(self._inject, LOSS, cable, NOISE_PERCENT, 1, told=False))
        for one in incident.hidden:
            self._plan_hidden(one)

    @property
    def now_s(self) -> float:
        """Lab time since the lab was built."""
        return self.world.now_ns() / 1e9

    def advance(self, seconds: float) -> None:
        """Let lab time pass, with everything that happens by itself."""
        end_ns = self.world.now_ns() + round(seconds * 1e9)
        for at_ns, act in self._agenda.due(end_ns):
            self.world.wait_until(at_ns)
            act()
        self.world.wait_until(end_ns)

    def journal(self, host: str) -> Path:
        """The journal of a host."""
        return self._directory.journal(host)

    def number(self, node: Node) -> tuple[NodeKind, int]:
        """A node as the fabric's records name it."""
        return (NodeKind.HOST, node.index) if isinstance(node, Host) else self._numbers[node]

    def wired(self, ref: PortRef) -> PortRef:
        """The port at the other end of the cable that is plugged in here."""
        there = peer(self.plan, ref)
        if there in self.swaps:
            return self.swaps[there]
        return peer(self.plan, self.swaps[ref]) if ref in self.swaps else there

    def close(self) -> None:
        """End the workloads and the world; the journals stay."""
        for running in self._groups:
            running.remove()
        self.world.close()

    def _begun(self, workload: Any) -> Group:
        running = group(workload, self.world)
        start(running, self.world)
        return running

    def _at(self, at_s: float, act: Callable[[], None]) -> None:
        self._agenda.add(round(at_s * 1e9), act)

    def _inject(self, verb: str, target: str, value: float | None = None, seed: int = 0, *, told: bool = True) -> None:
        fault = self._active.inject(verb, target, value, seed)
        if told:
            self.faults.append((self.world.now_ns(), fault.line("begin")))

    def _undo(self, verb: str, target: str) -> None:
        for fault in self._active.faults():
            if (fault.verb, fault.target) == (verb, target):
                self._active.undo(fault)
                self.faults.append((self.world.now_ns(), fault.line("end")))

    def _tell(self, kind: str, component: str) -> None:
        line = {"verb": kind, "target": component, "state": "begin", "arguments": {}}
        self.faults.append((self.world.now_ns(), line))

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
                self._at(odd.at_s, partial(self._deny, list(self.world.clients), odd.component))

    def _for(self, at_s: float, for_s: float, verb: str, target: str, value: float | None = None) -> None:
        self._at(at_s, partial(self._inject, verb, target, value))
        self._at(at_s + for_s, partial(self._undo, verb, target))

    def _deny(self, hosts: Sequence[str], via: str) -> None:
        for name in hosts:
            client, rows = self.world.clients[name], []
            for other in self.plan.hosts():
                if other.name != name:
                    rows += [
                        {"host": other.name, "ev": path.ev}
                        for path in paths(self.plan, self.plan.host(name), other)
                        if via in {switch.name for switch in switches(self.plan, path)}
                    ]
            held = call(client, "denylist.get", owner=CONTROL)["denied"]
            call(client, "denylist.set", owner=CONTROL, denied=[*held, *rows])

    # hidden faults

    def _plan_hidden(self, one: Hidden) -> None:
        begin = partial(self._at, one.onset_s)
        match one.kind:
            case "dead-cable":
                begin(partial(self._inject, DOWN, one.component))
            case "flapping-cable":
                begin(partial(self._again, one, DOWN))
            case "rebooting-switch":
                begin(partial(self._again, one, CRASH))
            case "one-way-loss":
                seed = int(one.numbers["seed"])
                begin(partial(self._inject, LOSS, one.component, one.numbers["percent"], seed))
            case "wrong-rate":
                begin(partial(self._inject, RATE, one.component, one.numbers["mbps"]))
            case "slow-port":
                first, second = (self.plan.node(name) for name in one.component.split(">"))
                link = link_between(self.plan, first, second)
                self.slow.add(link.a if link.a.node == first else link.b)
                begin(partial(self._inject, RATE, one.component, one.numbers["mbps"]))
            case "nic-port-down":
                begin(partial(self._darken, one))
            case "denied-path":
                begin(partial(self._deny, [one.component], one.names["via"]))
                begin(partial(self._tell, one.kind, one.component))
            case "late-host" | "swapped-cables":  # since the world was made
                begin(partial(self._tell, one.kind, one.component))
            case _:
                begin(partial(self._retable, one))

    def _again(self, one: Hidden, verb: str) -> None:
        """Break it now, undo it after `down_s`, and once more after `up_s`."""
        now_s = self.now_s
        self._inject(verb, one.component)
        back_s = now_s + one.numbers["down_s"]
        self._at(back_s, partial(self._undo, verb, one.component))
        self._at(back_s + one.numbers["up_s"], partial(self._again, one, verb))

    def _darken(self, one: Hidden) -> None:
        """Switch a NIC's port off, and leave the leaf in the belief that its port is up."""
        name, _, plane = one.component.partition(".p")
        ref = PortRef(self.plan.host(name), int(plane) + 1)
        usual = healthy(self.plan, ref)
        self.world.carry_out(PortChange(ref, dark(usual), usual))
        self._tell(one.kind, one.component)

    def _retable(self, one: Hidden) -> None:
        switch = self.plan.switch_node(one.component)
        entities: Collection[Entity] = changed(self.plan, one, tables(self.plan, switch, virtual_time=True))
        self.world.fabric.switches[switch].install(entities)
        self._tell(one.kind, one.component)


DOWN, LOSS, DELAY, RATE, CRASH = "link-down", "loss", "delay", "rate", "switch-crash"


def dark(state: PortState) -> PortState:
    """A port without light."""
    down = VERBS[DOWN].impairs
    assert down is not None
    return down(state, 0.0, 0)


def end(plan: Plan, ref: PortRef) -> End:
    """A port by the numbers of the fabric."""
    if isinstance(ref.node, Host):
        return End("host", ref.node.index, ref.port)
    return End("switch", list(plan.switches()).index(ref.node), ref.port)


def _swaps(incident: Incident) -> Iterator[tuple[PortRef, PortRef]]:
    """The far ends that are exchanged, each with the end that takes its place."""
    for one in incident.hidden:
        if one.kind == "swapped-cables":
            first, second = (_far_end(incident.plan, name) for name in (one.component, one.names["other"]))
            yield first, second
            yield second, first


def _far_end(plan: Plan, cable: str) -> PortRef:
    lower, upper = (plan.node(name) for name in cable.split("-"))
    return link_between(plan, lower, upper).b
