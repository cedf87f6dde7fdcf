"""Finding tables and entries by what a client sends to identify them: table id, match, priority."""

from typing import Any

from p4c.entries import Lpm, Match, Range, Ternary
from switch.p4rt.codec import decode_matches
from switch.p4rt.errors import choices, invalid, not_found
from switch.p4rt.p4info import PRIORITISED, TableInfo, find
from switch.p4rt.store import EntityStore, RowKey, StoredEntry


def find_table(store: EntityStore, table_id: int) -> TableInfo:
    """Raises P4RuntimeError (INVALID_ARGUMENT) naming the tables that exist."""
    return find(store.pipeline.p4info.tables, table_id, "table")


def decode_key(table: TableInfo, message: Any) -> RowKey:
    """Priority and matches, checked. Raises P4RuntimeError."""
    priority = message.priority
    if table.needs_priority:
        if priority <= 0:
            kinds = choices(f for f in table.fields if f.kind in PRIORITISED)
            raise invalid(f"{table}: priority must be above 0, not {priority}, because of {kinds}")
    elif priority:
        raise invalid(
            f"{table}: priority must be 0, not {priority}: no field is ternary, range or optional "
            f"(fields: {choices(table.fields)})"
        )
    return priority, decode_matches(table, message.match)


def find_row(store: EntityStore, table: TableInfo, key: RowKey) -> StoredEntry:
    """The entry with this key. Raises P4RuntimeError (NOT_FOUND)."""
    row = store.rows[table.id].get(key)
    if row is None:
        raise not_found(f"{table}: no entry with {key_words(table, key)}")
    return row


def key_words(table: TableInfo, key: RowKey) -> str:
    """An entry's key for people: each field that it restricts, then the priority."""
    parts = []
    for field, match in zip(table.fields, key[1], strict=True):
        text = match_words(match)
        if text:
            parts.append(f"{field.name}={text}")
    if table.needs_priority:
        parts.append(f"priority={key[0]}")
    return ", ".join(parts) or "no match fields"


def match_words(match: Match) -> str:
    """A match for people; empty for a match that fits anything."""
    if isinstance(match, Lpm):
        return f"0x{match.value:x}/{match.prefix_len}" if match.prefix_len else ""
    if isinstance(match, Ternary):
        return f"0x{match.value:x}&0x{match.mask:x}" if match.mask else ""
    if isinstance(match, Range):
        return f"0x{match.low:x}..0x{match.high:x}"
    return "" if match.value is None else f"0x{match.value:x}"
