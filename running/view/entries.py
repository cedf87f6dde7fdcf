"""The entries that a switch holds, as text."""

from controller.words import match, number
from p4c.entries import ActionCall, GroupRef
from switch.p4rt import EntityStore, StoredEntry, TableInfo


def entry_rows(store: EntityStore | None) -> list[dict[str, str]]:
    """Every entry that a switch holds, as text: table, match, action; nothing after a crash."""
    if store is None:
        return []
    rows = [_row(info, row) for info, row in store.all_rows()]
    return sorted(rows, key=lambda row: (row["table"], row["match"], row["action"]))


def _row(info: TableInfo, row: StoredEntry) -> dict[str, str]:
    matches = zip(info.fields, row.entry.matches, strict=True)
    parts = [f"{field.name}={text}" for field, value in matches if (text := match(value, field.bits))]
    return {"table": info.name.rsplit(".", 1)[-1], "match": " ".join(parts), "action": _action(info, row)}


def _action(info: TableInfo, row: StoredEntry) -> str:
    action = row.entry.action
    if isinstance(action, ActionCall):
        name = action.name.rsplit(".", 1)[-1]
        known = next((candidate for candidate in info.actions.values() if candidate.name == action.name), None)
        bits = [parameter.bits for parameter in known.params] if known else [32] * len(action.args)
        return f"{name}({', '.join(number(value, width) for value, width in zip(action.args, bits, strict=True))})"
    return f"group {action.group_id}" if isinstance(action, GroupRef) else f"member {action.member_id}"
