"""Whether a timeline is one that a transport must survive: no pair of hosts without a sound path for long."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

from endpoint.nic import Settings
from running import moments
from scenarios import TimedFault
from topo import Plan, Switch
from topo.fault import VERBS, Fault, FaultError, conditions, make_fault
from topo.path import paths
from topo.topologies import Topology

OUTAGE_ROUND_TRIPS = 15
"""Without any sound path: less than the seven linear retries of a queue pair, of more than four round trips each."""

RESPITE_ROUND_TRIPS = 20
"""A sound path for less than this ends no outage: so long may a queue pair wait between two askings."""


def paths_known(plan: Plan, settings: Mapping[str, Any]) -> int:
    """How many paths to a peer a queue pair has, where there are as many, with these settings of its transport.

    A queue pair draws its EVs when it is made, as many in every plane, and has no others afterwards. A selection that
    does not look at the health of paths needs all that it has: one bad path is as bad as having no other.
    """
    if settings.get("selection", "mrc") != "mrc":
        return 1
    usual = Settings()
    active, backup = (settings.get(name, getattr(usual, name)) for name in ("evs_active", "evs_backup"))
    return int(max(1, active // plan.planes) + backup // plan.planes) * plan.planes


def longest_outage_s(plan: Plan, faults: Sequence[TimedFault], known: int) -> float:
    """The longest time for which some pair of hosts has no path without a fault. `faults` are of one phase.

    A queue pair has `known` of the paths, any of them: as many bad ones are an outage. Outages with too short a respite
    between them are one.
    """
    shape = plan.topology
    all_ways = ways(shape)
    respite_s = lab_seconds(plan, RESPITE_ROUND_TRIPS)
    dead_since: dict[int, float] = {}
    sound_since: dict[int, float] = {}
    longest, in_force = 0.0, Counter[Fault]()
    for moment in moments(faults, dict.fromkeys({fault.phase for fault in faults}, 0.0)):
        fault = fault_of(plan, moment.fault)
        if not VERBS[fault.verb].lasting:
            continue  # a switch that reboots is whole again by itself
        in_force[fault] += 1 if moment.begin else -1
        bad = frozenset().union(*(spoilt(shape, fault) for fault, count in in_force.items() if count > 0))
        for number, own in enumerate(all_ways):
            if len(own & bad) < min(len(own), known):
                if number in dead_since:
                    since = sound_since.setdefault(number, moment.at_s)
                    longest = max(longest, since - dead_since[number])
            elif moment.at_s - sound_since.pop(number, moment.at_s) < respite_s:
                dead_since.setdefault(number, moment.at_s)
            else:
                dead_since[number] = moment.at_s
    return longest if dead_since.keys() == sound_since.keys() else float("inf")


def lab_seconds(plan: Plan, round_trips: int) -> float:
    """So many base round trips of the plan, in seconds of lab time."""
    return round_trips * plan.base_rtt_ns / 1e9 / plan.pace


Way = tuple[int, int, frozenset[Switch]]
"""Number of the pair, plane, switches: a path in both directions."""


def on(shape: Topology) -> Plan:
    """A plan of this shape: all that paths depend on."""
    return Plan("shape", shape.planes, shape.leaves, shape.spines, shape.hosts_per_leaf, shape=shape)


@lru_cache(maxsize=64)
def ways(shape: Topology) -> tuple[frozenset[Way], ...]:
    """All ways of each pair of hosts."""
    plan = on(shape)
    return tuple(
        frozenset((number, path.plane, frozenset(path.switches)) for path in paths(plan, *pair))
        for number, pair in enumerate(combinations(plan.hosts(), 2))
    )


@lru_cache(maxsize=4096)
def spoilt(shape: Topology, fault: Fault) -> frozenset[Way]:
    """The ways that a fault touches, in either direction."""
    plan = on(shape)
    return frozenset(
        (number, path.plane, frozenset(path.switches))
        for number, (first, other) in enumerate(combinations(plan.hosts(), 2))
        for path in (*paths(plan, first, other), *paths(plan, other, first))
        if conditions(plan, [fault], path)
    )


def fault_of(plan: Plan, timed: TimedFault) -> Fault:
    """The fault of an entry. FaultError when the plan has no such target."""
    return make_fault(plan, timed.verb, timed.target, timed.value, timed.seed)


def survivable(plan: Plan, faults: Sequence[TimedFault], known: int) -> bool:
    """Whether every entry is possible, ends, and no outage of a pair that has `known` paths is too long."""
    try:
        longest_s = longest_outage_s(plan, faults, known) if overlap_free(plan, faults) else float("inf")
        return longest_s <= lab_seconds(plan, OUTAGE_ROUND_TRIPS)
    except FaultError:
        return False


def overlap_free(plan: Plan, faults: Sequence[TimedFault]) -> bool:
    """Whether no entry is injected while the same fault is in force: a world would refuse that."""
    held: dict[Fault, float] = {}
    for entry in sorted(faults, key=lambda entry: entry.at_s):
        fault = fault_of(plan, entry)
        if entry.at_s < held.get(fault, -1.0):
            return False
        held[fault] = entry.at_s + (entry.for_s or 0.0)
    return True
