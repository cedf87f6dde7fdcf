"""Updates that undo others, for batches of all or none (specification, "Batch Atomicity", ROLLBACK_ON_ERROR)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.store import EntityStore

INSERT, MODIFY, DELETE = p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE


def undoing(store: EntityStore, update: Any, read: Callable[[EntityStore, Any], Iterator[bytes | object]]) -> list[Any]:
    """What brings back the state of before `update`, which has not been tried yet. Nothing if the update cannot do."""
    if update.type == INSERT:
        return [p4rt.Update(type=DELETE, entity=update.entity)]
    found = [p4rt.Entity.FromString(item) for item in read(store, _object(store, update)) if isinstance(item, bytes)]
    if update.entity.HasField("table_entry"):
        for entity in found:
            _without_what_stays(store, update, entity.table_entry)
    return [p4rt.Update(type=MODIFY if update.type == MODIFY else INSERT, entity=entity) for entity in found]


def _object(store: EntityStore, update: Any) -> Any:
    """The entity of a Read for all that the update may change."""
    asked = p4rt.Entity()
    asked.CopyFrom(update.entity)
    table = store.pipeline.p4info.tables.get(asked.table_entry.table_id)
    if asked.HasField("table_entry") and table is not None and not asked.table_entry.is_default_action:
        for name in ("action", "metadata", "controller_metadata"):
            asked.table_entry.ClearField(name)  # a Read would select by them
        if table.direct_counter is not None:
            asked.table_entry.counter_data.SetInParent()
        if table.direct_meter is not None:
            asked.table_entry.meter_config.SetInParent()
    return asked


def _without_what_stays(store: EntityStore, update: Any, entry: Any) -> None:
    """A counter that the update does not set goes on counting, and an unchanged default action is the program's."""
    if update.type == MODIFY and not update.entity.table_entry.HasField("counter_data"):
        entry.ClearField("counter_data")
    if entry.is_default_action and entry.table_id not in store.defaults:
        entry.ClearField("action")
