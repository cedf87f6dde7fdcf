"""Signs of each kind in answers that are made up: what is found, and what is no sign yet."""

from typing import Any

import pytest

from operations.incident import tables
from operations.incident.signs import CollectedAnswers, findings
from tests.helpers.incidents import TINY
from topo.graph import link_at, ports

CABLE = ("p0l0-eth3", "p0s0-eth1")
"""The ends of the cable p0l0-p0s0; p0s1-eth1 is the other end of p0l0-p0s1."""
Answers = list[tuple[str, dict[str, Any]]]


def look(at_s: float = 5.0, up_s: dict[str, float] | None = None, **changed: Any) -> tuple[str, dict[str, Any]]:
    """`inspect` of a sound fabric, but for these interfaces and switches."""
    nodes = [
        {
            "node": node.name,
            "up_s": (up_s or {}).get(node.name, at_s),
            "interfaces": [
                {"state": "up", "carrier_changes": 0, "rate_bps": link_at(TINY, ref).rate_bps}
                | changed.get(ref.interface.replace("-", "_"), {})
                for ref in ports(TINY, node)
            ],
        }
        for node in TINY.nodes()
    ]
    return "inspect", {"at_s": at_s, "nodes": nodes}


def ends(**facts: Any) -> dict[str, Any]:
    """The same of both ends of one cable."""
    return {end.replace("-", "_"): facts for end in CABLE}


def counted(data: int = 1000, **changed: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """`counters --watch 1`: each port between switches sent this many packets of data, and all of them arrived."""
    refs = [ref for switch in TINY.switches() for ref in ports(TINY, switch)]
    rows = [
        {"IFACE": ref.interface, "TX_OK": data, "RX_OK": data, "ECN_MARKED": 0, "DROPS": {}}
        | changed.get(ref.interface.replace("-", "_"), {})
        for ref in refs
    ]
    classes = [{"IFACE": ref.interface, "CLASS": "trimmable", "TX": data} for ref in refs]
    return "counters", {"watched_s": 1.0, "ports": rows, "classes": classes}


def held(without: int | None = None, trims: str = "") -> tuple[str, dict[str, Any]]:
    """`tables p0l0`: as planned, but for one route, or with another action where packets are trimmed."""
    rows = tables.planned(TINY, TINY.switch_node("p0l0"))
    route = [row for row in rows if row[0] == tables.ROUTES][without] if without is not None else None
    entries = [
        {"table": table, "match": match, "action": trims if trims and action.startswith(tables.TRIMS) else action}
        for table, match, action in rows
        if (table, match, action) != route
    ]
    return "tables", {"node": "p0l0", "entries": entries}


def denied(via: str) -> tuple[str, dict[str, Any]]:
    return "paths", {"source": "h0", "paths": [{"via": via, "state": "denied"}, {"via": "p1s1", "state": "good"}]}


def stalls(*late_ms: int) -> tuple[str, dict[str, Any]]:
    return "log", {"node": "h1", "lines": [{"kind": "stall", "late_ns": late * 1_000_000} for late in late_ms]}


SOUND: dict[str, Answers] = {
    "all is well": [look(), counted(), held(), stalls(20, 30)],
    "one stall": [stalls(500)],
    "a ticket's drain": [denied("p0s0")],
    "a carrier that changed once": [look(), look(6.0, **ends(carrier_changes=1))],
    "seven lost of a thousand": [counted(p0s0_eth1={"RX_OK": 993})],
    "one end without carrier": [look(p0l0_eth3={"state": "down"})],
}
SIGNS: dict[str, tuple[str, Answers]] = {
    "dead-cable": ("p0l0-p0s0", [look(**ends(state="down", carrier_changes=1))]),
    "nic-port-down": ("h0.p0", [look(h0_p0={"state": "off"})]),
    "flapping-cable": ("p0l0-p0s0", [look(), look(6.0, **ends(carrier_changes=4))]),
    "wrong-rate": ("p0l0-p0s0", [look(**ends(rate_bps=1_000_000))]),
    "rebooting-switch": ("p1s0", [look(5.0), look(8.0, {"p1s0": 1.0})]),
    "one-way-loss": ("p0l0>p0s0", [counted(p0s0_eth1={"RX_OK": 940})]),
    "slow-port": ("p0l0>p0s0", [counted(100, p0l0_eth3={"ECN_MARKED": 60})]),
    "missing-entry": ("p0l0", [held(without=0)]),
    "no-trimming": ("p0l0", [held(trims=f"{tables.DROPS}(10)")]),
    "wrong-threshold": ("p0l0", [held(trims=f"{tables.TRIMS}(1)")]),
    "late-host": ("h1", [stalls(120, 500)]),
    "denied-path": ("h0", [denied("p1s0")]),
    "swapped-cables": (
        "p0l0-p0s0",
        [counted(p0s0_eth1={"DROPS": {"unknown_usid": 3}}, p0s1_eth1={"DROPS": {"unknown_usid": 1}})],
    ),
}  # fmt: skip


def seen(answers: Answers) -> set[tuple[str, str]]:
    collected = CollectedAnswers(TINY, tickets=["p0s0 is drained for maintenance"])
    for tool, answer in answers:
        collected.take(tool, answer)
    return {(one.kind, one.component) for one in findings(collected)}


@pytest.mark.parametrize("name", SOUND)
def test_what_a_sound_fabric_answers_is_no_sign(name: str) -> None:
    assert seen(SOUND[name]) == set()


@pytest.mark.parametrize("kind", SIGNS)
def test_a_sign_names_its_kind_and_its_component_and_nothing_else(kind: str) -> None:
    component, answers = SIGNS[kind]
    assert seen(answers) == {(kind, component)}
