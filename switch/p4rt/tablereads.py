"""Reading table entries: filters, default entries, direct resources (specification, "Wildcard Reads")."""

from collections.abc import Iterator
from typing import Any

from p4c.entries import ActionCall, Entry, MemberRef
from switch.p4rt import wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.codec import encode_key, encode_table_action
from switch.p4rt.errors import Code, P4RuntimeError, choices, invalid, unimplemented
from switch.p4rt.keys import decode_key, find_table
from switch.p4rt.p4info import TableInfo
from switch.p4rt.resources import counter_bytes
from switch.p4rt.store import EntityStore, StoredEntry

NO_ACTION = ActionCall("")

_CONTROLLER_METADATA, _METER_CONFIG, _COUNTER_DATA, _IS_DEFAULT_ACTION, _METADATA, _IS_CONST, _ACTION = wire.tags(
    p4rt.TableEntry,
    "controller_metadata",
    "meter_config",
    "counter_data",
    "is_default_action",
    "metadata",
    "is_const",
    "action",
)
_IDLE_TIMEOUT_NS, _TIME_SINCE_LAST_HIT = wire.tags(p4rt.TableEntry, "idle_timeout_ns", "time_since_last_hit")
_ELAPSED_NS = wire.tag(p4rt.TableEntry.IdleTimeout, "elapsed_ns")
_ENTITY = wire.tag(p4rt.Entity, "table_entry")


def read(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities that the filter `message` selects."""
    if message.HasField("meter_counter_data"):
        raise unimplemented("counters per meter colour are not supported")
    if not message.table_id:
        if message.match or message.priority or message.is_default_action or message.HasField("action"):
            raise invalid("a read of all tables (table id 0) cannot have any other filter; give the table id")
        tables = list(store.pipeline.p4info.tables.values())
    else:
        tables = [find_table(store, message.table_id)]
    counters, meters = message.HasField("counter_data"), message.HasField("meter_config")
    since = message.HasField("time_since_last_hit")
    if since and message.table_id and (message.is_default_action or not tables[0].idle_timeout):
        raise invalid(f"{tables[0]}: time_since_last_hit is of entries of tables with `support_timeout = true`")
    for table in tables:
        for row in _select(store, table, message):
            yield encode_entity(store, table, row, counters=counters, meters=meters, since=since and table.idle_timeout)


def _select(store: EntityStore, table: TableInfo, message: Any) -> Iterator[StoredEntry]:
    if message.is_default_action:
        if message.match or message.priority:
            raise invalid(f"{table}: the default entry has neither match fields nor priority")
        yield default_row(store, table)
        return
    if message.match:
        key = decode_key(table, message)
        stored = store.rows[table.id].get(key)
        rows = [] if stored is None else [stored]
    else:
        rows = list(store.rows[table.id].values())
    wanted = _wanted_action(table, message)
    for row in rows:
        if message.priority and row.entry.priority != message.priority:
            continue
        if message.controller_metadata and row.controller_metadata != message.controller_metadata:
            continue
        if message.metadata and row.metadata != message.metadata:
            continue
        if wanted is not None and not (isinstance(row.entry.action, ActionCall) and row.entry.action.name == wanted):
            continue
        yield row


def _wanted_action(table: TableInfo, message: Any) -> str | None:
    if not message.HasField("action"):
        return None
    if message.action.WhichOneof("type") != "action" or table.profile is not None:
        raise invalid(f"{table}: reads can be filtered by action only, in tables without an action profile")
    action = table.actions.get(message.action.action.action_id)
    if action is None:
        raise invalid(
            f"{table}: no action with id {message.action.action.action_id}; actions: {choices(table.actions.values())}"
        )
    return action.name


def default_row(store: EntityStore, table: TableInfo) -> StoredEntry:
    """The default entry: the written one, else the program's own, which has no action when a miss does nothing."""
    row = store.defaults.get(table.id)
    if row is not None:
        return row
    compiled = store.pipeline.program_tables[table.name].default
    if compiled is None:
        return StoredEntry(Entry((), NO_ACTION), None)
    return StoredEntry(Entry((), ActionCall(compiled.action.name, tuple(compiled.args))), None)


def encode_entity(
    store: EntityStore,
    table: TableInfo,
    row: StoredEntry,
    *,
    counters: bool = False,
    meters: bool = False,
    since: bool = False,
) -> bytes:
    """A serialised Entity; direct resources and the time of the last hit only when asked for (specification)."""
    body = encode_entry(store, table, row)
    if row.handle is not None:
        if since:
            last_ns = max(row.since_ns, store.engine.read_last_hit_ns(table.name, row.handle))
            body += wire.block(_TIME_SINCE_LAST_HIT, wire.number(_ELAPSED_NS, max(store.now_ns() - last_ns, 0)))
        if meters and row.meter is not None:
            body += wire.block(_METER_CONFIG, row.meter_bytes)
        if counters and table.direct_counter is not None:
            value = store.engine.read_direct_counter(table.name, row.handle)
            body += wire.block(_COUNTER_DATA, counter_bytes(value))
    return wire.block(_ENTITY, body)


def encode_entry(store: EntityStore, table: TableInfo, row: StoredEntry) -> bytes:
    """A serialised TableEntry without those."""
    if row.encoded is None:
        row.encoded = _encode_row(store, table, row)
    return row.encoded


def _encode_row(store: EntityStore, table: TableInfo, row: StoredEntry) -> bytes:
    action = row.entry.action
    if row.action_set is not None:
        action_bytes = wire.block(_ACTION, row.action_set)
    elif action is NO_ACTION:
        action_bytes = b""
    elif isinstance(action, ActionCall):
        action_bytes = encode_table_action(_action_named(table, action.name), action.args)
    elif isinstance(action, MemberRef):
        action_bytes = encode_table_action(member_id=action.member_id)
    else:
        action_bytes = encode_table_action(group_id=action.group_id)
    if row.handle is None:
        before, priority = wire.number(wire.tag(p4rt.TableEntry, "table_id"), table.id), b""
    else:
        before, priority = encode_key(table, row.entry.matches, row.entry.priority)
    return b"".join(
        (
            before,
            action_bytes,
            priority,
            wire.number(_CONTROLLER_METADATA, row.controller_metadata),
            wire.number(_IS_DEFAULT_ACTION, row.handle is None),
            wire.number(_IDLE_TIMEOUT_NS, row.idle_timeout_ns),
            wire.block(_METADATA, row.metadata) if row.metadata else b"",
            wire.number(_IS_CONST, row.const),
        )
    )


def _action_named(table: TableInfo, name: str) -> Any:
    for action in table.actions.values():
        if action.name == name:
            return action
    raise P4RuntimeError(Code.INTERNAL, f"{table}: action {name} is not in its P4Info")
