"""The kinds of faults that an incident may hide. Each is complete in this table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from common.terminal.choices import no_such
from topo import Host, Plan, Switch
from topo.graph import link_between

ComponentType = Literal["cable", "direction", "switch", "nic port", "host"]
EXAMPLES: Mapping[ComponentType, str] = {
    "cable": "p0l0-p0s1",
    "direction": "p0l0>p0s1",
    "switch": "p0s1",
    "nic port": "h3.p1",
    "host": "h3",
}
LEVELS = range(1, 6)
NONE = "none"
"""The answer that nothing is wrong."""


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A fault that can be hidden, with which sort of component, from which level on."""

    name: str
    component: ComponentType
    level: int
    meaning: str


KINDS: Mapping[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind("dead-cable", "cable", 1, "both ends have lost carrier"),
        FaultKind("nic-port-down", "nic port", 1, "the NIC's port is off while the leaf's port is up"),
        FaultKind("one-way-loss", "direction", 1, "packets vanish on the cable, in one direction; both ends are up"),
        FaultKind("flapping-cable", "cable", 2, "the cable loses its carrier again and again"),
        FaultKind("wrong-rate", "cable", 2, "the ports of a cable run at another rate than the plan's"),
        FaultKind("slow-port", "direction", 2, "a port sends slower than the rate that it reports"),
        FaultKind("missing-entry", "switch", 2, "a table of the switch lacks an entry of the plan"),
        FaultKind("rebooting-switch", "switch", 2, "the switch starts again and again"),
        FaultKind("wrong-entry", "switch", 3, "an entry of the switch points to another neighbour than the plan's"),
        FaultKind("no-trimming", "switch", 3, "the switch forwards, but drops where it should trim"),
        FaultKind("wrong-threshold", "switch", 3, "the switch trims at another queue length than the plan's"),
        FaultKind("late-host", "host", 3, "the host does not run for moments at a time"),
        FaultKind("denied-path", "host", 3, "the host's NIC denies sound paths, and no ticket asks for it"),
        FaultKind("swapped-cables", "cable", 4, "two cables of a leaf are in each other's spine (name either)"),
    )
}
"""The faults that an incident may hide, by name."""


class AnswerError(ValueError):
    """A component or kind that cannot be; the message names the rule and the choices."""


def check_level(level: int) -> None:
    """ValueError for a level that cannot be."""
    if level not in LEVELS:
        raise ValueError(f"--level must be between {LEVELS[0]} and {LEVELS[-1]} (got {level})")


def kinds_of(level: int) -> list[FaultKind]:
    """The kinds that an incident of this level may hide."""
    return [kind for kind in KINDS.values() if kind.level <= level]


def canonical(plan: Plan, text: str) -> str:
    """A component in its one spelling: cables with the lower end first. AnswerError says what would be valid."""
    text = plan.own_names(text)
    try:
        if ">" in text:
            first, _, second = text.partition(">")
            a, b = plan.node(first), plan.node(second)
            link_between(plan, a, b)
            return f"{a}>{b}"
        if "-" in text:
            first, _, second = text.partition("-")
            link = link_between(plan, plan.node(first), plan.node(second))
            return f"{link.a.node}-{link.b.node}"
        if "." in text:
            name, _, port = text.partition(".")
            host = plan.host(name)
            if not (port.startswith("p") and port[1:].isdecimal() and int(port[1:]) < plan.planes):
                raise ValueError(f"{host} has the NIC ports {', '.join(f'{host}.p{n}' for n in range(plan.planes))}")
            return f"{host}.p{int(port[1:])}"
        return plan.node(text).name
    except ValueError as error:
        choices = ", ".join(f"{name} ({example})" for name, example in EXAMPLES.items())
        raise AnswerError(f"a component must be a {choices} of this fabric (got {text!r}): {error}") from None


def type_of(plan: Plan, component: str) -> ComponentType:
    """The sort of a component in canonical spelling."""
    for mark, component_type in ((">", "direction"), ("-", "cable"), (".", "nic port")):
        if mark in component:
            return component_type  # type: ignore[return-value]
    return "host" if isinstance(plan.node(component), Host) else "switch"


def nodes_of(plan: Plan, component: str) -> frozenset[str]:
    """The nodes that a component belongs to: both ends of a cable, a NIC port's host and leaf."""
    for mark in ">-":
        if mark in component:
            return frozenset(component.split(mark))
    if "." in component:
        name, _, port = component.partition(".p")
        return frozenset({name, Switch(int(port), "leaf", plan.leaf_of(plan.host(name))).name})
    return frozenset({component})


def check_answer(plan: Plan, component: str, kind: str, level: int = LEVELS[-1]) -> tuple[str, str]:
    """An answer in canonical spelling. AnswerError names the rule and the choices of a level."""
    if kind not in (valid := [candidate.name for candidate in kinds_of(level)]):
        raise AnswerError(f"{no_such('kind', kind, valid)}; the answer `none` says that all is well")
    spelled, wanted = canonical(plan, component), KINDS[kind].component
    given = type_of(plan, spelled)
    if given != wanted and {given, wanted} != {"cable", "direction"}:
        raise AnswerError(
            f"the component of {kind} must be a {wanted}, such as {EXAMPLES[wanted]} (got the {given} {component})"
        )
    return spelled, kind
