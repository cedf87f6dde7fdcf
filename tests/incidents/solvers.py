"""Solvers, which know only what tools answer: one that looks everywhere, and a naive one."""

from collections.abc import Sequence

from operations.incident.score import Named
from operations.incident.signs import Sign
from operations.incident.solving import Do, far_host, shown_by
from topo import Plan, Switch
from topo.graph import link_between

WATCH_S = 12


def everywhere(plan: Plan) -> list[str]:
    """The commands of someone who looks everywhere."""
    hosts = list(plan.hosts())
    return [
        "inspect", f"counters --watch {WATCH_S}", "inspect", *(f"tables {switch}" for switch in plan.switches()),
        *(f"log {host} --count 200" for host in hosts), *(f"paths {host} {far_host(plan, host)}" for host in hosts),
    ]  # fmt: skip


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
