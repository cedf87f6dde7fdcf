"""Rows of lab 3: a student's, read with suspicion, and those that the controller installs for the same plan."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller import Entity, TableEntry
from controller.tables import tables
from course.box.box import Box, BoxError
from p4c.entries import Exact, Lpm
from topo import Plan, Switch

ACTIONS: Mapping[str, Mapping[str, bool]] = {
    "my_sid": {"end_un": False},
    "ipv6_route": {"set_next_hop": True, "drop_unknown_usid": False},
    "host_facing": {"mark_last_hop": True},
}
"""The tables of the lab with their actions, and whether an action takes a number."""
ROWS_MAX = 512
NUMBER_MAX = 511


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row. `match` is a prefix, or the number of a port; `argument` None for an action without one."""

    table: str
    match: ipaddress.IPv6Network | int
    action: str
    argument: int | None = None

    @property
    def entity(self) -> TableEntry:
        """As the controller writes it."""
        arguments = () if self.argument is None else (self.argument,)
        if isinstance(self.match, int):
            return TableEntry(self.table, (("egress_port", Exact(self.match)),), self.action, arguments)
        prefix = Lpm(int(self.match.network_address), self.match.prefixlen)
        return TableEntry(self.table, (("dst_addr", prefix),), self.action, arguments)

    def __str__(self) -> str:
        said = "" if self.argument is None else f" {self.argument}"
        return f"{self.table} {self.match} {self.action}{said}"


def plan_words(plan: Plan) -> dict[str, Any]:
    """The plan as a student's function gets it."""
    numbers = {name: getattr(plan, name) for name in ("planes", "leaves", "spines", "hosts_per_leaf")}
    return {**numbers, "block": str(plan.usid_block), "last_hop_dscp": plan.dscp.trimmed_lasthop}


def switch_words(switch: Switch) -> dict[str, Any]:
    """A switch as a student's function gets it."""
    return {"name": switch.name, "role": switch.role, "plane": switch.plane, "index": switch.index}


def student_rows(box: Box, plan: Plan, name: str) -> dict[Switch, list[TableRow]]:
    """The student's rows of every switch. BoxError for a row that could not be written into a switch."""
    by_switch = {}
    for switch in plan.switches():
        answer = box.call("rows", plan_words(plan), switch_words(switch))
        if not isinstance(answer, list) or len(answer) > ROWS_MAX:
            raise BoxError(f"{name}: rows must return a list of at most {ROWS_MAX} rows (for {switch}: {answer!r:.80})")
        by_switch[switch] = [row(item, f"{name}: row {at + 1} of {switch}") for at, item in enumerate(answer)]
    return by_switch


def row(entry: object, where: str) -> TableRow:
    """One row of an answer. BoxError says what a row must be."""
    if not isinstance(entry, list) or not 3 <= len(entry) <= 4:
        raise BoxError(f"{where} must be (table, match, action) or (table, match, action, number); got {entry!r:.80}")
    table, match, action, argument = (*entry, None)[:4]
    if not isinstance(table, str) or table not in ACTIONS:
        raise BoxError(f"{where}: the table must be one of {', '.join(ACTIONS)}; got {table!r:.80}")
    if not isinstance(action, str) or action not in ACTIONS[table]:
        raise BoxError(f"{where}: the action of {table} must be one of {', '.join(ACTIONS[table])}; got {action!r:.80}")
    takes = ACTIONS[table][action]
    if takes and (type(argument) is not int or not 0 <= argument <= NUMBER_MAX):
        raise BoxError(f"{where}: {action} must have a number from 0 to {NUMBER_MAX}; got {argument!r:.80}")
    if not takes and argument is not None:
        raise BoxError(f"{where}: {action} takes no number; got {argument!r:.80}")
    number = argument if takes else None
    if table == "host_facing":
        if type(match) is not int or not 0 <= match <= NUMBER_MAX:
            raise BoxError(f"{where}: the match of host_facing must be a port's number; got {match!r:.80}")
        return TableRow(table, match, action, number)
    try:
        return TableRow(table, ipaddress.IPv6Network(str(match)), action, number)
    except ValueError as error:
        raise BoxError(f"{where}: the match of {table} must be a prefix such as fcbb:bbbb:1000::/48: {error}") from None


def installed(plan: Plan, switch: Switch) -> list[TableRow]:
    """The rows that the lab's controller installs in these tables: rows for uSIDs and for the last hop."""
    return [row for entity in tables(plan, switch) if (row := of_lab(plan, entity)) is not None]


def of_lab(plan: Plan, entity: Entity) -> TableRow | None:
    """An entry as a row; None for those that are not the lab's: adjacencies, plain routes, queues, classes."""
    if not isinstance(entity, TableEntry) or entity.action not in ACTIONS.get(entity.table, ()):
        return None
    match, argument = entity.match[0][1], entity.args[0] if entity.args else None
    if isinstance(match, Exact):
        return TableRow(entity.table, match.value, entity.action, argument)
    assert isinstance(match, Lpm)
    prefix = ipaddress.IPv6Network((match.value, match.prefix_len))
    return TableRow(entity.table, prefix, entity.action, argument) if prefix.subnet_of(plan.usid_block) else None


def others(plan: Plan, switch: Switch) -> list[Entity]:
    """The entries that the student does not write: the controller's, without those of the lab."""
    return [entity for entity in tables(plan, switch, virtual_time=True) if of_lab(plan, entity) is None]
