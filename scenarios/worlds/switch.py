"""A switch of the simulated world: the native data plane on the event queue."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict

from controller.direct import DirectControl
from controller.pipelines import Pipelines
from controller.tables import tables
from scenarios.worlds.events import Alarm, Events
from switch.engine import PRIORITIES, PortConfig, QueueConfig
from switch.native.engine import NativeEngine
from topo.fault import PortState, SwitchState, healthy
from topo.graph import PortRef, peer, port_queues, ports
from topo.node import Switch
from topo.plan import Plan

Deliver = Callable[[PortRef, bytes], None]


class SimulatedSwitch:
    """One native engine, provisioned; `deliver` takes what leaves each port to the other end of its cable."""

    def __init__(
        self,
        plan: Plan,
        node: Switch,
        pipelines: Pipelines,
        seed: int,
        events: Events,
        deliver: Deliver,
    ) -> None:
        self.node = node
        self.engine = NativeEngine(seed=seed)
        self.running = True
        self._plan = plan
        self._pipeline = pipelines[node.role]
        self._control: DirectControl | None = None
        self._events = events
        self._deliver = deliver
        self._alarm = Alarm(events, self.turn)
        self._peers = {ref.port: peer(plan, ref) for ref in ports(plan, node)}
        limits = {queue.priority: queue.depth_packets for queue in port_queues(plan)}
        self._queues = tuple(QueueConfig(depth_packets=limits.get(priority, 0)) for priority in range(PRIORITIES))
        for ref in ports(plan, node):
            self.set_port(ref.port, healthy(plan, ref))
        self.provision()

    # changes

    def provision(self) -> None:
        """Program and static tables, as the controller installs them, without the wire between them."""
        self._control = DirectControl(self.engine, self._pipeline)
        self._control.install(tables(self._plan, self.node, virtual_time=True))

    def set_state(self, state: SwitchState) -> None:
        """Stop, crash, or run again; after a crash without tables."""
        if state == "crashed":
            self.engine.reset()
            self._control = None
        self.running = state == "running"
        self.engine.set_running(self.running, self._events.now_ns)

    def set_port(self, port: int, state: PortState) -> None:
        """A port's carrier and transmit side: the fields of a PortState are those of the engine's PortConfig."""
        self.engine.configure_port(port, PortConfig(**asdict(state), queues=self._queues), self._events.now_ns)
        self.turn()

    # tables

    def reconverge(self, dead_links: Collection[tuple[str, str]]) -> None:
        """The tables that a routing protocol would have without these links; a crashed switch cannot be reached."""
        if self._control is not None:
            self._control.install(tables(self._plan, self.node, dead_links=dead_links, virtual_time=True))

    def differences(self) -> int:
        """How many updates would bring the switch to the plan's tables: none, when nothing was changed."""
        if self._control is None:
            return 1
        return self._control.install(tables(self._plan, self.node, virtual_time=True))

    def counters(self) -> list[dict[str, int]]:
        """Every port's totals, as in a `sample` line."""
        now_ns = self._events.now_ns
        return [{"port": port, **asdict(self.engine.port_counters(port, now_ns))} for port in self._peers]

    # events

    def receive(self, port: int, frame: bytes) -> None:
        """A frame has reached this port."""
        self.engine.receive(port, frame, self._events.now_ns)
        self.turn()

    def turn(self) -> None:
        """What is due leaves; then sleep until the next is."""
        for sent in self.engine.advance(self._events.now_ns):
            other = self._peers.get(sent.port)
            if other is not None:
                self._events.at(sent.t_ns, self._deliver, other, sent.frame)
        self._alarm.set(self.engine.next_event_ns())
