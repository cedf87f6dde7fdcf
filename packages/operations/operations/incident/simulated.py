"""The world of an incident in virtual time: what is hidden is carried out here, and nothing writes it down."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from common.seeds import Purpose, derive
from controller import Entity
from endpoint import HostNic, VirtualHost
from operations.incident.draw import Hidden, Incident
from operations.incident.live_incident import DOWN, SAMPLE_S, LiveIncident, reported, unknowing
from running import RunDirectory
from running.transport_choice import transport
from running.view import Managers, VirtualLab
from running.worlds import Resident, SimulatedWorld
from switch import End, TimedFrame
from switch.native import NativeFabric
from topo import Host, Node, Plan, Switch
from topo.fault import VERBS, ActiveFaults, Change, PortChange, PortState, SwitchChange, healthy
from topo.graph import PortRef, link_at


class LateHost:
    """Wraps a host of virtual time. From `begin_ns` on, every `every_ns`, the host stands still for `late_ns`.

    Frames that arrive meanwhile wait; timers run late. Afterwards the NIC is told, as an agent tells its NIC when the
    kernel has not run it.
    """

    def __init__(self, virtual: VirtualHost, nic: HostNic, begin_ns: int, every_ns: int, late_ns: int) -> None:
        """ValueError unless the pauses have room between them."""
        if not 0 < late_ns < every_ns:
            raise ValueError(f"late_ns must be above 0 and below every_ns = {every_ns} (got {late_ns})")
        self._virtual = virtual
        self._nic = nic
        self._next_ns = begin_ns
        self._every_ns, self._late_ns = every_ns, late_ns
        self._waiting: list[TimedFrame] = []

    @property
    def due_ns(self) -> int | None:
        """When the host acts next: never inside of a pause."""
        due_ns, end_ns = self._virtual.due_ns, self._next_ns + self._late_ns
        if self._waiting:
            return end_ns
        if due_ns is None or due_ns < self._next_ns or due_ns >= end_ns:
            return due_ns
        return end_ns

    def live(self, arrivals: Sequence[TimedFrame], horizon_ns: int) -> list[TimedFrame]:
        """Act up to `horizon_ns`, but for the pauses in between."""
        frames = list(arrivals)
        sent: list[TimedFrame] = []
        while True:
            begin_ns, end_ns = self._next_ns, self._next_ns + self._late_ns
            before = [frame for frame in frames if frame[0] < begin_ns]
            if horizon_ns <= begin_ns:
                return sent + self._virtual.live(before, horizon_ns)
            if before or not self._waiting:
                sent += self._virtual.live(before, begin_ns)
            self._waiting += [frame for frame in frames if begin_ns <= frame[0] < end_ns]
            frames = [frame for frame in frames if frame[0] >= end_ns]
            if horizon_ns <= end_ns:
                return sent
            sent += self._wake(end_ns)

    def _wake(self, end_ns: int) -> list[TimedFrame]:
        """Run again: frames that have waited arrive at once, and timers that are overdue fire now."""
        self._next_ns += self._every_ns
        waiting, self._waiting = self._waiting, []
        if self._virtual.due_ns is not None:
            self._virtual.due_ns = max(self._virtual.due_ns, end_ns)
        self._nic.host_was_late(self._late_ns, end_ns)
        return self._virtual.live([(end_ns, host, port, frame) for _, host, port, frame in waiting], end_ns + 1)


Swaps = Mapping[PortRef, PortRef]


@dataclass(slots=True)
class CarrierReading:
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


class IncidentWorld(SimulatedWorld):
    """Virtual time whose journals hold what devices see, and not what the traffic manager knows of the cables. A full
    disk costs lines of the replay, and neither the lab nor the answer."""

    lossy = True

    def __init__(self, plan: Plan, seed: int, directory: RunDirectory, swaps: Swaps) -> None:
        self.carriers: dict[PortRef, CarrierReading] = {}
        self.rates_bps: dict[PortRef, int] = {}
        self.booted_ns: dict[Switch, int] = {}
        self.silent: set[Switch] = set()
        make = partial(RewiredFabric, {end(plan, a): end(plan, b) for a, b in swaps.items()})
        super().__init__(plan, transport("mrc"), seed, directory, lambda line: None, make)

    def carry_out(self, change: Change) -> None:
        if isinstance(change, PortChange):
            self.rates_bps[change.ref] = change.state.rate_bps
            carrier = self.carriers.setdefault(change.ref, CarrierReading())
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
        residents: dict[int, Resident] = {}
        for host, simulated in self._hosts.items():
            assert simulated.virtual is not None
            make = wrapped.get(host.name)
            resident = simulated.virtual if make is None else make(simulated.virtual, simulated.nic)
            residents[self.fabric.host_numbers[host]] = resident
        self.time.settle(residents, self._settle)

    def _journal_switch(self, node: Switch, rows: list[dict[str, int]]) -> None:
        super()._journal_switch(node, [{name: row[name] for name in row if name != "drop_loss"} for row in rows])


class SimulatedIncident(LiveIncident, VirtualLab):
    """An incident in virtual time, which passes in commands only."""

    look_s = 1.0

    def __init__(self, incident: Incident, directory: RunDirectory) -> None:
        LiveIncident.__init__(self, incident, directory)
        seed = int(derive(incident.seed, Purpose.SWITCHES))
        self.world: IncidentWorld = IncidentWorld(self.plan, seed, directory, self.swaps)
        VirtualLab.__init__(self, self.world)
        self.clients = self.hands = self.world.clients
        self._active = ActiveFaults(self.plan, self.world)
        late = {
            fault.component: partial(
                LateHost,
                begin_ns=round(fault.onset_s * 1e9),
                every_ns=round(fault.numbers["every_s"] * 1e9),
                late_ns=round(fault.numbers["late_s"] * 1e9),
            )
            for fault in incident.hidden
            if fault.kind == "late-host"
        }
        if late:
            self.world.residents(late)
        self._begin()
        self.world.sample_switches(round(SAMPLE_S * 1e9))

    def pass_time(self, seconds: float) -> None:
        end_ns = self.world.now_ns() + round(seconds * 1e9)
        for at_ns, act in self._agenda.due(end_ns):
            self.world.wait_until(at_ns)
            act()
        self.world.wait_until(end_ns)

    def close(self) -> None:
        for running in self._groups:
            running.remove()
        self.world.close()

    def _late(self, fault: Hidden) -> None:
        """Nothing: the host was wrapped when the world was made."""

    def _darken(self, fault: Hidden) -> None:
        """The leaf stays in the belief that its port is up."""
        name, _, plane = fault.component.partition(".p")
        ref = PortRef(self.plan.host(name), int(plane) + 1)
        usual = healthy(self.plan, ref)
        self.world.carry_out(PortChange(ref, dark(usual), usual))
        self._tell(fault.kind, fault.component)

    def _install(self, switch: Switch, entities: Collection[Entity]) -> None:
        self.world.fabric.switches[switch].install(entities)

    # what tools look at

    def managers(self) -> Managers:
        return unknowing(super().managers())

    def state(self, node: Node) -> tuple[str, float]:
        booted_ns = self.world.booted_ns.get(node, 0) if isinstance(node, Switch) else 0
        state = "silent" if node in self.world.silent else "running"
        return state, (self.world.now_ns() - booted_ns) / 1e9

    def interface(self, ref: PortRef) -> Mapping[str, Any]:
        carrier, planned_bps = self.world.carriers.get(ref, CarrierReading()), link_at(self.plan, ref).rate_bps
        rate_bps = planned_bps if ref in self.slow else self.world.rates_bps.get(ref, planned_bps)
        changed_s = round(carrier.changed_ns / 1e9, 3) if carrier.changes else None
        state = "up" if carrier.up else "down"
        return reported(state, rate_bps, carrier.changes, changed_s)


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
