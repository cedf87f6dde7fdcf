"""The meaning of a set of faults: for ports and carriers, for switches, for denylists, and for a routing protocol."""

from collections.abc import Callable, Iterable

from topo.fault.fault import Fault, transmitters
from topo.fault.verb import SWITCH_STATES, VERBS, PortState, SwitchState
from topo.graph import PortRef, link_at, peer, ports
from topo.node import Host, Switch
from topo.path import Path, evs
from topo.plan import Plan


def healthy(plan: Plan, ref: PortRef) -> PortState:
    """A port as the plan has it."""
    link = link_at(plan, ref)
    overhead_bytes = plan.links.wire_overhead_bytes
    return PortState(up=True, rate_bps=link.rate_bps, delay_ns=link.delay_ns, overhead_bytes=overhead_bytes)


def port_states(plan: Plan, faults: Iterable[Fault]) -> dict[PortRef, PortState]:
    """The state of every port that some fault touches. Losses compound; of several delays or rates the last counts."""
    states: dict[PortRef, PortState] = {}
    for fault in faults:
        impairs = VERBS[fault.verb].impairs
        for ref in transmitters(plan, fault) if impairs else ():
            assert impairs is not None
            states[ref] = impairs(states.get(ref) or healthy(plan, ref), fault.value or 0.0, fault.seed)
    return states


def carriers_off(plan: Plan, faults: Iterable[Fault]) -> set[PortRef]:
    """The ports that are switched off, so that both ends of their cables lose carrier."""
    off: set[PortRef] = set()
    for fault in faults:
        end = VERBS[fault.verb].switched_off
        if end is not None:
            node = Host if end == "host" else Switch
            off |= {ref for ref in transmitters(plan, fault) if isinstance(ref.node, node)}
    return off


def switch_state(faults: Iterable[Fault], switch: Switch) -> SwitchState:
    """The worst state that the faults on this switch put it in."""
    states = [VERBS[fault.verb].switch for fault in faults if fault.target == switch.name]
    return max(states, key=SWITCH_STATES.index, default="running")


def avoidance(plan: Plan, faults: Iterable[Fault]) -> Callable[[Path], bool] | None:
    """Whether NICs are told to send nothing along a path: across a switch, or by a NIC port at either end.

    None where they are told nothing, as where ECMP, not the NIC, chooses.
    """
    denying = [fault for fault in faults if VERBS[fault.verb].denies]
    if plan.encapsulation == "none" or not denying:
        return None
    avoided = {fault.target for fault in denying if VERBS[fault.verb].target == "switch"}
    closed = {ref for fault in denying if VERBS[fault.verb].target != "switch" for ref in transmitters(plan, fault)}

    def denied(path: Path) -> bool:
        ends = (PortRef(path.source, path.port), PortRef(path.destination, path.port))
        return not (avoided.isdisjoint(switch.name for switch in path.switches) and closed.isdisjoint(ends))

    return denied


def denied_evs(plan: Plan, host: Host, faults: Iterable[Fault]) -> list[tuple[str, int]]:
    """(destination, EV) of this host's paths that NICs are told to avoid."""
    denied = avoidance(plan, faults)
    if denied is None:
        return []
    return [
        (other.name, ev)
        for other in plan.hosts()
        if other != host
        for ev, path in evs(plan, host, other)
        if denied(path)
    ]


def dead_links(plan: Plan, faults: Iterable[Fault]) -> set[tuple[str, str]]:
    """The links that a routing protocol would find dead, as pairs of names, lower end first.

    A link that loses some packets stays up for a routing protocol, and so does one that is dead in one direction only.
    """
    dead: set[tuple[str, str]] = set()
    for fault in faults:
        verb = VERBS[fault.verb]
        if not verb.routing:
            continue
        if verb.target == "switch":
            refs = [
                ref for ref in ports(plan, plan.switch_node(fault.target)) if isinstance(peer(plan, ref).node, Switch)
            ]
        else:
            refs = transmitters(plan, fault)
            if len(refs) == 1:
                continue
        for link in (link_at(plan, ref) for ref in refs):
            dead.add((link.a.node.name, link.b.node.name))
    return dead
