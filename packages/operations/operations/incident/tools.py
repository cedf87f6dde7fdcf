"""The tools of an operator; answers are JSON. Each tool says what the devices say, and nothing of what is hidden."""

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from common import plain_file
from common.fields import Fields
from endpoint import call
from operations.incident import tables
from operations.incident.kind import AnswerError
from operations.incident.live_incident import CONTROL, LiveIncident
from operations.incident.words import ARGUMENTS
from running.tracing import data_frame, follow
from running.view import chosen_path, chosen_ports, described, journey_json, links_json, near_end, packets_json, rows_of
from running.view.port_rows import added
from topo import Switch
from topo.path import paths

Answer = dict[str, Any]
WATCH_S, CAPTURE_S, CAPTURED_MAX = 10.0, 0.2, 10_000
LONGEST_S = 120.0
"""The most lab time that one command may take."""


def counters(live: LiveIncident, fields: Fields) -> Answer:
    """The counters of switches and NICs: totals, or what was added in `watch` seconds."""
    chosen = chosen_ports(live.plan, fields.string("target", ""), live.plan.nodes())
    watch_s = fields.number("watch", 0.0, LONGEST_S, 0.0)
    live.pass_time(live.look_s)
    rows = rows_of(live, chosen)
    if watch_s:
        before = rows
        live.pass_time(watch_s)
        rows = added(before, rows_of(live, chosen))
    return {"unit": "packets", "watched_s": watch_s, **rows}


def inspect(live: LiveIncident, fields: Fields) -> Answer:
    """Nodes with their state, how long they have run, and their interfaces as each node itself reports them."""
    name = fields.string("node", "")
    nodes = list(live.plan.nodes()) if not name else [live.plan.node(name)]
    live.pass_time(live.look_s)
    return {"plan": live.plan.name, "at_s": round(live.now_s, 3), "nodes": described(live, nodes)}


def trace(live: LiveIncident, fields: Fields) -> Answer:
    """One packet through the tables that the switches hold, along the cables that are plugged in."""
    path = chosen_path(live.plan, fields.string("source"), fields.string("destination"), fields.string("ev", ""))
    live.pass_time(live.look_s)
    return journey_json(path, follow(live.plan, live, path, data_frame(live.plan, path, 64), live.wired))


def show_paths(live: LiveIncident, fields: Fields) -> Answer:
    """The paths of a pair of hosts as the first host's NIC sees them."""
    path = chosen_path(live.plan, fields.string("source"), fields.string("destination"), None)
    source, destination = path.source, path.destination
    live.pass_time(live.look_s)
    client = live.clients[source.name]
    denied = {(row["host"], row["ev"]) for row in call(client, "denylist.get", owner=CONTROL)["denied"]}
    sent = call(client, "counters").get("paths", {})
    states = ev_states(live, source.name)
    return {
        "source": source.name,
        "destination": destination.name,
        "paths": [
            {
                "ev": candidate.ev,
                "plane": candidate.plane,
                "via": candidate.via,
                "state": "denied"
                if (destination.name, candidate.ev) in denied
                else states.get((destination.name, candidate.ev), "good"),
                "packets": int(sent.get(candidate.ev, sent.get(str(candidate.ev), 0))),
            }
            for candidate in paths(live.plan, source, destination)
        ],
    }


def ev_states(live: LiveIncident, host: str) -> dict[tuple[str, int], str]:
    """The last state that a NIC journalled of each of its EVs, by peer and EV."""
    return {(str(line["peer"]), int(line["ev"])): str(line["new"]).lower() for line in lines_of(live, host, ("ev",))}


def lines_of(live: LiveIncident, host: str, kinds: Iterable[str]) -> list[dict[str, Any]]:
    """The lines of these kinds that a host has journalled."""
    wanted, lines = set(kinds), []
    path = live.journal(host)
    with plain_file.open_plain(path) as file:
        for text in plain_file.lines(file, path):
            if text.endswith(b"\n") and (line := json.loads(text))["kind"] in wanted:  # the last may be half written
                lines.append({**line, "t_ns": line["t_ns"] - live.begin_ns})
    return lines


def log(live: LiveIncident, fields: Fields) -> Answer:
    """The newest events of a NIC: links, ports, EVs, pauses of its host."""
    host = live.plan.host(fields.string("node"))
    limit = fields.integer("count", 1, 1000, 20)
    live.pass_time(live.look_s)
    events = lines_of(live, host.name, ("ev", "link", "port", "stall"))
    return {"node": host.name, "lines": events[-limit:]}


def show_tables(live: LiveIncident, fields: Fields) -> Answer:
    """The entries that a switch holds, read from the switch."""
    node = live.plan.node(fields.string("node"))
    if not isinstance(node, Switch):
        raise AnswerError(f"tables: {node} is a host; switches have tables, such as p0l0")
    table = fields.string("table", "")
    known = sorted({name for name, _, _ in tables.planned(live.plan, node)})
    if table and table not in known:
        raise AnswerError(f"tables: {node} has no table {table!r}: valid are {', '.join(known)}")
    live.pass_time(live.look_s)
    return {"node": node.name, "entries": [row for row in live.held(node) if not table or row["table"] == table]}


def prober(live: LiveIncident, fields: Fields) -> Answer:
    """The knowledge of all hosts' path probers about the links, merged."""
    live.pass_time(live.look_s)
    return {"links": links_json(live, every=fields.boolean("all", False))}


def capture(live: LiveIncident, fields: Fields) -> Answer:
    """The packets that cross the first node's end of a cable, in both directions."""
    link = fields.string("link")
    near = near_end(live.plan, link)
    seconds = fields.number("seconds", 0.001, LONGEST_S, CAPTURE_S)
    limit = fields.integer("count", 1, CAPTURED_MAX, CAPTURED_MAX)
    crossed = islice(live.crossing(near, seconds), limit)
    return {"link": link, "packets": packets_json(live.plan, crossed, live.begin_ns)}


def wait(live: LiveIncident, fields: Fields) -> Answer:
    """Let lab time pass."""
    seconds = fields.number("seconds", 0.001, LONGEST_S)
    live.pass_time(seconds)
    return {"waited_s": seconds}


def execute(live: LiveIncident, fields: Fields) -> Answer:
    """The network namespace of a node, which the caller enters."""
    node, line = live.plan.node(fields.string("node")), fields.string("line")
    if not line:
        raise ValueError(f"exec {node} must be followed by a command, such as -- ip -s link")
    return {"namespace": live.namespace(node)}


TOOLS: Mapping[str, Callable[[LiveIncident, Fields], Answer]] = dict(
    zip(
        ARGUMENTS, (counters, inspect, trace, show_paths, capture, prober, log, show_tables, wait, execute), strict=True
    )
)
"""Each tool, by the names of `words.ARGUMENTS`."""
