"""Faults as values: a verb, a target, sometimes a number.

What a set of faults means, and what changes between two sets, are pure functions of the plan: a world only carries
changes out.
"""

from topo.fault.active_faults import ActiveFaults, FaultableFabric, FaultRecord, MemoryRecord, RefusedFaultError
from topo.fault.change import (
    CarrierChange,
    Change,
    DenialChange,
    PortChange,
    Provisioning,
    RoutingChange,
    SwitchChange,
    changes,
)
from topo.fault.condition import Condition, arrival, at_switch, conditions, leaving
from topo.fault.fault import Fault, make_fault, targets, transmitters
from topo.fault.meaning import avoidance, carriers_off, dead_links, denied_evs, healthy, port_states, switch_state
from topo.fault.verb import (
    VERBS,
    FaultArgument,
    FaultError,
    PortState,
    SwitchState,
    TargetKind,
    Verb,
    usages,
    verb_table,
)

__all__ = [
    "VERBS",
    "ActiveFaults",
    "CarrierChange",
    "Change",
    "Condition",
    "DenialChange",
    "Fault",
    "FaultArgument",
    "FaultError",
    "FaultRecord",
    "FaultableFabric",
    "MemoryRecord",
    "PortChange",
    "PortState",
    "Provisioning",
    "RefusedFaultError",
    "RoutingChange",
    "SwitchChange",
    "SwitchState",
    "TargetKind",
    "Verb",
    "arrival",
    "at_switch",
    "avoidance",
    "carriers_off",
    "changes",
    "conditions",
    "dead_links",
    "denied_evs",
    "healthy",
    "leaving",
    "make_fault",
    "port_states",
    "switch_state",
    "targets",
    "transmitters",
    "usages",
    "verb_table",
]
