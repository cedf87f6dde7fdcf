"""Virtual time: the fabric, by the plan's names, and the hosts in turns, as long as the other cannot interfere.

The result is the same as if every instant were served by itself (`switch.fabric`). In a turn a host takes every frame
that reaches it, each at its own time. Control operations happen between turns, after all else of their instant.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from math import ceil
from random import Random
from typing import Protocol

from common.seeds import Purpose, derive
from controller import Cells, DirectControl, Entity, Pipelines, ProgramVariant, compiled_pipelines, counted, encoded
from controller.tables import tables
from switch import PRIORITIES, End, EngineControl, Fabric, NicPort, PortConfig, QueueConfig, TimedFrame
from switch.native import NativeFabric
from switch.p4rt import EntityStore
from topo import Host, Node, Plan, Switch
from topo.fault import PortState, SwitchState, healthy
from topo.graph import PortRef, link_at, links, port_queues, ports
from topo.pfc import port_settings


class Resident(Protocol):
    """A host, as virtual time sees one: something at the fabric's edge that takes and sends frames."""

    @property
    def due_ns(self) -> int | None:
        """When the host acts next if no frame reaches it."""

    def live(self, arrivals: Sequence[TimedFrame], horizon_ns: int) -> list[TimedFrame]:
        """Act up to `horizon_ns`; returns the frames that the host has handed to its ports."""


class VirtualTime:
    """`now_ns` is the instant that has been reached: everything up to this instant, and at it, has happened."""

    def __init__(self, fabric: Fabric, tick_ns: int) -> None:
        """A caller that waits for something to happen looks once a `tick_ns`. A look ends a turn, so that ticks as
        short as turns would double their number."""
        self.now_ns = 0
        self._fabric = fabric
        self._tick_ns = max(tick_ns, 1)
        self._residents: Mapping[int, Resident] = {}
        self._before: Callable[[], None] = lambda: None
        self._alarms: list[tuple[int, int]] = []  # (time, number); stale when the resident's due_ns is another

    def settle(self, residents: Mapping[int, Resident], before: Callable[[], None] = lambda: None) -> None:
        """Take the hosts of this process by their numbers in the fabric; `before` is called before time moves."""
        self._residents = residents
        self._before = before
        self._alarms.clear()
        for number in residents:
            self.wake(number)

    def wake(self, number: int) -> None:
        """Note when a resident is due, after a call has changed it."""
        due_ns = self._residents[number].due_ns
        if due_ns is not None:
            heapq.heappush(self._alarms, (due_ns, number))

    @property
    def next_ns(self) -> int | None:
        """The next instant at which the fabric or a host acts."""
        return self._own_next_ns()

    def _own_next_ns(self) -> int | None:
        return min((t_ns for t_ns in (self._fabric.next_ns, self._alarm_ns()) if t_ns is not None), default=None)

    def run_until(self, t_ns: int) -> None:
        """Let time pass up to `t_ns`, and have everything at that instant happen too."""
        self._pass(t_ns + 1, t_ns + 1)
        self.now_ns = max(self.now_ns, t_ns)

    def _pass(self, end_ns: int, hosts_end_ns: int) -> None:
        """Have everything before `end_ns` happen, and what hosts do before `hosts_end_ns` (not less) as far as no
        switch can change it any more."""
        self._before()
        fabric = self._fabric
        while fabric.reached_ns < end_ns or not self._over(end_ns):
            horizon_ns = min(fabric.run(self._alarm_ns(), end_ns), hosts_end_ns)
            numbers = dict.fromkeys(fabric.gather(horizon_ns))
            numbers.update(dict.fromkeys(self._due(horizon_ns)))
            for number in numbers:  # one host after the other, so that its frames are still in caches
                resident = self._residents[number]
                before_ns = resident.due_ns
                frames = resident.live(fabric.collect(number), horizon_ns)
                if resident.due_ns != before_ns:
                    self.wake(number)
                if frames:
                    fabric.send(frames)
            self.now_ns = max(self.now_ns, horizon_ns - 1)  # for who watches; no host is asked for anything earlier

    def pass_until(self, happened: Callable[[], bool], limit_ns: int) -> bool:
        """Let time pass until something has happened, looking once a tick; False when it has not by `limit_ns`."""
        while not happened():
            if self.now_ns >= limit_ns:
                return False
            next_ns = self.next_ns
            tick_ns = limit_ns if next_ns is None else -(-next_ns // self._tick_ns) * self._tick_ns
            self.run_until(min(tick_ns, limit_ns))
        return True

    def _over(self, end_ns: int) -> bool:
        next_ns = self._own_next_ns()
        return next_ns is None or next_ns >= end_ns

    def _alarm_ns(self) -> int | None:
        alarms = self._alarms
        while alarms and self._residents[alarms[0][1]].due_ns != alarms[0][0]:
            heapq.heappop(alarms)
        return alarms[0][0] if alarms else None

    def _due(self, before_ns: int) -> list[int]:
        """The residents that are due before a time; each loses its alarm and gets a new one when it has acted."""
        numbers = []
        while (due_ns := self._alarm_ns()) is not None and due_ns < before_ns:
            numbers.append(heapq.heappop(self._alarms)[1])
        return numbers


MakeFabric = Callable[[Sequence[int], int, int], Fabric]
"""Makes a fabric from a seed for each switch, the number of hosts, and the ports of a host."""
NIC_FIELDS = tuple(spec.name for spec in fields(NicPort))


TRIMMED_SHARE_DROPS = "SwitchIngress.trimmed_share.trimmed_share_drops"
"""The P4 programs' counter of them (`p4/parts/trimmed_share.p4`), with a cell to each port and traffic class."""
TRAFFIC_CLASSES = 8
PORT_FIELDS = tuple(spec.name for spec in fields(PortState))


class SimulatedSwitch:
    """One switch of a fabric. `fetch` gives its engine, advanced to the present; `clock` gives the time."""

    def __init__(
        self,
        plan: Plan,
        node: Switch,
        pipelines: Pipelines,
        fetch: Callable[[], EngineControl],
        clock: Callable[[], int],
        variant: ProgramVariant | None = None,
    ) -> None:
        self.node = node
        self._variant = variant
        self._down: set[int] = set()
        """Ports without a link, of which a variant's entries may tell."""
        self._fetch = fetch
        self.running = True
        self._plan = plan
        self._pipeline = pipelines[node.program]
        self._control: DirectControl | None = None
        self._clock = clock
        self._depths = {queue.priority: queue.depth_packets for queue in port_queues(plan)}
        self._shares: dict[int, float] = {}
        self._dead_links: Collection[tuple[str, str]] = ()
        self._planned = encoded(self._pipeline, self._tables())
        self._pfc = {ref.port: port_settings(plan, ref) for ref in ports(plan, node)}
        self._wiped_share_drops = dict.fromkeys(self._pfc, 0)
        """By port: counts of `TRIMMED_SHARE_DROPS` from before crashes took the counters away."""
        for ref in ports(plan, node):
            self.set_port(ref.port, healthy(plan, ref))
        self.provision()

    @property
    def engine(self) -> EngineControl:
        """The switch's engine at this instant."""
        return self._fetch()

    @property
    def store(self) -> EntityStore | None:
        """The entries that the control plane has put into the switch; None after a crash."""
        return None if self._control is None else self._control.store

    # changes

    def provision(self) -> None:
        """Load the program and write the static tables, as the controller does, but without a wire."""
        self._control = DirectControl(self.engine, self._pipeline)
        self._control.write(self._planned)

    def set_state(self, state: SwitchState) -> None:
        """Stop, crash, or run again, after a crash without tables."""
        engine = self.engine
        if state == "crashed":
            self._wiped_share_drops = self._share_drops(engine)
            engine.reset()
            self._control = None
        self.running = state == "running"
        engine.set_running(self.running, self._clock())

    def set_port(self, port: int, state: PortState) -> None:
        """Set a port's carrier and transmit side: the fields of a PortState are those of the engine's PortConfig."""
        own = {name: getattr(state, name) for name in PORT_FIELDS}
        usual_bps = link_at(self._plan, PortRef(self.node, port)).rate_bps
        share = self._plan.queue_share(state.rate_bps, usual_bps)
        depths = [ceil(self._depths.get(priority, 0) * share) for priority in range(PRIORITIES)]
        queues = tuple(QueueConfig(depth_packets=depth) for depth in depths)
        self.engine.configure_port(port, PortConfig(**{**own, **self._pfc[port]}, queues=queues), self._clock())
        changed = self._variant is not None and state.up == (port in self._down)
        if changed:
            self._down ^= {port}
        if changed or share != self._shares.get(port, 1.0):
            self._shares[port] = share
            self._planned = encoded(self._pipeline, self._tables())
            self.reconverge(self._dead_links)

    # tables

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        """Write the tables that a routing protocol would make without these links, unless the switch has crashed."""
        self._dead_links = dead_links
        self.install(self._tables(dead_links))

    def _tables(self, dead_links: Collection[tuple[str, str]] = ()) -> list[Entity]:
        planned = tables(self._plan, self.node, dead_links=dead_links, shares=self._shares, virtual_time=True)
        if self._variant is not None:
            planned += self._variant.entries(self._plan, self.node, self._down, dead_links)
        return planned

    def install(self, entities: Iterable[Entity]) -> None:
        """Bring the tables to these entries, whether or not they are the plan's. Nothing after a crash."""
        if self._control is not None:
            self._fetch()
            self._control.install(entities)

    def program_counters(self) -> Cells:
        """The P4 program's counters, by port and class; empty after a crash."""
        if self._control is None:
            return {}
        return counted(self._plan, self.node, self._pipeline.p4info, self.engine.read_packet_counts)

    def differences(self) -> int:
        """How many updates would bring the switch to the plan's tables: 0 if nothing was changed."""
        if self._control is None:
            return 1
        self._fetch()
        return self._control.write(self._planned)

    def counters(self) -> list[dict[str, int]]:
        """Every port's totals, and the trimmed packets that found no room in their share."""
        engine, now_ns = self.engine, self._clock()
        return [
            {"port": port, **engine.port_counters(port, now_ns)._asdict(), "drop_trimmed_share": drops}
            for port, drops in self._share_drops(engine).items()
        ]

    def sample(self) -> list[dict[str, int]]:
        """The same as in a line of a journal."""
        engine = self.engine
        drops = self._share_drops(engine)
        rows = engine.sample(list(drops), self._clock())
        for row in rows:
            row["drop_trimmed_share"] = drops[row["port"]]
        return rows

    def _share_drops(self, engine: EngineControl) -> dict[int, int]:
        """By port, since the beginning."""
        drops = dict(self._wiped_share_drops)
        if self._control is None:  # a crashed switch has no program
            return drops
        packets = engine.read_packet_counts(TRIMMED_SHARE_DROPS, 0, (max(drops) + 1) * TRAFFIC_CLASSES)
        if any(packets):
            for port in drops:
                drops[port] += sum(packets[port * TRAFFIC_CLASSES : (port + 1) * TRAFFIC_CLASSES])
        return drops


class SimulatedFabric:
    """Every switch of a plan, provisioned, and every cable between switches and to hosts, with carrier."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        make: MakeFabric = NativeFabric,
        owns: Callable[[Node], bool] = lambda _: True,
        variant: ProgramVariant | None = None,
    ) -> None:
        """`owns` says which nodes are this process's: other switches are cables' ends and nothing else. `variant`: what
        switches run in place of the programs in `p4/`."""
        seeds = Random(derive(seed, Purpose.SWITCHES))
        pipelines = compiled_pipelines(None if variant is None else variant.programs)
        self._switch_numbers = {node: number for number, node in enumerate(plan.switches())}
        self.host_numbers = {host: number for number, host in enumerate(plan.hosts())}
        engine_seeds = [seeds.getrandbits(64) for _ in self._switch_numbers]
        self.fabric = make(engine_seeds, len(self.host_numbers), plan.planes + 1)
        for link in links(plan):
            self.fabric.connect(self._end(link.a), self._end(link.b))
        self.switches = {
            node: SimulatedSwitch(plan, node, pipelines, partial(self.fabric.switch, number), self._now_ns, variant)
            for node, number in self._switch_numbers.items()
            if owns(node)
        }
        for host in self.host_numbers:
            for ref in ports(plan, host):
                self.set_port(ref, healthy(plan, ref))

    def set_port(self, ref: PortRef, state: PortState) -> None:
        """Set a port's carrier and transmit side."""
        if isinstance(ref.node, Switch):
            if ref.node in self.switches:
                self.switches[ref.node].set_port(ref.port, state)
        else:
            # A NIC's port knows fewer impairments than a switch's: verbs with `host_side` must keep to these.
            nic_port = NicPort(**{name: getattr(state, name) for name in NIC_FIELDS})
            self.fabric.configure_nic_port(self.host_numbers[ref.node], ref.port, nic_port)

    def _now_ns(self) -> int:
        return max(self.fabric.reached_ns - 1, 0)

    def _end(self, ref: PortRef) -> End:
        if isinstance(ref.node, Host):
            return End("host", self.host_numbers[ref.node], ref.port)
        return End("switch", self._switch_numbers[ref.node], ref.port)
