"""Counters, registers and value sets, and what all indexed and direct resources have in common.

Specification: "CounterEntry & DirectCounterEntry", "RegisterEntry", "ValueSetEntry". Indexed resources only know
MODIFY. Without an index a write goes to every element and a read returns every element.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from switch.engine import CounterValue
from switch.p4rt import codec, wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.bytestring import decode, encode
from switch.p4rt.errors import Code, P4RuntimeError, choices, exhausted, exists, invalid, unimplemented
from switch.p4rt.keys import decode_key, find_row, find_table
from switch.p4rt.p4info import Indexed, TableInfo, ValueSetInfo, find
from switch.p4rt.store import EntityStore, StoredEntry

_INDEX_VALUE = wire.tag(p4rt.Index, "index")
_BYTE_COUNT, _PACKET_COUNT = wire.tags(p4rt.CounterData, "byte_count", "packet_count")
_COUNTER_ENTITY = wire.tag(p4rt.Entity, "counter_entry")
_COUNTER_ID, _COUNTER_INDEX, _COUNTER_DATA = wire.tags(p4rt.CounterEntry, "counter_id", "index", "data")
_DIRECT_ENTITY = wire.tag(p4rt.Entity, "direct_counter_entry")
_DIRECT_TABLE_ENTRY, _DIRECT_DATA = wire.tags(p4rt.DirectCounterEntry, "table_entry", "data")

COUNT_MAX = (1 << 63) - 1  # an int64 on the wire


# --- indexed resources ----------------------------------------------------------------------------------------


def selected(items: Mapping[int, Indexed], id_: int, kind: str, message: Any) -> list[Indexed]:
    """The arrays that a read asks for: all of them for id 0."""
    if id_:
        return [find(items, id_, kind)]
    if message.HasField("index"):
        raise invalid(f"a read of all {kind}s (id 0) must not give an index")
    return list(items.values())


def indices(owner: str, size: int, message: Any) -> range:
    """The one index given, or all of them."""
    if not message.HasField("index"):
        return range(size)
    index = message.index.index
    if index < 0:
        raise invalid(f"{owner}: index {index} must not be negative; valid: 0..{size - 1}")
    if index >= size:
        raise P4RuntimeError(Code.OUT_OF_RANGE, f"{owner}: index {index} is beyond its size; valid: 0..{size - 1}")
    return range(index, index + 1)


def index_bytes(index: int) -> bytes:
    return wire.number(_INDEX_VALUE, index)


def only_modify(owner: str, kind: int) -> None:
    """Raises P4RuntimeError for INSERT and DELETE: the cells always exist."""
    if kind != p4rt.Update.MODIFY:
        raise invalid(f"{owner}: update type {p4rt.Update.Type.Name(kind)} is not possible; only MODIFY is")


# --- direct resources -------------------------------------------------------------------------------------------


def _require_direct(table: TableInfo, kind: str) -> None:
    if (table.direct_counter if kind == "counter" else table.direct_meter) is None:
        raise invalid(f"{table}: has no direct {kind}")


def find_direct(store: EntityStore, entry: Any, kind: str) -> tuple[TableInfo, StoredEntry]:
    """The entry that a direct `kind` ("counter", "meter") belongs to. Raises P4RuntimeError (NOT_FOUND)."""
    table = find_table(store, entry.table_id)
    _require_direct(table, kind)
    if entry.is_default_action:
        raise unimplemented(f"{table}: the default entry has no direct {kind}")
    return table, find_row(store, table, decode_key(table, entry))


def select_direct(store: EntityStore, message: Any, kind: str) -> Iterator[tuple[TableInfo, StoredEntry, bytes]]:
    """Entries that a read asks for, each with the serialised `table_entry` field (table, match, priority)."""
    entry = message.table_entry
    if not entry.table_id:
        selected = [
            (table, row)
            for table, row in store.all_rows()
            if (table.direct_counter if kind == "counter" else table.direct_meter) is not None
        ]
    else:
        table = find_table(store, entry.table_id)
        _require_direct(table, kind)
        if entry.match or entry.is_default_action:
            selected = [find_direct(store, entry, kind)]
        else:
            rows = store.rows[table.id].values()
            selected = [(table, row) for row in rows if not entry.priority or row.entry.priority == entry.priority]
    for table, row in selected:
        before, priority = codec.encode_key(table, row.entry.matches, row.entry.priority)
        yield table, row, wire.block(_DIRECT_TABLE_ENTRY, before + priority)


# --- counters ---------------------------------------------------------------------------------------------------


def decode_counter(owner: str, message: Any) -> CounterValue:
    if message.packet_count < 0 or message.byte_count < 0:
        raise invalid(f"{owner}: counter values must not be negative")
    return CounterValue(message.packet_count, message.byte_count)


def counter_bytes(value: CounterValue) -> bytes:
    """A serialised CounterData."""
    if not value.packets and not value.bytes:  # most cells of most counters
        return b""
    return wire.number(_BYTE_COUNT, min(value.bytes, COUNT_MAX)) + wire.number(
        _PACKET_COUNT, min(value.packets, COUNT_MAX)
    )


def write_counter(store: EntityStore, kind: int, message: Any) -> None:
    """One update: one cell, or all without an index. Raises P4RuntimeError and changes nothing when it is refused."""
    counter = find(store.pipeline.p4info.counters, message.counter_id, "counter")
    owner = f"counter {counter.name}"
    only_modify(owner, kind)
    wanted = indices(owner, counter.size, message)
    if message.HasField("data"):
        value = decode_counter(owner, message.data)
        for index in wanted:
            store.engine.write_counter(counter.name, index, value)


def read_counter(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities of the cells asked for."""
    for counter in selected(store.pipeline.p4info.counters, message.counter_id, "counter", message):
        head = wire.number(_COUNTER_ID, counter.id)
        for index in indices(f"counter {counter.name}", counter.size, message):
            value = store.engine.read_counter(counter.name, index)
            yield wire.block(
                _COUNTER_ENTITY,
                head + wire.block(_COUNTER_INDEX, index_bytes(index)) + wire.block(_COUNTER_DATA, counter_bytes(value)),
            )


def write_direct_counter(store: EntityStore, kind: int, message: Any) -> None:
    """One update of an entry's counter. Raises P4RuntimeError and changes nothing when it is refused."""
    table, row = find_direct(store, message.table_entry, "counter")
    owner = f"direct counter {table.direct_counter}"
    only_modify(owner, kind)
    assert row.handle is not None
    if message.HasField("data"):
        store.engine.write_direct_counter(table.name, row.handle, decode_counter(owner, message.data))


def read_direct_counter(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities of the entries asked for."""
    for table, row, head in select_direct(store, message, "counter"):
        assert row.handle is not None
        value = store.engine.read_direct_counter(table.name, row.handle)
        yield wire.block(_DIRECT_ENTITY, head + wire.block(_DIRECT_DATA, counter_bytes(value)))


# --- registers --------------------------------------------------------------------------------------------------


def write_register(store: EntityStore, kind: int, message: Any) -> None:
    """One update: one cell, or all without an index. Raises P4RuntimeError and changes nothing when it is refused."""
    register = find(store.pipeline.p4info.registers, message.register_id, "register")
    owner = f"register {register.name}"
    only_modify(owner, kind)
    _require_bits(register)
    wanted = indices(owner, register.size, message)
    if message.data.WhichOneof("data") != "bitstring":
        raise invalid(f"{owner}: data must be a bitstring for bit<{register.bits}>")
    value = decode(message.data.bitstring, register.bits, f"{owner}: data")
    for index in wanted:
        store.engine.write_register(register.name, index, value)


def read_register(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities of the cells asked for."""
    for register in selected(store.pipeline.p4info.registers, message.register_id, "register", message):
        _require_bits(register)
        for index in indices(f"register {register.name}", register.size, message):
            entry = p4rt.RegisterEntry(register_id=register.id, index=p4rt.Index(index=index))
            entry.data.bitstring = encode(store.engine.read_register(register.name, index))
            yield p4rt.Entity(register_entry=entry).SerializeToString()


def _require_bits(register: Indexed) -> None:
    if not register.bits:
        raise unimplemented(f"register {register.name}: only elements of type bit<W> can be read and written")


# --- value sets ---------------------------------------------------------------------------------------------------


def write_value_set(store: EntityStore, kind: int, message: Any) -> None:
    """One update. Raises P4RuntimeError and changes nothing when it is refused."""
    value_set = find(store.pipeline.p4info.value_sets, message.value_set_id, "value set")
    owner = f"value set {value_set.name}"
    only_modify(owner, kind)
    if len(message.members) > value_set.size:
        raise exhausted(f"{owner}: must have at most {value_set.size} members (got {len(message.members)})")
    members: dict[tuple[int, ...], None] = {}
    for place, item in enumerate(message.members):
        member = _value_set_member(f"{owner}: member {place}", value_set, item)
        if member in members:
            raise exists(f"{owner}: member {place} is given twice")
        members[member] = None
    store.engine.set_value_set(value_set.name, list(members))
    store.value_sets[value_set.id] = tuple(members)


def _value_set_member(owner: str, value_set: ValueSetInfo, item: Any) -> tuple[int, ...]:
    given = {match.field_id: match for match in item.match}
    if len(given) != len(item.match) or set(given) != {field.id for field in value_set.fields}:
        raise invalid(
            f"{owner}: must have one exact match for each of {choices(f'{f.id} {f}' for f in value_set.fields)}"
        )
    values = []
    for field in value_set.fields:
        match = given[field.id]
        if match.WhichOneof("field_match_type") != "exact":
            raise invalid(f"{owner}: match {field.id} must be exact")
        values.append(field.number(match.exact.value, f"{owner}: match {field.id}"))
    return tuple(values)


def read_value_set(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities; id 0 asks for all."""
    sets = store.pipeline.p4info.value_sets
    for value_set in [find(sets, message.value_set_id, "value set")] if message.value_set_id else sets.values():
        entry = p4rt.ValueSetEntry(value_set_id=value_set.id)
        for member in store.value_sets.get(value_set.id, ()):
            made = entry.members.add()
            for field, value in zip(value_set.fields, member, strict=True):
                made.match.add(field_id=field.id).exact.value = field.value(value)
        yield p4rt.Entity(value_set_entry=entry).SerializeToString()
