"""Faults as values: a verb, a target, sometimes a number. What a set of them means for each port and switch is a pure
function of the plan, so that injecting and undoing, in any order and in any world, is applying a difference.

Targets: a link `p1l0-p1s2` (both directions) or `p1l0>p1s2` (one); a NIC port `h3.p2` (host 3, plane 2); a switch
`p1s2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from topo.graph import PortRef, link_at, link_between, peer
from topo.node import Host, Switch
from topo.path import paths, switches
from topo.plan import SWITCH_KINDS, Plan, SwitchKind

TargetKind = Literal["link", "nic port", "switch"]
SwitchState = Literal["running", "stopped", "crashed"]


class FaultError(ValueError):
    """A fault that cannot be: the message names the verb or target, the rule and the valid choices."""


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    low: float
    high: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    target: TargetKind
    meaning: str
    argument: Argument | None = None
    one_way: bool = False  # may be given for one direction of a link
    lasting: bool = True  # stays until undone; False: over when the verb returns
    kinds: tuple[SwitchKind, ...] = SWITCH_KINDS  # whose ports or which switches can do it
    host_side: bool = True  # whether a NIC's transmit side can do it


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("link-down", "link", "both ends lose carrier"),
        Verb("blackhole", "link", "every packet is lost silently; carrier stays", one_way=True),
        Verb(
            "loss",
            "link",
            "packets are lost silently at random",
            Argument("percent", 0, 100, "share of packets lost"),
            one_way=True,
        ),
        Verb(
            "delay",
            "link",
            "propagation takes this long instead of the plan's",
            Argument("ms", 0, 1_000, "one way"),
            one_way=True,
            kinds=("embedded",),
            host_side=False,
        ),
        Verb(
            "rate",
            "link",
            "the line runs at this rate instead of the plan's",
            Argument("mbps", 0.001, 1_600_000, "Mb/s of Ethernet frame bytes"),
            one_way=True,
            host_side=False,
        ),
        Verb("port-down", "nic port", "the NIC's port is off; NIC and leaf lose carrier"),
        Verb("switch-stop", "switch", "forwards nothing; links stay up, tables are kept"),
        Verb("switch-crash", "switch", "loses tables and queues, forwards nothing; links stay up; undo provisions it"),
        Verb("switch-reboot", "switch", "a crash, then provisioned again by the verb itself", lasting=False),
        Verb("drain", "switch", "the NICs are told to deny every path across it; it keeps forwarding"),
    )
}


@dataclass(frozen=True, slots=True)
class Fault:
    verb: str
    target: str
    value: float | None = None
    seed: int = 0  # of random loss


@dataclass(frozen=True, slots=True)
class PortState:
    """One port's carrier and transmit side."""

    up: bool
    loss: float
    delay_ns: int
    rate_bps: int
    loss_seed: int = 0


def make_fault(plan: Plan, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
    """A checked fault with its target in canonical spelling. FaultError says what is wrong and what would be valid."""
    if verb not in VERBS:
        raise FaultError(f"no fault {verb!r}: valid are {', '.join(VERBS)}")
    spec = VERBS[verb]
    if spec.argument is None and value is not None:
        raise FaultError(f"{verb} takes no number, but got {value:g}")
    if spec.argument is not None:
        arg = spec.argument
        if value is None or not arg.low <= value <= arg.high:
            raise FaultError(f"{verb} needs {arg.name} ({arg.meaning}) from {arg.low:g} to {arg.high:g}, not {value}")
    fault = Fault(verb, target.strip().replace("–", "-"), value, seed)
    if spec.target == "switch":
        switch = _switch(plan, fault.target)
        _refuse_kind(plan, spec, switch)
    else:
        touched = transmitters(plan, fault)
        fault = replace(fault, target=_canonical(plan, fault, touched))
        for ref in touched:
            if isinstance(ref.node, Switch):
                _refuse_kind(plan, spec, ref.node)
            elif not spec.host_side:
                other = peer(plan, ref).node
                raise FaultError(
                    f"{verb} cannot be done at the transmit side of {ref.node}, which has no traffic manager:"
                    f" give the direction that the switch sends, {other}>{ref.node}"
                )
    return fault


def _canonical(plan: Plan, fault: Fault, touched: list[PortRef]) -> str:
    """One spelling a target, so that two spellings of one fault are seen to be one."""
    link = link_at(plan, touched[0])
    if VERBS[fault.verb].target == "nic port":
        return f"{link.a.node}.p{link.a.plane}"
    if len(touched) == 1:
        return f"{touched[0].node}>{peer(plan, touched[0]).node}"
    return f"{link.a.node}-{link.b.node}"


def _refuse_kind(plan: Plan, spec: Verb, switch: Switch) -> None:
    kind = plan.kind_of(switch)
    if kind not in spec.kinds:
        can = [verb.name for verb in VERBS.values() if kind in verb.kinds]
        raise FaultError(
            f"{spec.name}: {switch} is a {kind} switch, which cannot do it (kinds that can: {', '.join(spec.kinds)});"
            f" {kind} can do {', '.join(can)}"
        )


def transmitters(plan: Plan, fault: Fault) -> list[PortRef]:
    """The ports whose transmit side, or carrier, a fault on a link or NIC port touches."""
    spec = VERBS[fault.verb]
    try:
        if spec.target == "nic port":
            match = re.fullmatch(r"(h\d+)[.-]p(\d+)", fault.target)
            if not match:
                raise FaultError(f"{fault.verb}: {fault.target!r} is no NIC port: host.plane is wanted, such as h3.p2")
            host, plane = plan.host(match[1]), int(match[2])
            if plane >= plan.planes:
                raise FaultError(
                    f"{fault.verb}: {host} has no port in plane {plane}: planes are 0 to {plan.planes - 1}"
                )
            ref = PortRef(host, plane + 1)
            return [ref, peer(plan, ref)]
        match = re.fullmatch(r"(\w+)([->])(\w+)", fault.target)
        if not match:
            raise FaultError(
                f"{fault.verb}: {fault.target!r} is no link: two neighbours are wanted, such as p0l0-p0s1"
                + (", or p0l0>p0s1 for one direction" if spec.one_way else "")
            )
        if match[2] == ">" and not spec.one_way:
            raise FaultError(f"{fault.verb} works on both directions: write {match[1]}-{match[3]}")
        a, b = plan.node(match[1]), plan.node(match[3])
        link = link_between(plan, a, b)
    except FaultError:
        raise
    except ValueError as error:
        raise FaultError(f"{fault.verb}: {error}") from None
    ends = [link.a, link.b] if link.a.node == a else [link.b, link.a]
    return ends[:1] if match[2] == ">" else ends


def _switch(plan: Plan, name: str) -> Switch:
    try:
        return plan.switch_node(name)
    except ValueError as error:
        raise FaultError(str(error)) from None


def healthy(plan: Plan, ref: PortRef) -> PortState:
    link = link_at(plan, ref)
    return PortState(up=True, loss=0.0, delay_ns=link.delay_ns, rate_bps=link.rate_bps)


def port_states(plan: Plan, faults: Iterable[Fault]) -> dict[PortRef, PortState]:
    """The state of every port that some fault touches. Losses compound; of several delays or rates the last counts."""
    states: dict[PortRef, PortState] = {}
    for fault in faults:
        if VERBS[fault.verb].target == "switch":
            continue
        for ref in transmitters(plan, fault):
            state = states.get(ref) or healthy(plan, ref)
            value = fault.value or 0.0
            match fault.verb:
                case "link-down" | "port-down":
                    state = replace(state, up=False)
                case "blackhole":
                    state = replace(state, loss=1.0)
                case "loss":
                    seed = state.loss_seed or fault.seed
                    state = replace(state, loss=1 - (1 - state.loss) * (1 - value / 100), loss_seed=seed)
                case "delay":
                    state = replace(state, delay_ns=round(value * 1_000_000))
                case "rate":
                    state = replace(state, rate_bps=round(value * 1_000_000))
            states[ref] = state
    return states


def admin_down(plan: Plan, faults: Iterable[Fault]) -> set[PortRef]:
    """The ports that are switched off so that both ends lose carrier: a NIC's own, otherwise those of switches."""
    down = set()
    for fault in faults:
        if fault.verb in ("link-down", "port-down"):
            off = Host if fault.verb == "port-down" else Switch
            down |= {ref for ref in transmitters(plan, fault) if isinstance(ref.node, off)}
    return down


def switch_state(faults: Iterable[Fault], switch: Switch) -> SwitchState:
    verbs = {fault.verb for fault in faults if fault.target == switch.name}
    if not verbs.isdisjoint(("switch-crash", "switch-reboot")):
        return "crashed"
    return "stopped" if "switch-stop" in verbs else "running"


def denied_evs(plan: Plan, host: Host, faults: Iterable[Fault]) -> list[tuple[str, int]]:
    """(destination, EV) of this host's paths across drained switches; none where ECMP, not the NIC, chooses paths."""
    if plan.encapsulation == "none":
        return []
    drained = {fault.target for fault in faults if fault.verb == "drain"}
    if not drained:
        return []
    return [
        (other.name, path.ev)
        for other in plan.hosts()
        if other != host
        for path in paths(plan, host, other)
        if not drained.isdisjoint(switch.name for switch in switches(plan, path))
    ]


def verb_table() -> list[tuple[str, str, str, str, str]]:
    """(usage, meaning, and for each switch kind yes or no), for help texts and docs."""
    rows = []
    target = {"link": "A-B", "nic port": "HOST.pPLANE", "switch": "SWITCH"}
    for verb in VERBS.values():
        usage = f"{verb.name} {target[verb.target]}"
        if verb.one_way:
            usage = f"{verb.name} A-B|A>B"
        if verb.argument:
            usage += f" {verb.argument.name.upper()}"
        marks = ["yes" if kind in verb.kinds else "no" for kind in SWITCH_KINDS]
        rows.append((usage, verb.meaning, marks[0], marks[1], marks[2]))
    return rows
