"""From a seed and a level to an incident: hidden faults and their places, harmless oddities, and the load."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import Any

from common.seeds import Purpose, check_seed, derive
from operations.incident.kind import FaultKind, check_level, kinds_of, nodes_of
from scenarios import Workload
from topo import Host, Plan, Switch, leaf, load_plan, spine
from topo.graph import links

__all__ = ["draw"]

CALLED_S = 12.0
"""Lab time at which the operator is called: everything that is hidden has begun by then."""
ONSET_S = (5.0, 8.0)
OLD_S = (1.0, 2.0)  # when a trouble began that is over; it lasts OLD_FOR_S
OLD_FOR_S = 2.0
NONE_SHARE = 1 / 8  # of incidents from level 2 on in which nothing is wrong
ODDITIES: Mapping[int, int] = {1: 0, 2: 0, 3: 2, 4: 3, 5: 4}
LOSS_PERCENT: Mapping[int, tuple[float, float]] = {1: (30, 60), 2: (15, 30), 3: (8, 15), 4: (5, 8), 5: (3, 5)}
RATE_SHARE: Mapping[int, tuple[float, float]] = {2: (0.3, 0.4), 3: (0.4, 0.5), 4: (0.5, 0.6), 5: (0.55, 0.65)}
"""Of what a cable between switches carries without a fault: the rate of a port that is slow or wrong."""
STALL_S: Mapping[int, tuple[float, float]] = {3: (0.6, 0.9), 4: (0.4, 0.6), 5: (0.3, 0.4)}
NOISE_PERCENT = 0.1
LONG_CABLE = 1.4  # of the plan's delay


@dataclass(frozen=True, slots=True)
class Hidden:
    """One hidden fault: its kind, its component in canonical spelling, when it began, and the kind's own numbers."""

    kind: str
    component: str
    onset_s: float
    numbers: Mapping[str, float] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """Further nodes that the kind names, such as the spine of a denied path."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something harmless that may mislead: `kind` is one of `ODD`."""

    kind: str
    component: str
    at_s: float = 0.0
    value: float = 0.0


ODD = ("old-flap", "old-loss", "drained", "long-cable")
"""A cable that was down once, or lost packets once; a spine that is drained with a ticket; a longer cable."""


@dataclass(frozen=True, slots=True)
class Incident:
    """Everything that is true about one incident. A pure function of seed and level."""

    seed: int
    level: int
    plan: Plan
    hidden: tuple[Hidden, ...]
    oddities: tuple[Oddity, ...]
    noisy: tuple[str, ...]
    """Cables with a loss that the fabric's specification allows."""
    workloads: tuple[Workload, ...]

    @property
    def tickets(self) -> list[str]:
        """The tickets that the operator is told beforehand."""
        drained = [odd.component for odd in self.oddities if odd.kind == "drained"]
        return [f"{name} is drained for planned work: NICs deny every path across it" for name in drained]


class NoRoomError(Exception):
    """Every component of the kind touches something that is drawn already."""


FABRICS: Mapping[int, Mapping[str, str]] = {
    1: {},
    2: {},
    3: {"fabric.leaves": "3"},
    4: {"fabric.leaves": "3", "fabric.planes": "4"},
    5: {"fabric.leaves": "3", "fabric.planes": "4"},
}
"""The differences from the smallest plan."""
LOADS: Mapping[int, float] = {1: 0.6, 2: 0.6, 3: 0.6, 4: 0.45, 5: 0.45}
"""Of the rate of every cable."""
BURSTS = 0.03  # of the same, of every host towards one


def draw(seed: int, level: int, plan: Plan | None = None) -> Incident:
    """The incident of a seed at a level, in the level's fabric or in another. ValueError for what cannot be."""
    check_level(level)
    check_seed(seed)
    rng = Random(f"{derive(seed, Purpose.INCIDENT)} {level}")
    plan = fabric(level) if plan is None else checked(plan)
    hot = rng.choice(list(plan.hosts()))
    count = 1 if level < 4 else rng.randint(1, 2 if level == 4 else 3)
    if level > 1 and rng.random() < NONE_SHARE:
        count = 0
    taken: set[str] = set()
    oddities = tuple(_oddities(rng, plan, ODDITIES[level], taken))
    hidden: list[Hidden] = []
    kinds = kinds_of(level)
    rng.shuffle(kinds)
    while kinds and len(hidden) < count:
        with suppress(NoRoomError):  # another kind may still find a free place
            hidden.append(place(rng, plan, kinds.pop(), level, hot, taken))
    noisy = () if level < 4 else tuple(_free_cables(rng, plan, taken, 4))
    return Incident(seed, level, plan, tuple(hidden), oddities, noisy, tuple(load(plan, level, hot)))


def fabric(level: int) -> Plan:
    """The plan of a level."""
    return load_plan("tiny", {"switch": "embedded", "name": f"incident-{level}", **FABRICS[level]})


def checked(plan: Plan) -> Plan:
    """A plan of embedded switches in which incidents can be hidden. ValueError for another."""
    if plan.shape is not None or plan.encapsulation == "none" or min(plan.leaves, plan.spines) < 2:
        raise ValueError(
            f"plan {plan.name!r} must be a leaf-spine fabric with uSIDs, two leaves and two spines: incidents are drawn"
            " for those"
        )
    if plan.hosts_per_leaf > plan.spines:
        raise ValueError(
            f"plan {plan.name!r} must have as many spines as hosts per leaf, {plan.hosts_per_leaf}: the load of an"
            f" incident fills every cable alike (got {plan.spines})"
        )
    return replace(plan, switch="embedded", switch_overrides=MappingProxyType({}))


def load(plan: Plan, level: int, hot: Host) -> Iterator[Workload]:
    """Streams that use every cable alike; from level 3 on also bursts of all hosts towards one."""
    shift = plan.hosts_per_leaf if plan.leaves == 2 else plan.hosts_per_leaf + 1
    rate_bps = round(LOADS[level] * plan.links.host_rate_bps * plan.planes)
    yield Workload("permutation", {"size": 131072, "depth": 4, "messages": 0, "shift": shift, "rate_bps": rate_bps})
    if level > 2:
        others = [host.name for host in plan.hosts() if host != hot]
        options = {"size": 131072, "depth": 4, "messages": 0, "rate_bps": round(BURSTS * rate_bps)}
        yield Workload("incast", options, ranks=(hot.name, *others), name="bursts")


def place(rng: Random, plan: Plan, kind: FaultKind, level: int, hot: Host, taken: set[str]) -> Hidden:
    """One hidden fault of a kind, at nodes that nothing else touches; those are added to `taken`. NoRoomError: none."""
    onset_s = round(rng.uniform(*ONSET_S), 3)
    numbers: dict[str, float] = {}
    names: dict[str, str] = {}
    match kind.name:
        case "dead-cable" | "flapping-cable":
            component = _pick(rng, plan, [*_cables(plan), *_cables(plan, Host)], taken)
            if kind.name == "flapping-cable":
                numbers = {"down_s": round(rng.uniform(0.4, 0.9), 3), "up_s": round(rng.uniform(1.5, 3.0), 3)}
        case "nic-port-down":
            component = _pick(rng, plan, [f"{h}.p{n}" for h in plan.hosts() for n in range(plan.planes)], taken)
        case "one-way-loss":
            component = _pick(rng, plan, _directions(_cables(plan)), taken)
            numbers = {"percent": round(rng.uniform(*LOSS_PERCENT[level]), 2), "seed": rng.getrandbits(32)}
        case "wrong-rate" | "slow-port":
            cables = _cables(plan)
            component = _pick(rng, plan, cables if kind.name == "wrong-rate" else _directions(cables), taken)
            carried_bps = LOADS[level] * plan.links.host_rate_bps * plan.hosts_per_leaf / plan.spines
            numbers = {"mbps": round(rng.uniform(*RATE_SHARE[level]) * carried_bps / 1e6, 2)}
        case "missing-entry" | "wrong-entry":
            component = _pick(rng, plan, [switch.name for switch in plan.switches() if switch.role == "leaf"], taken)
            here = plan.switch_node(component)
            first, second = rng.sample([spine(here.plane, n).name for n in range(plan.spines)], 2)
            if {first, second} & taken:
                raise NoRoomError
            taken |= {first, second}
            names = {"towards": first, "instead": second}
        case "rebooting-switch":
            component = _pick(rng, plan, [switch.name for switch in plan.switches()], taken)
            numbers = {"down_s": round(rng.uniform(0.3, 0.6), 3), "up_s": round(rng.uniform(3.0, 5.0), 3)}
        case "no-trimming":
            component = _pick(rng, plan, [leaf(p, plan.leaf_of(hot)).name for p in range(plan.planes)], taken)
        case "wrong-threshold":
            component = _pick(rng, plan, [switch.name for switch in plan.switches()], taken)
            numbers = {"packets": 1}
        case "late-host":
            component = _pick(rng, plan, [host.name for host in plan.hosts()], taken)
            numbers = {"late_s": round(rng.uniform(*STALL_S[level]), 3), "every_s": round(rng.uniform(2.0, 3.5), 3)}
        case "denied-path":
            component = _pick(rng, plan, [host.name for host in plan.hosts()], taken)
            names = {"via": _pick(rng, plan, [s.name for s in plan.switches() if s.role == "spine"], taken)}
        case "swapped-cables":
            component = _pick(rng, plan, _cables(plan), taken)
            lower, upper = (plan.switch_node(name) for name in component.split("-"))
            others = [spine(upper.plane, n).name for n in range(plan.spines) if n != upper.index]
            names = {"other": f"{lower}-{_pick(rng, plan, others, taken)}"}
        case _:
            raise AssertionError(kind.name)
    return Hidden(kind.name, component, onset_s, numbers, names)


def _oddities(rng: Random, plan: Plan, count: int, taken: set[str]) -> Iterator[Oddity]:
    for name in rng.sample(ODD, count):
        at_s = round(rng.uniform(*OLD_S), 3)
        with suppress(NoRoomError):
            yield _oddity(rng, plan, name, at_s, taken)


def _oddity(rng: Random, plan: Plan, name: str, at_s: float, taken: set[str]) -> Oddity:
    if name == "drained":
        spines = [switch.name for switch in plan.switches() if switch.role == "spine"]
        return Oddity(name, _pick(rng, plan, spines, taken), 0.5)
    component = _pick(rng, plan, _cables(plan), taken)
    if name == "old-loss":
        first, second = component.split("-")
        return Oddity(name, f"{first}>{second}", at_s, round(rng.uniform(20, 40), 1))
    if name == "long-cable":
        return Oddity(name, component, 0.5, round(LONG_CABLE * plan.links.fabric_delay_ns / 1e6, 3))
    return Oddity(name, component, at_s)


def _pick(rng: Random, plan: Plan, choices: Sequence[str], taken: set[str]) -> str:
    """A component none of whose nodes is taken; its nodes are taken then. NoRoomError when there is none."""
    free = [choice for choice in choices if not nodes_of(plan, choice) & taken]
    if not free:
        raise NoRoomError
    chosen = rng.choice(free)
    taken |= nodes_of(plan, chosen)
    return chosen


def _free_cables(rng: Random, plan: Plan, taken: set[str], count: int) -> list[str]:
    free = [name for name in _cables(plan) if not nodes_of(plan, name) & taken]
    return rng.sample(free, min(count, len(free)))


def _cables(plan: Plan, lower: type[Host | Switch] = Switch) -> list[str]:
    """By name: those between switches, or those of hosts."""
    return [f"{link.a.node}-{link.b.node}" for link in links(plan) if isinstance(link.a.node, lower)]


def _directions(cables: Sequence[str]) -> list[str]:
    pairs = [name.split("-") for name in cables]
    return [f"{a}>{b}" for first, second in pairs for a, b in ((first, second), (second, first))]


def described(incident: Incident) -> list[dict[str, Any]]:
    """The truth as JSON, for the page of an incident that is over."""
    return [
        {
            "kind": fault.kind,
            "component": fault.component,
            "onset_s": fault.onset_s,
            **{key: value for key, value in fault.numbers.items() if key != "seed"},
            **fault.names,
        }
        for fault in incident.hidden
    ]
