"""The answers of a lab as JSON: the same in either world, from a `LabView` alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from running.view.lab_view import Crossing, LabView
from running.view.port_rows import PAUSES, Row, Rows, class_rows, classes_of, managed_row, plain_row
from topo import Host, Node, Plan, Switch
from topo.address import host_address, port_address, switch_address
from topo.fault import arrival
from topo.graph import PortRef, link_between, peer, ports
from topo.path import Path, path_of_ev, paths

if TYPE_CHECKING:  # gRPC comes with them, which the help of a command does not need
    from controller import Cells
    from running.tracing import Journey

INSPECTED_PAUSES = ("RX_PAUSE", "TX_PAUSE", "PAUSED_US")


# --- counters


def chosen_ports(plan: Plan, target: str | None, nodes: Iterable[Node] | None = None) -> list[PortRef]:
    """The ports of `nodes` (all switches), of one node, or the two ends of a link. ValueError with what there is."""
    if not target:
        return [ref for node in nodes or plan.switches() for ref in ports(plan, node)]
    target = plan.own_names(target)
    if "-" in target:
        first, _, second = target.partition("-")
        link = link_between(plan, plan.node(first), plan.node(second))
        return [link.a, link.b]
    return list(ports(plan, plan.node(target)))


def programs(view: LabView, chosen: Sequence[PortRef]) -> Mapping[str, Cells | None]:
    """The counts of the program of each P4 switch with a chosen port; None for a switch that runs no program now."""
    return view.programs(list(dict.fromkeys(ref.node for ref in chosen if isinstance(ref.node, Switch))))


def rows_of(view: LabView, chosen: Sequence[PortRef], told: Mapping[str, Cells | None] | None = None) -> Rows:
    """A row per port in `ports`, a row per port and class in `classes`; numbers are packets. A program's
    counts are None at a switch that runs none. `told` is what `programs` has said, where it was asked already."""
    known = programs(view, chosen) if told is None else told
    program = {name: cells for name, cells in known.items() if cells}
    managers, own = view.managers(), dict[Node, Mapping[int, Mapping[str, int]]]()
    rows: Rows = {"ports": [], "classes": []}
    for ref in chosen:
        classes = classes_of(program, ref)
        manager = managers.get(ref.node.name, {}).get(ref.port)
        if manager is None:
            if ref.node not in own:
                own[ref.node] = view.port_counters(ref.node)
            rows["ports"].append(plain_row(view.plan, ref, own[ref.node][ref.port], classes))
        else:
            rows["ports"].append(managed_row(view.plan, ref, manager, classes))
        if known.get(ref.node.name, {}) is None:
            rows["ports"][-1].update(TRIM_PKTS=None, ECN_MARKED=None)
        rows["classes"] += class_rows(ref, classes)
    return rows


# --- nodes and interfaces


def described(view: LabView, nodes: Collection[Node]) -> list[Row]:
    """Nodes as JSON: rates in bit/s, delays in nanoseconds; `address` is a host's own or a switch's uSID."""
    plan, states = view.plan, view.states(nodes)
    paused = pauses(view, nodes) if plan.pfc.enabled else {}
    rows = []
    for node in nodes:
        if isinstance(node, Host):
            kind, address = "host", str(host_address(plan, node))
        else:
            kind, address = f"{node.role}, {plan.kind_of(node)}", str(switch_address(plan, node))
        row = {"node": node.name, "kind": kind, "state": states[node.name], "address": address, **view.facts(node)}
        told, counts = view.interfaces(node), paused.get(node.name, {})
        row["interfaces"] = [
            {**interface(plan, ref, told[ref.port]), **({"pauses": counts[ref.port]} if ref.port in counts else {})}
            for ref in ports(plan, node)
        ]
        rows.append(row)
    return rows


def interface(plan: Plan, ref: PortRef, told: Mapping[str, Any]) -> Row:
    """A port as the plan has it, with what the lab tells of it."""
    return {
        "interface": ref.interface,
        "port": ref.port,
        "state": told["state"],
        "peer": peer(plan, ref).interface,
        "mac": ref.mac,
        "address": str(port_address(plan, ref.node, ref.plane)) if isinstance(ref.node, Host) else "",
        **told,
    }


def pauses(view: LabView, nodes: Collection[Node]) -> dict[str, dict[int, dict[str, int]]]:
    """The counters of flow control, by node name and port: embedded switches, and hosts whose agent has it."""
    managers, by_node = view.managers(), dict[str, dict[int, dict[str, int]]]()
    for node in nodes:
        rows = managers.get(node.name, {})
        if isinstance(node, Host):
            told = view.agent_counters(node)
            rows = {row["port"]: row for row in told["ports"]} if told else {}
        by_node[node.name] = {port: paused(row) for port, row in rows.items() if PAUSES["RX_PAUSE"] in row}
    return by_node


def paused(row: Mapping[str, Any]) -> dict[str, int]:
    """The counts of a port by column. A NIC sends no pauses, and counts none."""
    counts = {column: int(row[PAUSES[column]]) for column in INSPECTED_PAUSES if PAUSES[column] in row}
    return {**counts, "PAUSED_US": counts["PAUSED_US"] // 1000}


# --- packets


def chosen_path(plan: Plan, source: str, destination: str, ev: str | None) -> Path:
    """The path of a pair of hosts, by its EV or the first one. ValueError with what is wrong."""
    first, last = plan.host(source), plan.host(destination)
    if first == last:
        raise ValueError(f"source and destination must be two hosts (got {source} twice)")
    if not ev:
        return next(paths(plan, first, last))
    try:
        number = int(ev, 0)
    except ValueError:
        raise ValueError(f"--ev must be a number such as 0x0001c002 (got {ev!r})") from None
    return path_of_ev(plan, first, last, number)


def journey_json(path: Path, journey: Journey) -> dict[str, Any]:
    """`arrival` is the share of such packets that reach the end; `conditions` are the faults on the way."""
    from running.tracing import outer_destination, short, tables_hit

    return {
        "source": path.source.name,
        "destination": path.destination.name,
        "ev": path.ev,
        "reached": journey.reached.name if journey.reached else None,
        "arrival": arrival(journey.conditions) if journey.reached else 0.0,
        "conditions": [condition.as_json() for condition in journey.conditions],
        "hops": [
            {
                "switch": hop.switch.name,
                "port_in": hop.port_in,
                "port_out": hop.port_out,
                "da_in": str(outer_destination(hop.frame_in)),
                "da_out": str(outer_destination(hop.frame_out)) if hop.frame_out else None,
                "tables": [{"table": short(table), "action": said} for table, said in tables_hit(hop.steps)],
                "drop": hop.reason or None,
                "conditions": [condition.as_json() for condition in hop.conditions],
            }
            for hop in journey.hops
        ],
    }


def near_end(plan: Plan, link: str) -> PortRef:
    """The port at the first node of `A-B`; ValueError names what is wrong with it."""
    first, dash, second = plan.own_names(link).partition("-")
    if not dash:
        raise ValueError(f"a link must be two neighbours, such as p1l0-p1s2 (got {link!r})")
    a, b = plan.node(first), plan.node(second)
    cable = link_between(plan, a, b)
    return next(ref for ref in ports(plan, a) if ref in (cable.a, cable.b))


def packets_json(plan: Plan, crossed: Iterable[Crossing], begin_ns: int = 0) -> list[Row]:
    """Packets as a decoder reads them (docs/contracts.md, "Packet log"); times count from `begin_ns`."""
    from endpoint import Decoder
    from endpoint.nic.dialect import DEFAULT

    names = {host_address(plan, host).packed: host.name for host in plan.hosts()}
    decoder = Decoder(names, (plan.dscp.trimmed, plan.dscp.trimmed_lasthop), plan.packets.udp_port, DEFAULT)
    return [
        {
            "t_ns": t_ns - begin_ns,
            "out": out,
            "bytes": length,
            **{key: value for key, value in decoder.fields(head).items() if value is not None},
            "head": head.hex(),
        }
        for t_ns, out, length, head in crossed
    ]


# --- agents


def links_json(view: LabView, *, every: bool = False) -> list[Row]:
    """The links as the path probers of all hosts know them, merged: those that are not well, or every one."""
    from endpoint import blame, call
    from endpoint.blame import LinkState

    maps = [call(client, "prober.map")["links"] for client in view.agents().values()]
    merged = blame.merge([[LinkState(**row) for row in links] for links in maps])
    return [asdict(link) for link in merged if every or link.state not in (blame.OK, blame.UNKNOWN)]
