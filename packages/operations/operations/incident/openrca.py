"""Incidents as cases of the benchmark OpenRCA (Xu et al., ICLR 2025): queries, the truth, and the tools' answers.

The layout is that of its system Bank: `query.csv` with scoring points, `record.csv`, and metrics and logs below
`telemetry/DATE/`. Components and reasons are those of `./lab incident answer`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from common import files
from common.csv_text import csv_text
from operations.incident.draw import Incident, draw
from operations.incident.kind import EXAMPLES, kinds_of
from operations.incident.session import IncidentSession
from running import RunDirectory
from studies.farm import folder
from topo import Host

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
EVERY = timedelta(minutes=5)
"""From the begin of one incident to that of the next; an incident takes less."""
CALLED_S = 1.0
ROUNDS = 20
"""Looks at all counters and states, two seconds of lab time each."""
TASK = "task_6"  # component and reason
COUNTED = ("RX_OK", "TX_OK", "TRIM_PKTS", "ECN_MARKED", "RX_DRP", "TX_DRP")
Row = Sequence[object]


def write(target: Path, seeds: Iterable[int], level: int) -> int:
    """Write the cases of these incidents into a folder; the number of cases. OpenRCA has no case without a fault, so
    incidents that hide nothing are left out."""
    telemetry = target / "telemetry" / f"{BEGIN:%Y_%m_%d}"
    for below in ("metric", "log"):
        files.make_folder(telemetry / below)
    drawn = [incident for incident in (draw(seed, level) for seed in seeds) if incident.hidden]
    queries: list[Row] = []
    records: list[Row] = []
    metrics: list[Row] = []
    logs: list[Row] = []
    for number, incident in enumerate(drawn):
        begin = BEGIN + number * EVERY
        queries.append((TASK, instruction(incident, begin), scoring_points(incident)))
        for one in incident.hidden:
            at = begin + timedelta(seconds=one.onset_s)
            records.append((level, one.component, at.timestamp(), f"{at:%Y-%m-%d %H:%M:%S}", one.kind))
        with folder("") as scratch:
            session = IncidentSession(incident, RunDirectory.create(Path(scratch), "incident", 0), CALLED_S)
            try:
                metrics += _metrics(session, begin)
                logs += _logs(session, begin)
            finally:
                session.close()
    tables = {
        target / "query.csv": (("task_index", "instruction", "scoring_points"), queries),
        target / "record.csv": (("level", "component", "timestamp", "datetime", "reason"), records),
        telemetry / "metric" / "metric_container.csv": (("timestamp", "cmdb_id", "kpi_name", "value"), metrics),
        telemetry / "log" / "log_service.csv": (("log_id", "timestamp", "cmdb_id", "log_name", "value"), logs),
    }
    for path, (head, rows) in tables.items():
        files.write(path, csv_text(head, rows))
    return len(drawn)


def instruction(incident: Incident, begin: datetime) -> str:
    """The question, with what an operator is told beforehand."""
    reasons = ", ".join(f"{kind.name} (a {kind.component}: {kind.meaning})" for kind in kinds_of(incident.level))
    components = ", ".join(f"a {name} such as {example}" for name, example in EXAMPLES.items())
    return (
        f"Time range: {begin:%Y-%m-%d %H:%M:%S} to {begin + EVERY:%Y-%m-%d %H:%M:%S} UTC. Number of failures:"
        f" {len(incident.hidden)}. Name the root cause component and the root cause reason of each."
        f" {incident.plan.name} is a network of {incident.plan.host_count} hosts and"
        f" {incident.plan.switch_count} switches."
        f" Components: {components}. Reasons: {reasons}."
        + "".join(f" Ticket: {ticket}." for ticket in incident.tickets)
    )


def scoring_points(incident: Incident) -> str:
    """The truth in the words that OpenRCA's evaluation reads."""
    lines = []
    for number, one in enumerate(incident.hidden, 1):
        which = "only" if len(incident.hidden) == 1 else f"{number}-th"
        lines.append(f"The {which} predicted root cause component is {one.component}")
        lines.append(f"The {which} predicted root cause reason is {one.kind}")
    return "\n".join(lines) + "\n"


def _metrics(session: IncidentSession, begin: datetime) -> Iterator[Row]:
    """States of ports and nodes, and each port's counts since the look before. A port is NODE>NEIGHBOUR."""
    before: dict[tuple[str, str], int] = {}
    for _ in range(ROUNDS):
        for row in session.do("counters", {})["ports"]:
            at, port = _at(session, begin), f"{row['IFACE'].split('-')[0]}>{row['PEER']}"
            counts = {name: row[name] for name in COUNTED} | {f"DROPS {name}": n for name, n in row["DROPS"].items()}
            for name, total in counts.items():
                yield at, port, name, total - before.get((port, name), 0)
                before[port, name] = total
        for node in session.do("inspect", {})["nodes"]:
            at = _at(session, begin)
            yield at, node["node"], "up_s", node["up_s"]
            for one in node["interfaces"]:
                port = f"{node['node']}>{one['peer'].split('-')[0]}"
                states = {
                    "up": int(one["state"] == "up"),
                    **{name: one[name] for name in ("rate_bps", "carrier_changes")},
                }
                yield from ((at, port, name, value) for name, value in states.items())


def _logs(session: IncidentSession, begin: datetime) -> Iterator[Row]:
    """Events and paths of NICs, entries of switches, and findings of probers, at the end."""
    plan = session.incident.plan
    answers: list[tuple[str, str, Sequence[Any]]] = []
    for node in plan.nodes():
        if isinstance(node, Host):
            answers.append((node.name, "event", session.do("log", {"node": node.name, "count": 200})["lines"]))
            peers = [other for other in plan.hosts() if plan.leaf_of(other) != plan.leaf_of(node)]
            given = {"source": node.name, "destination": peers[0].name}
            answers.append((node.name, "path", session.do("paths", given)["paths"]))
        else:
            answers.append((node.name, "table", session.do("tables", {"node": node.name})["entries"]))
    answers.append(("network", "prober", session.do("prober", {})["links"]))
    at, number = _at(session, begin), len(session.asked)
    for name, log, lines in answers:
        for line in lines:
            number += 1
            yield f"{begin:%H%M}-{number}", at, name, log, json.dumps(line)


def _at(session: IncidentSession, begin: datetime) -> float:
    return round((begin + timedelta(seconds=session.live.now_s)).timestamp(), 3)
