"""What an operator can look at, as JSON. Each tool says what the devices say, and nothing of what is hidden."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from common.fields import Fields
from endpoint import Decoder, blame
from endpoint.blame import LinkState
from endpoint.nic.dialect import DEFAULT
from operations.incident import tables
from operations.incident.kind import AnswerError
from operations.incident.live_incident import CONTROL, LiveIncident
from running.port_rows import Rows, added, class_rows, classes_of, managed_row, plain_row
from running.tracing import call_text, data_frame, follow, short
from running.worlds import call
from topo import Host, Node, Switch
from topo.address import host_address, switch_usid, usid_address
from topo.graph import PortRef, link_between, peer, ports
from topo.path import Path, path_of_ev, paths

Answer = dict[str, Any]
WATCH_S, CAPTURE_S, CAPTURED_MAX = 10.0, 0.2, 10_000
LONGEST_S = 120.0
"""The most lab time that one command may take."""


def counters(live: LiveIncident, fields: Fields) -> Answer:
    """The counters of switches and NICs: totals, or what was added in `watch` seconds."""
    chosen = chosen_ports(live, fields)
    watch_s = fields.number("watch", 0.0, LONGEST_S, 0.0)
    live.advance(live.look_s)
    found = read(live, chosen)
    if watch_s:
        before = found
        live.advance(watch_s)
        found = added(before, read(live, chosen))
    return {"unit": "packets", "watched_s": watch_s, **found}


def chosen_ports(live: LiveIncident, fields: Fields) -> list[PortRef]:
    """The ports of everything, of one node, or the two ends of a cable."""
    target = fields.string("target", "")
    plan = live.plan
    if not target:
        return [ref for node in plan.nodes() for ref in ports(plan, node)]
    if "-" in target:
        first, _, second = target.partition("-")
        link = link_between(plan, plan.node(first), plan.node(second))
        return [link.a, link.b]
    return list(ports(plan, plan.node(target)))


def read(live: LiveIncident, chosen: Sequence[PortRef]) -> Rows:
    """The rows of these ports now."""
    plan = live.plan
    program, managers = live.counted({ref.node for ref in chosen if isinstance(ref.node, Switch)})
    hosts = {ref.node for ref in chosen if isinstance(ref.node, Host)}
    nics = {host: call(live.clients[host.name], "counters")["ports"] for host in hosts}
    found: Rows = {"ports": [], "classes": []}
    for ref in chosen:
        if isinstance(ref.node, Host):
            found["ports"].append(plain_row(plan, ref, nics[ref.node][ref.port - 1], {}))
            continue
        classes = classes_of(program, ref)
        found["ports"].append(managed_row(plan, ref, managers[ref.node.name][ref.port], classes))
        found["classes"] += class_rows(ref, classes)
    return found


def inspect(live: LiveIncident, fields: Fields) -> Answer:
    """Nodes with their state, how long they have run, and their interfaces as each node itself reports them."""
    name = fields.string("node", "")
    nodes = list(live.plan.nodes()) if not name else [live.plan.node(name)]
    live.advance(live.look_s)
    return {"plan": live.plan.name, "at_s": round(live.now_s, 3), "nodes": [_node(live, node) for node in nodes]}


def _node(live: LiveIncident, node: Node) -> Answer:
    plan = live.plan
    state, up_s = live.state(node)
    if isinstance(node, Host):
        kind, address = "host", str(host_address(plan, node))
        state += ", with an agent"
    else:
        kind, address = f"{node.role}, {plan.kind_of(node)}", str(usid_address(plan, [switch_usid(node)]))
    return {
        "node": node.name,
        "kind": kind,
        "state": state,
        "address": address,
        "up_s": round(up_s, 1),
        "interfaces": [_interface(live, ref) for ref in ports(plan, node)],
    }


def _interface(live: LiveIncident, ref: PortRef) -> Answer:
    return {
        "interface": ref.interface,
        "port": ref.port,
        "peer": peer(live.plan, ref).interface,
        "mac": ref.mac,
        **asdict(live.interface(ref)),
    }


def chosen_path(live: LiveIncident, fields: Fields) -> Path:
    """The path that a command names: two hosts, and an EV or the first one."""
    plan = live.plan
    first, last = plan.host(fields.string("source")), plan.host(fields.string("destination"))
    if first == last:
        raise ValueError(f"source and destination must be two hosts (got {first} twice)")
    ev = fields.string("ev", "")
    try:
        return path_of_ev(plan, first, last, int(ev, 0)) if ev else next(paths(plan, first, last))
    except ValueError as error:
        raise ValueError(f"--ev must be an EV of the pair, such as 0x0001c000 (got {ev!r}): {error}") from None


def trace(live: LiveIncident, fields: Fields) -> Answer:
    """One packet through the tables that the switches hold, along the cables that are plugged in."""
    path = chosen_path(live, fields)
    live.advance(live.look_s)
    journey = follow(live.plan, live.explainer(), path, data_frame(live.plan, path, 64), live.wired)
    return {
        "source": path.source.name,
        "destination": path.destination.name,
        "ev": path.ev,
        "reached": journey.reached.name if journey.reached else None,
        "hops": [
            {
                "switch": hop.switch.name,
                "port_in": hop.port_in,
                "port_out": hop.port_out,
                "tables": [
                    {"table": short(step["table"]), "action": _said(following)}
                    for step, following in zip(hop.steps, [*hop.steps[1:], {"kind": ""}], strict=False)
                    if step["kind"] == "table" and step["hit"]
                ],
                "drop": hop.reason or None,
            }
            for hop in journey.hops
        ],
    }


def _said(step: Mapping[str, Any]) -> str:
    return call_text(step) if step["kind"] == "action" else ""


def show_paths(live: LiveIncident, fields: Fields) -> Answer:
    """The paths of a pair of hosts as the first host's NIC sees them."""
    path = chosen_path(live, fields)
    source, destination = path.source, path.destination
    live.advance(live.look_s)
    client = live.clients[source.name]
    denied = {(row["host"], row["ev"]) for row in call(client, "denylist.get", owner=CONTROL)["denied"]}
    sent = call(client, "counters").get("paths", {})
    states = ev_states(live, source.name)
    return {
        "source": source.name,
        "destination": destination.name,
        "paths": [
            {
                "ev": one.ev,
                "plane": one.plane,
                "via": one.via,
                "state": "denied"
                if (destination.name, one.ev) in denied
                else states.get((destination.name, one.ev), "good"),
                "packets": int(sent.get(one.ev, sent.get(str(one.ev), 0))),
            }
            for one in paths(live.plan, source, destination)
        ],
    }


def ev_states(live: LiveIncident, host: str) -> dict[tuple[str, int], str]:
    """The last state that a NIC journalled of each of its EVs, by peer and EV."""
    return {(str(line["peer"]), int(line["ev"])): str(line["new"]).lower() for line in lines_of(live, host, ("ev",))}


def lines_of(live: LiveIncident, host: str, kinds: Iterable[str]) -> list[dict[str, Any]]:
    """The lines of these kinds that a host has journalled."""
    wanted, found = set(kinds), []
    with live.journal(host).open(encoding="utf-8") as file:
        for text in file:
            if text.endswith("\n") and (line := json.loads(text))["kind"] in wanted:  # the last may be half written
                found.append({**line, "t_ns": line["t_ns"] - live.begin_ns})
    return found


def log(live: LiveIncident, fields: Fields) -> Answer:
    """The newest events of a NIC: links, ports, EVs, pauses of its host."""
    host = live.plan.host(fields.string("node"))
    limit = fields.integer("count", 1, 1000, 20)
    live.advance(live.look_s)
    found = lines_of(live, host.name, ("ev", "link", "port", "stall"))
    return {"node": host.name, "lines": found[-limit:]}


def show_tables(live: LiveIncident, fields: Fields) -> Answer:
    """The entries that a switch holds, read from the switch."""
    node = live.plan.node(fields.string("node"))
    if not isinstance(node, Switch):
        raise AnswerError(f"tables: {node} is a host; switches have tables, such as p0l0")
    table = fields.string("table", "")
    known = sorted({name for name, _, _ in tables.planned(live.plan, node)})
    if table and table not in known:
        raise AnswerError(f"tables: {node} has no table {table!r}: valid are {', '.join(known)}")
    live.advance(live.look_s)
    return {"node": node.name, "entries": [row for row in live.held(node) if not table or row["table"] == table]}


def prober(live: LiveIncident, fields: Fields) -> Answer:
    """What the path probers of all hosts know of the links, merged."""
    live.advance(live.look_s)
    maps = [call(client, "prober.map")["links"] for client in live.clients.values()]
    merged = blame.merge([[LinkState(**row) for row in links] for links in maps])
    wanted = fields.boolean("all", False)
    return {"links": [asdict(link) for link in merged if wanted or link.state not in (blame.OK, blame.UNKNOWN)]}


def capture(live: LiveIncident, fields: Fields) -> Answer:
    """The packets that cross the first node's end of a cable, in both directions."""
    plan = live.plan
    text = fields.string("link")
    first, dash, second = text.partition("-")
    if not dash:
        raise ValueError(f"a link must be two neighbours, such as p0l0-p0s1 (got {text!r})")
    link = link_between(plan, plan.node(first), plan.node(second))
    near = link.a if link.a.node.name == first else link.b
    seconds = fields.number("seconds", 0.001, LONGEST_S, CAPTURE_S)
    limit = fields.integer("count", 1, CAPTURED_MAX, CAPTURED_MAX)
    seen = sorted(live.crossing(near, seconds), key=lambda one: one[0])[:limit]
    names = {host_address(plan, host).packed: host.name for host in plan.hosts()}
    trimmed = (plan.dscp.trimmed, plan.dscp.trimmed_lasthop)
    decoder = Decoder(names, trimmed, plan.packets.udp_port, DEFAULT)
    return {
        "link": text,
        "packets": [
            {
                "t_ns": t_ns - live.begin_ns,
                "out": out,
                "bytes": length,
                **{key: value for key, value in decoder.fields(head).items() if value is not None},
                "head": head.hex(),
            }
            for t_ns, out, length, head in seen
        ],
    }


def wait(live: LiveIncident, fields: Fields) -> Answer:
    """Let lab time pass."""
    seconds = fields.number("seconds", 0.001, LONGEST_S)
    live.advance(seconds)
    return {"waited_s": seconds}


def execute(live: LiveIncident, fields: Fields) -> Answer:
    """The network namespace of a node, which the caller enters."""
    node, line = live.plan.node(fields.string("node")), fields.string("line")
    if not line:
        raise ValueError(f"exec {node} must be followed by a command, such as -- ip -s link")
    return {"namespace": live.namespace(node)}


TOOLS: Mapping[str, Callable[[LiveIncident, Fields], Answer]] = {
    "counters": counters,
    "inspect": inspect,
    "trace": trace,
    "paths": show_paths,
    "capture": capture,
    "prober": prober,
    "log": log,
    "tables": show_tables,
    "wait": wait,
    "exec": execute,
}
"""Each tool, by the names of `words.ARGUMENTS`."""
