"""The recorded path of a fault, and what it shows: knows only what tools answer."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from operations.incident.draw import Hidden
from operations.incident.signs import CollectedAnswers, Sign, findings
from operations.incident.words import parse
from topo import Host, Plan, leaf
from topo.path import paths

PATHS = Path(__file__).with_name("paths.toml")
Do = Callable[[str], Mapping[str, Any]]
"""Carries out a line of words; returns the tool's answer."""


@cache
def recorded() -> Mapping[str, Mapping[str, Any]]:
    """The recorded paths by kind: `commands`, with places, and a `hint`."""
    return tomllib.loads(PATHS.read_text(encoding="utf-8"))


def commands(plan: Plan, fault: Hidden) -> list[str]:
    """The recorded commands that show a hidden fault."""
    return [text.format(**places(plan, fault)) for text in recorded()[fault.kind]["commands"]]


def places(plan: Plan, fault: Hidden) -> dict[str, str]:
    """The nodes for the places in recorded commands."""
    names = {"component": fault.component, "other": "", "near": "", "far": "", "cable": "", "host": "", "leaf": ""}
    if "-" in fault.component or ">" in fault.component:
        first, second = fault.component.replace(">", "-").split("-")
        names |= {"near": first, "far": second, "cable": f"{first}-{second}"}
    if "." in fault.component:
        host, _, plane = fault.component.partition(".p")
        names |= {"host": host, "leaf": leaf(int(plane), plan.leaf_of(plan.host(host))).name}
    if fault.kind == "wrong-entry":
        names["other"] = fault.names["instead"]
    if fault.kind == "denied-path":
        names["peer"] = far_host(plan, plan.host(fault.component))
    if fault.kind == "swapped-cables":
        lower, upper = (plan.switch_node(name) for name in fault.component.split("-"))
        source = plan.host_at(lower.index, 0)
        target = far_host(plan, source)
        way = next(
            path
            for path in paths(plan, source, plan.host(target))
            if path.plane == upper.plane and path.spine == upper.index
        )
        other = fault.names["other"].split("-")[1]
        names |= {"other": other, "host": source.name, "peer": target, "ev": f"{way.ev:#x}"}
    return names


def far_host(plan: Plan, host: Host) -> str:
    return next(other.name for other in plan.hosts() if plan.leaf_of(other) != plan.leaf_of(host))


def shown_by(
    plan: Plan, tickets: Sequence[str], do: Do, lines: Sequence[str], *, virtual_time: bool = True
) -> list[Sign]:
    """The findings that these commands lead to."""
    seen = CollectedAnswers(plan, tickets, virtual_time)
    for line in lines:
        seen.take(parse(line)[0], do(line))
    return findings(seen)
