"""A lab in virtual time, looked at in the process that computes it."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from controller import Cells
from endpoint import AgentClient, call
from running.tracing import Explanation, explained, no_program
from running.view.entries import entry_rows
from running.view.lab_view import Crossing, LabView, Managers
from running.worlds import SimulatedWorld
from switch import Fate, NodeKind, PacketRecord, PortConfig, in_order
from switch.reference import ReferenceEngine
from topo import Host, Node, Switch
from topo.fault import Fault, switch_state
from topo.graph import PortRef


class VirtualLab(LabView):
    """`LabView` of a simulated world. Its time stands still but in `pass_time` and `crossing`."""

    name, virtual_time = "", True

    def __init__(self, world: SimulatedWorld) -> None:
        self.world, self.plan = world, world.plan
        self._records: list[PacketRecord] = []
        self._numbers = {node: (NodeKind.SWITCH, n) for n, node in enumerate(self.plan.switches())}

    def now_ns(self) -> int:
        return self.world.now_ns()

    def pass_time(self, seconds: float) -> None:
        self.world.wait_until(self.now_ns() + round(seconds * 1e9))

    def is_up(self, *, settled: bool = False) -> bool:
        return True

    def states(self, nodes: Collection[Node]) -> Mapping[str, str]:
        faults = self.faults()
        return {
            node.name: switch_state(faults, node) if isinstance(node, Switch) else "running, with an agent"
            for node in nodes
        }

    def programs(self, switches: Collection[Switch]) -> Mapping[str, Cells | None]:
        held = ((node.name, self.world.fabric.switches[node]) for node in switches)
        return {name: None if switch.store is None else switch.program_counters() for name, switch in held}

    def managers(self) -> Managers:
        switches = self.world.fabric.switches.items()
        return {node.name: {row["port"]: row for row in switch.counters()} for node, switch in switches}

    def port_counters(self, node: Node) -> Mapping[int, Mapping[str, int]]:
        return {row["port"]: row for row in call(self.world.clients[node.name], "counters")["ports"]}

    def agent_counters(self, host: Host) -> Mapping[str, Any] | None:
        told: Mapping[str, Any] = call(self.world.clients[host.name], "counters")
        return told

    def held(self, switch: Switch) -> list[dict[str, str]]:
        return entry_rows(self.world.fabric.switches[switch].store)

    def explain(self, switch: Switch, port: int, frame: bytes) -> Explanation:
        store = self.world.fabric.switches[switch].store
        if store is None:
            return no_program(switch)
        told = self.interfaces(switch)

        def prepare(engine: ReferenceEngine) -> None:
            store.copy_to(engine)
            for number, state in told.items():
                engine.configure_port(number, PortConfig(up=state["state"] == "up"), 0)

        return explained(prepare, port, frame)

    def crossing(self, near: PortRef, seconds: float) -> Iterable[Crossing]:
        self.record(seconds)
        self.pass_time(seconds)
        return self.recorded(near)

    def record(self, seconds: float) -> None:
        """Remember the fate of every packet, from now on and for `seconds` of lab time."""
        begin_ns = self.now_ns()
        self.world.fabric.fabric.record_packets(begin_ns, begin_ns + round(seconds * 1e9))
        self._records = []

    def recorded(self, near: PortRef) -> list[Crossing]:
        """The packets that have crossed one end of a cable since `record`, in order of time."""
        self._records += in_order(self.world.fabric.fabric.take_records())
        here, there = self._number(near), self._number(self.wired(near))
        crossings: list[Crossing] = []
        for record in self._records:
            at = (record.kind, record.node, record.port)
            if at == here and record.fate in (Fate.SENT, Fate.LOST):
                crossings.append((record.t_ns, True, record.length, record.head))
            elif at == there and record.fate is Fate.SENT and record.arrives_ns <= self.now_ns():
                crossings.append((record.arrives_ns, False, record.length, record.head))
        return sorted(crossings, key=lambda crossed: crossed[0])

    def _number(self, ref: PortRef) -> tuple[NodeKind, int, int]:
        """A port as the fabric's records name it."""
        node = ref.node
        kind, number = (NodeKind.HOST, node.index) if isinstance(node, Host) else self._numbers[node]
        return kind, number, ref.port

    def agents(self) -> Mapping[str, AgentClient]:
        return self.world.clients

    def faults(self) -> list[Fault]:
        return self.world.active.faults()

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        return self.world.active.inject(verb, target, value, seed)

    def undo(self, fault: Fault) -> None:
        self.world.active.undo(fault)
