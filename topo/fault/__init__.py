"""Faults as values: a verb, a target, sometimes a number.

What a set of faults means, and what changes between two sets, are pure functions of the plan: a world only carries
changes out.
"""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from topo.fault.active_faults import (
        ActiveFaults,
        CarrierChange,
        Change,
        DenialChange,
        PortChange,
        Provisioning,
        RoutingChange,
        SwitchChange,
    )
    from topo.fault.condition import Condition, arrival, at_switch, conditions, leaving
    from topo.fault.fault import Fault, make_fault, targets
    from topo.fault.meaning import avoidance, dead_links, healthy, port_states, switch_state
    from topo.fault.verb import VERBS, FaultError, PortState, SwitchState, Verb, verb_table
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "VERBS", "ActiveFaults", "CarrierChange", "Change", "Condition", "DenialChange", "Fault", "FaultError",
    "PortChange", "PortState", "Provisioning", "RoutingChange", "SwitchChange", "SwitchState", "Verb", "arrival",
    "at_switch", "avoidance", "conditions", "dead_links", "healthy", "leaving", "make_fault", "port_states",
    "switch_state", "targets", "verb_table",
]  # fmt: skip
