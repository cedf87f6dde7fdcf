"""Answers of tools for people."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.terminal.columns import aligned
from common.terminal.counted import counted
from common.terminal.printable import path_line, printable
from operations.incident.kind import KINDS
from topo.show import rate

Answer = Mapping[str, Any]


def inspect(answer: Answer) -> list[str]:
    """A row per node, or per interface of one node."""
    nodes = answer["nodes"]
    if len(nodes) > 1:
        rows = [["NODE", "KIND", "STATE", "UP", "PORTS DOWN", "CARRIER CHANGES"]]
        for node in nodes:
            down = [port["interface"] for port in node["interfaces"] if port["state"] != "up"]
            changes = sum(port["carrier_changes"] for port in node["interfaces"])
            row = [node["node"], node["kind"], node["state"], f"{node['up_s']:g} s", " ".join(down), str(changes or "")]
            rows.append(row)
        return aligned(rows)
    (node,) = nodes
    head = f"{node['node']}  {node['kind']}, {node['state']}, {node['address']}, up for {node['up_s']:g} s"
    rows = [["INTERFACE", "PORT", "STATE", "PEER", "RATE", "CARRIER CHANGES", "LAST CHANGE"]]
    for port in node["interfaces"]:
        changed = "" if port["changed_s"] is None else f"at {port['changed_s']:g} s"
        cells = [port["interface"], str(port["port"]), port["state"], port["peer"], rate(port["rate_bps"])]
        rows.append([*cells, str(port["carrier_changes"] or ""), changed])
    return [head, *aligned(rows)]


def trace(answer: Answer) -> list[str]:
    """A line per lookup."""
    lines = [f"{answer['source']} → {answer['destination']} by EV {answer['ev']:#010x}"]
    for hop in answer["hops"]:
        lines.append(f"{hop['switch']}  in by port {hop['port_in']}")
        lines += [f"      {lookup['table']}: {lookup['action']}" for lookup in hop["tables"]]
        lines.append(f"      DROPPED: {hop['drop']}" if hop["drop"] else f"      out by port {hop['port_out']}")
    return [*lines, f"{answer['reached']} receives it" if answer["reached"] else "no host receives it"]


def paths(answer: Answer) -> list[str]:
    """A row per path."""
    rows = [["EV", "PLANE", "VIA", "STATE", "PACKETS"]]
    for path in answer["paths"]:
        cells = [f"{path['ev']:#010x}", str(path["plane"]), path["via"] or "(same leaf)", path["state"]]
        rows.append([*cells, f"{path['packets']:,}"])
    return aligned(rows)


def capture(answer: Answer) -> list[str]:
    """A line per packet."""
    lines = []
    for p in answer["packets"]:
        said = " ".join(f"{key}={p[key]}" for key in ("op", "psn", "ev", "marked", "trimmed") if p.get(key))
        ends = f"{p.get('src', '?')} → {p.get('dst', '?')}"
        lines.append(f"{p['t_ns'] / 1e9:.6f}  {'out' if p['out'] else 'in ':3}  {p['bytes']:5} bytes  {ends}  {said}")
    return [*lines, f"{counted(len(lines), 'packet')} at the end of {answer['link'].split('-')[0]}"]


def prober(answer: Answer) -> list[str]:
    """A line per link that is not well."""
    rows = [[f"{e['a']}–{e['b']}", e["state"], f"{e['loss']:.0%}", e["blame"]] for e in answer["links"]]
    return aligned([["LINK", "STATE", "LOSS", "BLAME"], *rows]) if rows else ["the probers find no fault"]


def log(answer: Answer) -> list[str]:
    """A line per event."""
    lines = []
    for line in answer["lines"]:
        said = " ".join(f"{key}={value}" for key, value in line.items() if key not in ("t_ns", "node", "kind", "blame"))
        lines.append(f"{line['t_ns'] / 1e9:9.3f}  {line['kind']:5}  {line.get('blame') or said}")
    return lines or [f"{answer['node']} has nothing to say"]


def tables(answer: Answer) -> list[str]:
    """A line per entry."""
    rows = [[entry["table"], entry["match"], entry["action"]] for entry in answer["entries"]]
    return aligned([["TABLE", "MATCH", "ACTION"], *rows]) if rows else [f"{answer['node']} holds no entries"]


def wait(answer: Answer) -> list[str]:
    """One line."""
    return [f"{answer['waited_s']:g} s of lab time have passed"]


SHOW: Mapping[str, Callable[[Answer], list[str]]] = {
    tool.__name__: tool for tool in (inspect, trace, paths, capture, prober, log, tables, wait)
}
"""Every tool but `counters`, which is shown as `./lab counters` does."""


def used(document: Answer) -> str:
    """Lab time and commands."""
    return f"{document['lab_s']:g} s of lab time, {counted(int(document['commands']), 'command')}"


def briefing(status: Answer) -> list[str]:
    """The words that the operator is told at the beginning."""
    return [
        f"level {status['level']}, plan {status['plan']}: {status['hosts']} hosts, {status['switches']} switches,"
        f" {status['cables']} cables; under load ({', '.join(status['load'])})",
        *(["on real links, in real time"] if status["world"] == "emulated" else []),
        f"a cable may lose up to {status['allowed_loss_percent']:g} % of its packets",
        *(f"ticket: {ticket}" for ticket in status["tickets"]),
        f"used so far: {used(status)}",
    ]


def result(document: Answer) -> list[str]:
    """The end of an incident."""
    lines = [f"{document['verdict']}: {used(document)}; net score {document['net']:+g}"]
    if not document["truth"]:
        lines.append("nothing was wrong")
    for entry in document["evidence"]:
        lines.append(f"  {entry['component']}: {entry['kind']} ({KINDS[entry['kind']].meaning})")
        lines += [f"      {command}" for command in entry["commands"]]
        lines.append(f"      {entry['shows'] or entry['hint']}")
    lines += [f"  {entry['component']}: {entry['kind']} was named, and is not there" for entry in document["extra"]]
    lines += [f"seed {document['seed']}, level {document['level']}", path_line("page:", document["page"]).rstrip("\n")]
    return lines + [f"not written: {reason}" for reason in document["not_written"]]


def scores(document: dict[str, Any]) -> list[str]:
    """The answers of each person of a group, and of all together."""
    rows = document["people"]
    sums = {key: sum(row[key] for row in rows) for key in ("incidents", "points", "net", "commands", "lab_s")}
    return [
        printable(
            f"{row['name']}: {row['points']:g} of {row['incidents']} points, net score {row['net']:+g}, {used(row)}"
        )
        for row in (*rows, {"name": "together", **sums})
    ]


def kinds(level: int) -> list[str]:
    """The kinds of a level."""
    rows: Sequence[list[str]] = [
        [kind.name, kind.component, kind.meaning] for kind in KINDS.values() if kind.level <= level
    ]
    return aligned([["KIND", "COMPONENT", "MEANING"], *rows])
