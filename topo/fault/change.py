"""What changes between two sets of faults, as a list of typed changes in the order in which to carry them out.

A world carries out each change and knows no verbs. Changes are absolute, so carrying one out twice does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topo.fault.fault import Fault
from topo.fault.meaning import carriers_off, dead_links, denied_evs, healthy, port_states, switch_state
from topo.fault.verb import VERBS, PortState, SwitchState
from topo.graph import PortRef
from topo.node import Host, Switch
from topo.plan import Plan


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
