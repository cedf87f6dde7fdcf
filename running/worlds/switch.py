"""A switch of the simulated world, provisioned as the controller does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import fields

from controller import Cells, DirectControl, Entity, Pipelines, counted, encoded
from controller.tables import tables
from switch import PRIORITIES, Engine, PortConfig, QueueConfig
from switch.p4rt import EntityStore
from topo import Plan, Switch
from topo.fault import PortState, SwitchState, healthy
from topo.graph import port_queues, ports
from topo.pfc import port_settings

TRIMMED_SHARE_DROPS = "SwitchIngress.trimmed_share.trimmed_share_drops"
"""The P4 programs' counter of them (`p4/parts/trimmed_share.p4`), with a cell to each port and traffic class."""
TRAFFIC_CLASSES = 8
PORT_FIELDS = tuple(spec.name for spec in fields(PortState))


class SimulatedSwitch:
    """One switch of a fabric. `fetch` gives its engine, advanced to the present; `clock` gives the time."""

    def __init__(
        self, plan: Plan, node: Switch, pipelines: Pipelines, fetch: Callable[[], Engine], clock: Callable[[], int]
    ) -> None:
        self.node = node
        self._fetch = fetch
        self.running = True
        self._plan = plan
        self._pipeline = pipelines[node.program]
        self._control: DirectControl | None = None
        self._clock = clock
        self._planned = encoded(self._pipeline, tables(plan, node, virtual_time=True))
        limits = {queue.priority: queue.depth_packets for queue in port_queues(plan)}
        self._queues = tuple(QueueConfig(depth_packets=limits.get(priority, 0)) for priority in range(PRIORITIES))
        self._pfc = {ref.port: port_settings(plan, ref) for ref in ports(plan, node)}
        self._wiped_share_drops = dict.fromkeys(self._pfc, 0)
        """By port: counts of `TRIMMED_SHARE_DROPS` from before crashes took the counters away."""
        for ref in ports(plan, node):
            self.set_port(ref.port, healthy(plan, ref))
        self.provision()

    @property
    def engine(self) -> Engine:
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
        self.engine.configure_port(port, PortConfig(**{**own, **self._pfc[port]}, queues=self._queues), self._clock())

    # tables

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        """Write the tables that a routing protocol would make without these links, unless the switch has crashed."""
        if self._control is not None:
            self._fetch()
            self._control.install(tables(self._plan, self.node, dead_links=dead_links, virtual_time=True))

    def install(self, entities: Iterable[Entity]) -> None:
        """Bring the tables to these entries, whether or not they are the plan's. Nothing after a crash."""
        if self._control is not None:
            self._fetch()
            self._control.install(entities)

    def program_counters(self) -> Cells:
        """The P4 program's counters, by port and class; empty after a crash."""
        if self._control is None:
            return {}
        engine = self.engine
        return counted(
            self._plan, self.node, self._pipeline.p4info, lambda name, cell: engine.read_counter(name, cell).packets
        )

    def differences(self) -> int:
        """How many updates would bring the switch to the plan's tables: 0 if nothing was changed."""
        if self._control is None:
            return 1
        self._fetch()
        return self._control.write(self._planned)

    def counters(self) -> list[dict[str, int]]:
        """Every port's totals, as in a `sample` line, and the trimmed packets that found no room in their share."""
        engine, now_ns = self.engine, self._clock()
        return [
            {"port": port, **engine.port_counters(port, now_ns)._asdict(), "drop_trimmed_share": drops}
            for port, drops in self._share_drops(engine).items()
        ]

    def _share_drops(self, engine: Engine) -> dict[int, int]:
        """By port, since the beginning."""
        found = dict(self._wiped_share_drops)
        if self._control is not None:  # a crashed switch has no program
            for port in found:
                cells = range(port * TRAFFIC_CLASSES, (port + 1) * TRAFFIC_CLASSES)
                found[port] += sum(engine.read_counter(TRIMMED_SHARE_DROPS, cell).packets for cell in cells)
        return found
