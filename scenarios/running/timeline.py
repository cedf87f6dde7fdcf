"""A timeline carried out: instants at which to inject a fault or undo one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scenarios.scenario import Fault
from topo.graph import peer, ports
from topo.node import Switch
from topo.plan import Plan

# What a routing protocol notices. A link that loses packets stays up for it, and so does a drained switch.
LINK_VERBS = ("link-down", "blackhole")
SWITCH_VERBS = ("switch-stop", "switch-crash")


@dataclass(frozen=True, slots=True)
class Moment:
    """At `at_s` seconds into the run, begin or end `fault`."""

    at_s: float
    begin: bool
    fault: Fault


def dead_links(plan: Plan, faults: Iterable[Fault]) -> set[tuple[str, str]]:
    """The links that these faults take away, as pairs of switch names: what a routing protocol would find dead."""
    dead: set[tuple[str, str]] = set()
    for fault in faults:
        if fault.verb in LINK_VERBS and "-" in fault.target:
            first, second = fault.target.split("-")
            dead.add((first, second))
        elif fault.verb in SWITCH_VERBS:
            switch = plan.switch_node(fault.target)
            others = (peer(plan, ref).node for ref in ports(plan, switch))
            dead |= {(switch.name, other.name) for other in others if isinstance(other, Switch)}
    return dead


def moments(faults: Sequence[Fault], starts_s: dict[str, float]) -> list[Moment]:
    """All beginnings and ends in order of time. `starts_s` is when each phase starts.

    At the same instant ends come first, so that a target is whole before it breaks again.
    """
    result = []
    for fault in faults:
        if fault.phase not in starts_s:
            raise ValueError(f"{fault.verb} {fault.target}: no phase {fault.phase!r}: there is {', '.join(starts_s)}")
        at_s = starts_s[fault.phase] + fault.at_s
        result.append(Moment(at_s, True, fault))
        if fault.for_s is not None:
            result.append(Moment(at_s + fault.for_s, False, fault))
    return sorted(result, key=lambda moment: (moment.at_s, moment.begin))
