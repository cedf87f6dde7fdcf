"""Rows of counters by port and class, in the words of SONiC, from traffic managers and P4 programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topo import Plan
from topo.graph import PortRef, peer

if TYPE_CHECKING:  # gRPC comes with it, which the help of a command does not need
    from controller import Cells, ClassCounters

__all__ = [
    "GAUGES", "PAUSES", "RX_DROPS", "TX_DROPS", "Row", "Rows", "added", "class_rows", "classes_of", "managed_row",
    "plain_row",
]  # fmt: skip

RX_DROPS = ("drop_no_program", "drop_no_port", "drop_passes", "drop_socket", "drop_headroom")
"""The drops that count at the port by which a packet came."""
TX_DROPS = ("drop_queue_full", "drop_port_down", "drop_loss", "drop_wiped")
"""The drops that count at the port by which a packet was to leave."""
PAUSES = {
    "RX_PAUSE": "pause_received",
    "TX_PAUSE": "pause_sent",
    "PAUSED_US": "paused_ns",
    "PAUSE_WD": "pause_watchdog",
    "PAUSE_BAD": "pause_ignored",
}
"""Columns of flow control, where there is any, and the counter that each shows."""
P4_RX_DROPS = ("not_ipv6", "hop_limit", "list_ended", "unknown_usid", "no_route", "no_next_hop")
GAUGES = ("QUEUE", "QUEUE_MAX")
Row = dict[str, Any]
Rows = dict[str, list[Row]]
"""A row per port in `ports`, a row per port and class in `classes`; numbers are packets."""


def managed_row(plan: Plan, ref: PortRef, manager: Mapping[str, int], classes: Mapping[str, ClassCounters]) -> Row:
    """The row of a port whose traffic manager counts."""
    row: Row = {"IFACE": ref.interface, "PEER": peer(plan, ref).node.name}
    row |= {"RX_OK": manager["rx_packets"], "TX_OK": manager["tx_packets"]}
    row |= {"QUEUE": manager["queue_packets"], "QUEUE_MAX": manager["queue_packets_max"]}
    row |= {column: manager[name] for column, name in PAUSES.items()}
    row["PAUSED_US"] //= 1000
    return row | program_columns(manager, classes)


def plain_row(plan: Plan, ref: PortRef, own: Mapping[str, int], classes: Mapping[str, ClassCounters]) -> Row:
    """The row of a host's port, or of a switch that counts nothing itself."""
    row: Row = {"IFACE": ref.interface, "PEER": peer(plan, ref).node.name}
    row |= {"RX_OK": own["rx_packets"], "TX_OK": own["tx_packets"]}
    return row | program_columns({}, classes)


def program_columns(manager: Mapping[str, int], classes: Mapping[str, ClassCounters]) -> Row:
    """Trims, marks, and drops by side and cause."""
    drops = {name.removeprefix("drop_"): count for name, count in manager.items() if name in RX_DROPS}
    out = {name.removeprefix("drop_"): count for name, count in manager.items() if name in TX_DROPS}
    for cell in classes.values():
        for cause, count in cell.drops.items():
            side = drops if cause in P4_RX_DROPS else out
            side[cause] = side.get(cause, 0) + count
    return {
        "TRIM_PKTS": sum(cell.trimmed for cell in classes.values()),
        "ECN_MARKED": sum(cell.ecn_marked for cell in classes.values()),
        "RX_DRP": sum(drops.values()),
        "TX_DRP": sum(out.values()),
        "DROPS": {cause: count for cause, count in {**drops, **out}.items() if count},
    }


def class_rows(ref: PortRef, classes: Mapping[str, ClassCounters]) -> list[Row]:
    """A row per class of a port."""
    return [
        {
            "IFACE": ref.interface,
            "CLASS": name,
            "RX": cell.received,
            "TX": cell.sent,
            "TRIM_PKTS": cell.trimmed,
            "ECN_MARKED": cell.ecn_marked,
            "DROPS": dict(cell.drops),
        }
        for name, cell in classes.items()
    ]


def classes_of(program: Mapping[str, Cells], ref: PortRef) -> Mapping[str, ClassCounters]:
    """The counters of a port in its switch's P4 program, by class."""
    return program.get(ref.node.name, {}).get(ref.port, {})


def added(before: Mapping[str, Sequence[Row]], now: Mapping[str, Sequence[Row]]) -> Rows:
    """The counts between two readings; packets waiting now stay as they are."""
    result: Rows = {}
    for kind, rows in now.items():
        earlier = {(row["IFACE"], row.get("CLASS")): row for row in before[kind]}
        result[kind] = [difference(earlier.get((row["IFACE"], row.get("CLASS")), {}), row) for row in rows]
    return result


def difference(before: Row, now: Row) -> Row:
    """One row less another. A counter that fell belongs to a switch that has started anew: its whole count is new."""

    def less(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            old = before.get(name, {})
            return {cause: more for cause, count in value.items() if (more := rise(old.get(cause, 0), count))}
        counts = isinstance(value, int) and name not in GAUGES
        return rise(before.get(name) or 0, value) if counts else value

    return {name: less(name, value) for name, value in now.items()}


def rise(before: int, now: int) -> int:
    """How much a counter grew; its whole count where it began anew."""
    return now - before if now >= before else now
