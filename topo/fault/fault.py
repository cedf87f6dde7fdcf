"""One fault: a verb with a target, checked against a plan.

Targets: a link `p1l0-p1s2` (both directions) or `p1l0>p1s2` (one); a NIC port `h3.p2` (host 3, plane 2); a NIC `h3`;
a switch `p1s2`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from common.terminal.choices import no_such
from common.terminal.source_names import shown
from topo.fault.verb import VERBS, FaultError, Verb
from topo.graph import PortRef, link_at, link_between, links, peer
from topo.node import Switch
from topo.plan import Plan


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault with its target in canonical spelling, so that two spellings of one fault are equal."""

    verb: str
    target: str
    value: float | None = None
    seed: int = 0  # of what the verb draws by chance

    def __str__(self) -> str:
        """Verb and target, as messages name a fault."""
        return f"{self.verb} {self.target}"

    def line(self, state: Literal["begin", "end"]) -> dict[str, Any]:
        """What a journal's `fault` line says of it."""
        arguments = {} if self.value is None else {"value": self.value}
        return {"verb": self.verb, "target": self.target, "state": state, "arguments": arguments}

    def describe(self) -> str:
        """The same with its number, as `fault` takes it."""
        argument = VERBS[self.verb].argument
        return str(self) + (f" {self.value:g} {argument.name}" if argument and self.value is not None else "")


def make_fault(plan: Plan, verb: str, target: str, value: float | None = None, seed: int = 0) -> Fault:
    """A checked fault with its target in canonical spelling. FaultError says what is wrong and what would be valid."""
    try:
        return _made(plan, verb, target, value, seed)
    except FaultError as error:
        raise type(error)(shown(str(error), plan.names)) from None


def _made(plan: Plan, verb: str, target: str, value: float | None, seed: int) -> Fault:
    if verb not in VERBS:
        raise FaultError(no_such("fault", verb, VERBS))
    spec = VERBS[verb]
    if spec.argument is None and value is not None:
        raise FaultError(f"{verb} must be given without a number (got {value:.15g})")
    if spec.argument is not None and (value is None or not spec.argument.low <= value <= spec.argument.high):
        raise FaultError(f"{verb}: {spec.argument.rule('none' if value is None else f'{value:.15g}')}")
    fault = Fault(verb, plan.own_names(target.strip().replace("–", "-")), value, seed if spec.chance else 0)
    if spec.target == "switch":
        _refuse_kind(plan, spec, _switch(plan, fault.target))
        return fault
    touched = transmitters(plan, fault)
    for ref in touched:
        if isinstance(ref.node, Switch):
            _refuse_kind(plan, spec, ref.node)
        elif not spec.host_side:
            other = peer(plan, ref).node
            raise FaultError(
                f"{verb} cannot be done at the transmit side of {ref.node}, which has no traffic manager:"
                f" give the direction that the switch sends, {other}>{ref.node}"
            )
    return replace(fault, target=_canonical(plan, fault, touched))


def targets(plan: Plan, verb: str) -> Iterator[str]:
    """Every target of this verb that the plan has and that can do it, in canonical spelling."""
    spec = VERBS[verb]
    if spec.target == "switch":
        words = [switch.name for switch in plan.switches()]
    elif spec.target == "nic port":
        words = [f"{host}.p{plane}" for host in plan.hosts() for plane in range(plan.planes)]
    elif spec.target == "nic":
        words = [host.name for host in plan.hosts()]
    else:
        ends = [(link.a.node, link.b.node) for link in links(plan)]
        words = [f"{a}-{b}" for a, b in ends]
        if spec.one_way:
            words += [word for a, b in ends for word in (f"{a}>{b}", f"{b}>{a}")]
    value = spec.argument.high if spec.argument else None
    for target in words:
        try:
            yield make_fault(plan, verb, target, value).target
        except FaultError:
            continue


def transmitters(plan: Plan, fault: Fault) -> list[PortRef]:
    """The ports whose transmit side, or carrier, a fault on a link or NIC touches. FaultError: no such target."""
    spec = VERBS[fault.verb]
    try:
        if spec.target == "nic port":
            return _nic_port(plan, fault)
        if spec.target == "nic":
            return _nic(plan, fault)
        return _ends(plan, fault, spec)
    except FaultError:
        raise
    except ValueError as error:
        raise FaultError(f"{fault.verb}: {error}") from None


def _nic_port(plan: Plan, fault: Fault) -> list[PortRef]:
    match = re.fullmatch(r"(h\d+)[.-]p(\d+)", fault.target)
    if not match:
        raise FaultError(
            f"{fault.verb}: the target must be a NIC port, host.plane, such as h3.p2 (got {fault.target!r})"
        )
    host, plane = plan.host(match[1]), int(match[2])
    if plane >= plan.planes:
        raise FaultError(f"{fault.verb}: {host} has no port in plane {plane}: planes are 0 to {plan.planes - 1}")
    ref = PortRef(host, plane + 1)
    return [ref, peer(plan, ref)]


def _nic(plan: Plan, fault: Fault) -> list[PortRef]:
    if not re.fullmatch(r"h\d+", fault.target):
        raise FaultError(f"{fault.verb}: the target must be a host, such as h3 (got {fault.target!r})")
    own = [PortRef(plan.host(fault.target), plane + 1) for plane in range(plan.planes)]
    return [ref for port in own for ref in (port, peer(plan, port))]


def _ends(plan: Plan, fault: Fault, spec: Verb) -> list[PortRef]:
    match = re.fullmatch(r"(\w+)([->])(\w+)", fault.target)
    if not match:
        raise FaultError(
            f"{fault.verb}: the target must be a link between two neighbours, such as p0l0-p0s1"
            + (", or p0l0>p0s1 for one direction" if spec.one_way else "")
            + f" (got {fault.target!r})"
        )
    if match[2] == ">" and not spec.one_way:
        raise FaultError(f"{fault.verb} works on both directions: write {match[1]}-{match[3]}")
    a, b = plan.node(match[1]), plan.node(match[3])
    link = link_between(plan, a, b)
    ends = [link.a, link.b] if link.a.node == a else [link.b, link.a]
    return ends[:1] if match[2] == ">" else ends


def _canonical(plan: Plan, fault: Fault, touched: list[PortRef]) -> str:
    """One spelling a target, so that two spellings of one fault are seen to be one."""
    link = link_at(plan, touched[0])
    if VERBS[fault.verb].target == "nic port":
        return f"{link.a.node}.p{link.a.plane}"
    if VERBS[fault.verb].target == "nic":
        return link.a.node.name
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


def _switch(plan: Plan, name: str) -> Switch:
    try:
        return plan.switch_node(name)
    except ValueError as error:
        raise FaultError(str(error)) from None
