"""The faults in force in one world. The rules are the same in every world, and in a rehearsal on paper."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from topo.fault.fault import Fault, make_fault
from topo.fault.meaning import carriers_off, dead_links, denied_evs, healthy, port_states, switch_state
from topo.fault.verb import VERBS, FaultError, PortState, SwitchState
from topo.graph import PortRef
from topo.node import Host, Switch
from topo.plan import Plan


# What changes between two sets of faults, as a list of typed changes in the order in which to carry them out.
# A world carries out each change and knows no verbs. Changes are absolute, so carrying one out twice does no harm.
@dataclass(frozen=True, slots=True)
class PortChange:
    """The carrier that a port sees, and its transmit side, are now `state`."""

    ref: PortRef
    state: PortState
    before: PortState


@dataclass(frozen=True, slots=True)
class CarrierChange:
    """A port is switched on or off: without its light both ends of the cable lose carrier.

    `node` is the state of the port's switch: a crashed switch gets nothing back with its carrier.
    """

    ref: PortRef
    on: bool
    node: SwitchState = "running"


@dataclass(frozen=True, slots=True)
class SwitchChange:
    """A switch stops, crashes or runs again. After a crash it runs without tables until it is provisioned."""

    switch: Switch
    state: SwitchState
    before: SwitchState


@dataclass(frozen=True, slots=True)
class Provisioning:
    """A switch that has just started gets its program and tables."""

    switch: Switch


@dataclass(frozen=True, slots=True)
class DenialChange:
    """The (destination, EV) that faults make a host's NIC deny, beside those that the NIC denies of itself."""

    host: Host
    add: frozenset[tuple[str, int]]
    remove: frozenset[tuple[str, int]]

    def applied(self, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The rows of agent control's `denylist.set` from those of its `denylist.get`."""
        denied = {(row["host"], row["ev"]) for row in rows}
        return [{"host": name, "ev": ev} for name, ev in sorted((denied - self.remove) | self.add)]


@dataclass(frozen=True, slots=True)
class RoutingChange:
    """All links that are dead now: a routing protocol would find them, a fabric of static tables never does."""

    dead: frozenset[tuple[str, str]]


Change = PortChange | CarrierChange | SwitchChange | Provisioning | DenialChange | RoutingChange
"""What a world carries out when the set of faults changes."""


def changes(plan: Plan, before: Sequence[Fault], after: Sequence[Fault]) -> list[Change]:
    """What to carry out, in this order, to come from the faults `before` to the faults `after`."""
    return [
        *_links(plan, before, after),
        *_switches(plan, before, after),
        *_denials(plan, before, after),
        *_routing(plan, before, after),
    ]


def _links(plan: Plan, before: Sequence[Fault], after: Sequence[Fault]) -> Iterator[Change]:
    """A switch knows that its port is down before the cable is, and that it is up only afterwards."""
    was, now = port_states(plan, before), port_states(plan, after)
    moved = []
    for ref in sorted({*was, *now}, key=str):
        old, new = was.get(ref) or healthy(plan, ref), now.get(ref) or healthy(plan, ref)
        if old != new:
            moved.append(PortChange(ref, new, old))
    was_off, now_off = carriers_off(plan, before), carriers_off(plan, after)
    yield from (change for change in moved if not change.state.up)
    for ref in sorted(now_off - was_off, key=str):
        yield CarrierChange(ref, on=False)
    for ref in sorted(was_off - now_off, key=str):
        node = switch_state(after, ref.node) if isinstance(ref.node, Switch) else "running"
        yield CarrierChange(ref, on=True, node=node)
    yield from (change for change in moved if change.state.up)


def _switches(plan: Plan, before: Sequence[Fault], after: Sequence[Fault]) -> Iterator[Change]:
    names = {fault.target for fault in (*before, *after) if VERBS[fault.verb].target == "switch"}
    for switch in sorted(plan.switch_node(name) for name in names):
        was, now = switch_state(before, switch), switch_state(after, switch)
        if was == "crashed" and now != "crashed":
            yield SwitchChange(switch, "running", was)
            # A fault on a cable outlives the crash of the switch that it hangs on.
            for ref, state in port_states(plan, after).items():
                if ref.node == switch:
                    yield PortChange(ref, state, healthy(plan, ref))
            yield Provisioning(switch)
            was = "running"
        if was != now:
            yield SwitchChange(switch, now, was)


def _denials(plan: Plan, before: Sequence[Fault], after: Sequence[Fault]) -> Iterator[Change]:
    if {fault for fault in before if VERBS[fault.verb].denies} == {f for f in after if VERBS[f.verb].denies}:
        return  # nothing to compare, and the paths of a large plan take long to list
    for host in plan.hosts():
        was, now = frozenset(denied_evs(plan, host, before)), frozenset(denied_evs(plan, host, after))
        if was != now:
            yield DenialChange(host, add=now - was, remove=was - now)


def _routing(plan: Plan, before: Sequence[Fault], after: Sequence[Fault]) -> Iterator[Change]:
    dead = dead_links(plan, after)
    if dead != dead_links(plan, before):
        yield RoutingChange(frozenset(dead))


class RefusedFaultError(FaultError):
    """A fault that cannot be injected or undone now: it is in force already, or is not, or this world cannot do it."""


class FaultableFabric(Protocol):
    """A world, as far as active faults need one: something that carries changes out."""

    def refusal(self, change: Change) -> str | None:
        """Why this change cannot be carried out here and now; None when it can."""

    def carry_out(self, change: Change) -> None:
        """Make it so."""


class FaultRecord(Protocol):
    """Where the list of faults in force is kept."""

    def locked(self) -> AbstractContextManager[object]:
        """The right to change the list."""

    def read(self) -> list[Fault]:
        """The faults in force, the oldest first."""

    def write(self, faults: Sequence[Fault]) -> None:
        """Replace the list."""

    def tell(self, fault: Fault, state: Literal["begin", "end"]) -> None:
        """A fault is about to come into force, or has ended."""


class MemoryRecord:
    """A list in memory, for one process with one thread."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def locked(self) -> AbstractContextManager[object]:
        return nullcontext()

    def read(self) -> list[Fault]:
        return list(self._faults)

    def write(self, faults: Sequence[Fault]) -> None:
        self._faults = list(faults)

    def tell(self, fault: Fault, state: Literal["begin", "end"]) -> None:
        pass


class ActiveFaults:
    """Injects and undoes faults: checks, then has the fabric carry out what changes."""

    def __init__(self, plan: Plan, fabric: FaultableFabric, record: FaultRecord | None = None) -> None:
        self.plan = plan
        self.record = record or MemoryRecord()
        self._fabric = fabric

    def faults(self) -> list[Fault]:
        """The faults in force, the oldest first."""
        return self.record.read()

    def inject(self, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
        """Put a fault in force.

        FaultError: there is no such fault; RefusedFaultError: not now. Either leaves everything as it was.
        """
        fault = make_fault(self.plan, verb, target, value, seed)
        with self.record.locked():
            before = self.record.read()
            if fault in before:
                raise RefusedFaultError(f"{fault} is in force already; undo it first")
            after = [*before, fault]
            to_do = changes(self.plan, before, after)
            for change in to_do:
                if why := self._fabric.refusal(change):
                    raise RefusedFaultError(f"{fault}: {why}")
            self.record.tell(fault, "begin")
            # On record before it is carried out: a process that dies in between leaves a fault that can be undone.
            self.record.write(after)
            self._carry_out(to_do)
            if not VERBS[verb].lasting:
                self._end(fault, after, before)
        return fault

    def undo(self, fault: Fault) -> None:
        """End a fault; the others stay in force. RefusedFaultError when it is not in force."""
        with self.record.locked():
            before = self.record.read()
            if fault not in before:
                in_force = ", ".join(map(str, before)) or "none"
                raise RefusedFaultError(f"{fault} is not in force; faults in force: {in_force}")
            after = list(before)
            after.remove(fault)
            self._end(fault, before, after)

    def heal(self) -> None:
        """Undo every fault in force, the last one first."""
        for fault in reversed(self.record.read()):
            self.undo(fault)

    def _end(self, fault: Fault, before: Sequence[Fault], after: Sequence[Fault]) -> None:
        self._carry_out(changes(self.plan, before, after))
        self.record.write(after)
        self.record.tell(fault, "end")

    def _carry_out(self, to_do: Sequence[Change]) -> None:
        for change in to_do:
            self._fabric.carry_out(change)
