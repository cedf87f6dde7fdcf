"""Solvers, which know only what tools answer: the recorded path of a fault, one that looks everywhere, a naive one."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from operations.incident.draw import Hidden
from operations.incident.score import Named
from operations.incident.signs import CollectedAnswers, Sign, findings
from operations.incident.words import parse
from topo import Host, Plan, Switch, leaf
from topo.graph import link_between
from topo.path import paths

PATHS = Path(__file__).with_name("paths.toml")
Do = Callable[[str], Mapping[str, Any]]
"""Carries out a line of words; returns the tool's answer."""
WATCH_S = 12


@cache
def recorded() -> Mapping[str, Mapping[str, Any]]:
    """The recorded paths by kind: `commands`, with places, and a `hint`."""
    return tomllib.loads(PATHS.read_text(encoding="utf-8"))


def commands(plan: Plan, one: Hidden) -> list[str]:
    """The recorded commands that show a hidden fault."""
    return [text.format(**places(plan, one)) for text in recorded()[one.kind]["commands"]]


def places(plan: Plan, one: Hidden) -> dict[str, str]:
    """The nodes for the places in recorded commands."""
    found = {"component": one.component, "other": "", "near": "", "far": "", "cable": "", "host": "", "leaf": ""}
    if "-" in one.component or ">" in one.component:
        first, second = one.component.replace(">", "-").split("-")
        found |= {"near": first, "far": second, "cable": f"{first}-{second}"}
    if "." in one.component:
        host, _, plane = one.component.partition(".p")
        found |= {"host": host, "leaf": leaf(int(plane), plan.leaf_of(plan.host(host))).name}
    if one.kind == "wrong-entry":
        found["other"] = one.names["instead"]
    if one.kind == "denied-path":
        found["peer"] = _far_host(plan, plan.host(one.component))
    if one.kind == "swapped-cables":
        lower, upper = (plan.switch_node(name) for name in one.component.split("-"))
        source = plan.host_at(lower.index, 0)
        target = _far_host(plan, source)
        way = next(
            path
            for path in paths(plan, source, plan.host(target))
            if path.plane == upper.plane and path.spine == upper.index
        )
        other = one.names["other"].split("-")[1]
        found |= {"other": other, "host": source.name, "peer": target, "ev": f"{way.ev:#x}"}
    return found


def _far_host(plan: Plan, host: Host) -> str:
    return next(other.name for other in plan.hosts() if plan.leaf_of(other) != plan.leaf_of(host))


def shown_by(
    plan: Plan, tickets: Sequence[str], do: Do, lines: Sequence[str], *, virtual_time: bool = True
) -> list[Sign]:
    """What these commands show."""
    seen = CollectedAnswers(plan, tickets, virtual_time)
    for line in lines:
        seen.take(parse(line)[0], do(line))
    return findings(seen)


def everywhere(plan: Plan) -> list[str]:
    """The commands of someone who looks everywhere."""
    hosts = list(plan.hosts())
    return [
        "inspect",
        f"counters --watch {WATCH_S}",
        "inspect",
        *(f"tables {switch}" for switch in plan.switches()),
        *(f"log {host} --count 200" for host in hosts),
        *(f"paths {host} {_far_host(plan, host)}" for host in hosts),
    ]


def solve(plan: Plan, tickets: Sequence[str], do: Do, *, virtual_time: bool = True) -> list[Named]:
    """The answer of someone who looks everywhere and knows the signs of every kind."""
    found = shown_by(plan, tickets, do, everywhere(plan), virtual_time=virtual_time)
    return list(dict.fromkeys((one.component, one.kind) for one in _causes(found)))


def _causes(found: Sequence[Sign]) -> list[Sign]:
    """Findings without those that another one explains."""
    restarting = {one.component for one in found if one.kind == "rebooting-switch"}
    tables = [one for one in found if one.kind in ("missing-entry", "wrong-entry")]
    swapped = {one.component.split("-")[0] for one in found if one.kind == "swapped-cables"}
    kept = []
    for one in found:
        if one.component in restarting and one.kind != "rebooting-switch":
            continue
        if one.kind == "swapped-cables" and any(entry.component in one.component for entry in tables):
            continue
        if one.kind == "one-way-loss" and swapped & set(one.component.split(">")):
            continue  # its two counters are of two cables
        kept.append(one)
    return kept


def guess(plan: Plan, do: Do) -> list[Named]:
    """The answer of someone who blames the port with the most drops, by the cause of most of them."""
    rows = do("counters")["ports"]
    worst = max(rows, key=lambda row: row["RX_DRP"] + row["TX_DRP"])
    if not worst["RX_DRP"] + worst["TX_DRP"]:
        return []
    cause = max(worst["DROPS"], key=lambda name: worst["DROPS"][name])
    node = plan.node(str(worst["IFACE"]).split("-")[0])
    other = plan.node(worst["PEER"])
    link = link_between(plan, node, other)
    if cause in ("unknown_usid", "no_route", "no_next_hop"):
        return [(node.name, "missing-entry")]
    if cause in ("no_program", "wiped"):
        return [(node.name, "rebooting-switch")]
    if cause in ("queue_limit", "queue_full", "trimmed_share") and isinstance(other, Switch):
        return [(f"{node}>{other}", "slow-port")]
    return [(f"{link.a.node}-{link.b.node}", "dead-cable")]
