"""The ids in a P4Info: each is unique, and each that refers to another object leads to it.

Checked once, before an object is looked up by its id: later, a wrong id would break a request in the middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from switch.p4rt.errors import choices, invalid

Objects = Mapping[int, Any]
"""The P4Info's messages of one kind, by id."""


def check_ids(message: Any) -> None:
    """Raises P4RuntimeError (INVALID_ARGUMENT) naming the first id, name or alias that contradicts another."""
    tables = _objects("table", message.tables)
    actions = _objects("action", message.actions)
    profiles = _objects("action profile", message.action_profiles)
    counters = _objects("direct counter", message.direct_counters)
    meters = _objects("direct meter", message.direct_meters)
    _objects("counter", message.counters)
    _objects("meter", message.meters)
    _objects("register", message.registers)
    for header in _objects("packet header", message.controller_packet_metadata).values():
        _check_unique(f"packet header {header.preamble.name}: metadata id", (item.id for item in header.metadata))
    for action in actions.values():
        _check_unique(f"action {action.preamble.name}: parameter id", (param.id for param in action.params))
    for kind, resources in (("counter", counters), ("meter", meters)):
        for id_, resource in resources.items():
            owner = f"direct {kind} {resource.preamble.name}"
            table = _find(owner, "table", resource.direct_table_id, tables)
            if id_ not in table.direct_resource_ids:
                raise invalid(f"P4Info: {owner}: {_name(table)} does not have it")
    for table in tables.values():
        _check_actions(table, actions)
        _check_unique(f"{_name(table)}: match field id", (item.id for item in table.match_fields))
        _check_implementation(table, profiles)
        _check_direct_resources(table, {**counters, **meters})
    for profile in profiles.values():
        owner = f"action profile {profile.preamble.name}"
        for id_ in profile.table_ids:
            table = _find(owner, "table", id_, tables)
            if table.implementation_id != profile.preamble.id:
                raise invalid(f"P4Info: {owner}: {_name(table)} is not implemented by it")


def _objects(kind: str, items: Iterable[Any]) -> Objects:
    preambles = [item.preamble for item in items]
    _check_unique(f"{kind} id", (preamble.id for preamble in preambles))
    if any(preamble.id == 0 for preamble in preambles):
        raise invalid(f"P4Info: {kind} id must not be 0")
    _check_unique(f"{kind} name", (repr(preamble.name) for preamble in preambles))
    _check_unique(f"{kind} alias", (repr(preamble.alias) for preamble in preambles if preamble.alias))
    return {item.preamble.id: item for item in items}


def _check_unique(what: str, values: Iterable[object]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise invalid(f"P4Info: {what} {value} is given twice")
        seen.add(value)


def _name(table: Any) -> str:
    return f"table {table.preamble.name}"


def _find(owner: str, kind: str, id_: int, objects: Objects, kinds: str = "") -> Any:
    found = objects.get(id_)
    if found is None:
        known = choices(f"{i} {item.preamble.name}" for i, item in objects.items())
        raise invalid(f"P4Info: {owner}: {kind} id {id_} is not declared; {kinds or kind + 's'}: {known}")
    return found


def _check_actions(table: Any, actions: Objects) -> None:
    ids = [reference.id for reference in table.action_refs]
    for id_ in ids:
        _find(_name(table), "action", id_, actions)
    _check_unique(f"{_name(table)}: action id", ids)
    for what, id_ in (("constant", table.const_default_action_id), ("initial", table.initial_default_action.action_id)):
        if id_ and id_ not in ids:
            raise invalid(
                f"P4Info: {_name(table)}: the {what} default action's id {id_} must be one of its actions: "
                f"{choices(ids)}"
            )


def _check_implementation(table: Any, profiles: Objects) -> None:
    if not table.implementation_id:
        return
    profile = _find(_name(table), "action profile", table.implementation_id, profiles)
    if table.preamble.id not in profile.table_ids:
        raise invalid(
            f"P4Info: {_name(table)}: is not among the tables of its action profile {profile.preamble.name}: "
            f"{choices(profile.table_ids)}"
        )


def _check_direct_resources(table: Any, resources: Objects) -> None:
    for id_ in table.direct_resource_ids:
        resource = _find(_name(table), "direct resource", id_, resources, "direct counters and meters")
        if resource.direct_table_id != table.preamble.id:
            owner = f"direct resource {resource.preamble.name}"
            raise invalid(f"P4Info: {_name(table)}: {owner} belongs to table id {resource.direct_table_id}")
