"""Writing table entries: insert, modify, delete, default entries, direct resources (specification, "TableEntry")."""

from typing import Any

from p4c.entries import Entry, EntryAction, GroupRef, MemberRef
from switch.engine import EngineError
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.codec import decode_action
from switch.p4rt.errors import choices, denied, exhausted, exists, invalid, not_found, unimplemented
from switch.p4rt.keys import decode_key, find_row, find_table, key_words
from switch.p4rt.meters import decode_meter_config
from switch.p4rt.p4info import TableInfo
from switch.p4rt.profiles import check_total_weight, check_watch, check_weight, group_size
from switch.p4rt.resources import decode_counter
from switch.p4rt.store import EntityStore, Group, Member, RowKey, StoredEntry


# One-shot action selectors: entries that carry their own sets of actions (specification, "One Shot Action Selector
# Programming").
# The engine knows only members and groups, so a set becomes a group of fresh members. Their ids cannot meet the
# client's: a selector is programmed in one style or in the other, which is checked here and in `profiles`.
def create(store: EntityStore, table: TableInfo, action_set: Any) -> int:
    """Give the engine a group for `action_set`; returns its id. Raises P4RuntimeError, leaving nothing behind."""
    profile = table.profile
    if profile is None or not profile.selector:
        raise invalid(f"{table}: has no action selector, so the action cannot be a set")
    state = store.profiles[profile.id]
    if not state.one_shots and (state.members or state.groups):
        raise invalid(
            f"{table}: action profile {profile.name} is programmed with members and groups; "
            "its tables cannot also have action sets"
        )
    actions = []
    for number, item in enumerate(action_set.action_profile_actions):
        owner = f"{table}: action set: action {number}"
        check_weight(owner, profile, item.weight)
        check_watch(owner, item)
        call = decode_action(
            owner, table.actions, item.action, table.default_only, "is default-only, so no entry can have it"
        )
        actions.append((call, item.weight))
    if not actions:
        raise invalid(f"{table}: the action set is empty")
    weights = [weight for _, weight in actions]
    check_total_weight(f"{table}: action set", weights)
    size = group_size(profile, weights)
    if profile.max_group_size and size > profile.max_group_size:
        raise invalid(f"{table}: the action set's size {size} exceeds the most, {profile.max_group_size}")
    if profile.size and len(state.members) + len(actions) > profile.size:
        raise exhausted(f"action profile {profile.name}: is full: its size is {profile.size} members")
    group_id = state.one_shot_next
    members = tuple((group_id + 1 + number, weight) for number, (_, weight) in enumerate(actions))
    given = 0
    try:
        for (member_id, _), (call, _) in zip(members, actions, strict=True):
            store.engine.set_member(profile.name, member_id, call)
            given += 1
        store.engine.set_group(profile.name, group_id, members)
    except EngineError:
        for member_id, _ in members[:given]:
            store.engine.delete_member(profile.name, member_id)
        raise
    state.one_shot_next += len(members) + 1
    for (member_id, _), (call, _) in zip(members, actions, strict=True):
        state.members[member_id] = Member(call, groups=1)
    state.groups[group_id] = Group(members, 0, rows=1)
    state.one_shots += 1
    return group_id


def destroy(store: EntityStore, table: TableInfo, group_id: int) -> None:
    """Undo `create` once no entry refers to the group."""
    assert table.profile is not None
    state = store.profiles[table.profile.id]
    store.engine.delete_group(table.profile.name, group_id)
    for member_id, _ in state.groups.pop(group_id).members:
        store.engine.delete_member(table.profile.name, member_id)
        del state.members[member_id]
    state.one_shots -= 1


INSERT, MODIFY, DELETE = p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE


def write(store: EntityStore, kind: int, message: Any) -> None:
    """One update. Raises P4RuntimeError and changes nothing when it is refused."""
    table = find_table(store, message.table_id)
    if message.is_const and kind != DELETE:
        raise invalid(f"{table}: is_const must not be set: only the P4 program has constant entries")
    if message.is_default_action:
        _write_default(store, table, kind, message)
        return
    if not table.fields:
        raise invalid(f"{table}: has no match fields, so it can have no entries; modify its default action")
    if table.const and kind != MODIFY:
        raise denied(f"{table}: is constant: its entries are fixed by the P4 program")
    key = decode_key(table, message)
    if kind == INSERT:
        _insert(store, table, key, message)
    elif kind == MODIFY:
        _modify(store, table, key, message)
    else:
        _delete(store, table, key)


def _insert(store: EntityStore, table: TableInfo, key: RowKey, message: Any) -> None:
    if not message.HasField("action"):
        raise invalid(f"{table}: the action is missing; actions: {choices(table.entry_actions())}")
    _check_unsupported(table, message)
    counter, meter, meter_bytes = _decode_resources(table, message)
    one_shot = message.action.WhichOneof("type") == "action_profile_action_set"
    action = None if one_shot else _decode_entry_action(store, table, message.action)
    rows = store.rows[table.id]
    if key in rows:
        raise exists(f"{table}: there is an entry with {key_words(table, key)} already")
    if table.size and len(rows) >= table.size:
        raise exhausted(f"{table}: is full: its size is {table.size} entries")
    if action is None:
        row = _insert_one_shot(store, table, key, message)
    else:
        entry = Entry(key[1], action, key[0])
        row = StoredEntry(entry, store.engine.insert_entry(table.name, entry))
        if table.profile is not None:
            store.references(table, action, 1)
    row.metadata = message.metadata
    row.controller_metadata = message.controller_metadata
    row.idle_timeout_ns = message.idle_timeout_ns
    row.since_ns = row.timer_ns = store.now_ns()
    store.idle.start(table, row)
    rows[key] = row
    assert row.handle is not None
    if counter is not None:
        store.engine.write_direct_counter(table.name, row.handle, counter)
    if meter is not None:
        store.engine.set_direct_meter(table.name, row.handle, meter)
        row.meter, row.meter_bytes = meter, meter_bytes


def _insert_one_shot(store: EntityStore, table: TableInfo, key: RowKey, message: Any) -> StoredEntry:
    group_id = create(store, table, message.action.action_profile_action_set)
    entry = Entry(key[1], GroupRef(group_id), key[0])
    try:
        handle = store.engine.insert_entry(table.name, entry)
    except Exception:
        destroy(store, table, group_id)
        raise
    return StoredEntry(entry, handle, action_set=message.action.SerializeToString(), group=group_id)


def _modify(store: EntityStore, table: TableInfo, key: RowKey, message: Any) -> None:
    row = find_row(store, table, key)
    if row.const and message.HasField("action"):
        raise denied(
            f"{table}: the entry is constant: only its direct counter and meter may be modified, "
            "so the action must be left out"
        )
    _check_unsupported(table, message)
    counter, meter, meter_bytes = _decode_resources(table, message)
    assert row.handle is not None
    if message.HasField("action"):
        _modify_action(store, table, row, message)
    if not row.const:
        row.metadata = message.metadata
        row.controller_metadata = message.controller_metadata
        if row.idle_timeout_ns != message.idle_timeout_ns:
            row.idle_timeout_ns = message.idle_timeout_ns
            store.idle.start(table, row)
    row.encoded = None
    if counter is not None:
        store.engine.write_direct_counter(table.name, row.handle, counter)
    if table.direct_meter is not None and (meter is not None or row.meter is not None):
        store.engine.set_direct_meter(table.name, row.handle, meter)
        row.meter, row.meter_bytes = meter, meter_bytes


def _modify_action(store: EntityStore, table: TableInfo, row: StoredEntry, message: Any) -> None:
    assert row.handle is not None
    old, old_group = row.entry.action, row.group
    action_set, group = None, 0
    action: EntryAction
    if message.action.WhichOneof("type") == "action_profile_action_set":
        group = create(store, table, message.action.action_profile_action_set)
        action, action_set = GroupRef(group), message.action.SerializeToString()
    else:
        action = _decode_entry_action(store, table, message.action, replaced_one_shots=1 if old_group else 0)
    try:
        store.engine.modify_entry(table.name, row.handle, action)
    except Exception:
        if group:
            destroy(store, table, group)
        raise
    if old_group:
        destroy(store, table, old_group)
    else:
        store.references(table, old, -1)
    if not group:
        store.references(table, action, 1)
    row.entry = Entry(row.entry.matches, action, row.entry.priority)
    row.action_set, row.group = action_set, group


def _delete(store: EntityStore, table: TableInfo, key: RowKey) -> None:
    row = find_row(store, table, key)
    if row.const:
        raise denied(f"{table}: the entry is constant: it is fixed by the P4 program")
    assert row.handle is not None
    store.engine.delete_entry(table.name, row.handle)
    row.idle_timeout_ns = 0
    del store.rows[table.id][key]
    if row.group:
        destroy(store, table, row.group)
    else:
        store.references(table, row.entry.action, -1)


def _write_default(store: EntityStore, table: TableInfo, kind: int, message: Any) -> None:
    if kind != MODIFY:
        raise invalid(f"{table}: the default entry always exists; it can only be modified")
    if message.match:
        raise invalid(f"{table}: the default entry must not have match fields")
    if message.priority:
        raise invalid(f"{table}: the default entry's priority must be 0, not {message.priority}")
    if table.const_default_action:
        name = store.pipeline.p4info.actions[table.const_default_action].name
        raise denied(f"{table}: the default action is constant: always {name}")
    if table.profile is not None:
        raise denied(f"{table}: the default action of a table with action profile {table.profile.name} is fixed")
    _check_unsupported(table, message)
    for name in ("meter_config", "counter_data"):
        if message.HasField(name):
            raise unimplemented(f"{table}: the default entry has no direct counter or meter")
    if not message.HasField("action"):
        store.engine.set_default_action(table.name, None)
        store.defaults.pop(table.id, None)
        return
    if message.action.WhichOneof("type") != "action":
        raise invalid(f"{table}: the default action must be one of {choices(table.default_actions())}")
    action = decode_action(
        str(table), table.actions, message.action.action, table.table_only, "is table-only, so it cannot be the default"
    )
    store.engine.set_default_action(table.name, action)
    store.defaults[table.id] = StoredEntry(
        Entry((), action), None, metadata=message.metadata, controller_metadata=message.controller_metadata
    )


def _decode_entry_action(
    store: EntityStore, table: TableInfo, message: Any, replaced_one_shots: int = 0
) -> EntryAction:
    kind = message.WhichOneof("type")
    profile = table.profile
    if profile is None:
        if kind != "action":
            raise invalid(
                f"{table}: has no action profile, so the action must be given directly, not as {kind or 'nothing'}"
            )
        return decode_action(
            str(table), table.actions, message.action, table.default_only, "is default-only, so no entry can have it"
        )
    state = store.profiles[profile.id]
    if kind == "action_profile_member_id" or (kind == "action_profile_group_id" and profile.selector):
        if state.one_shots > replaced_one_shots:
            raise invalid(
                f"{table}: action profile {profile.name} is programmed with action sets; "
                "its tables cannot also refer to members or groups"
            )
        member = kind == "action_profile_member_id"
        noun, known = ("member", state.members.keys()) if member else ("group", state.groups.keys())
        id_ = getattr(message, kind)
        if id_ not in known:
            where = f"{table}: action profile {profile.name}"
            raise not_found(f"{where} has no {noun} {id_}; {noun}s: {choices(sorted(known))}")
        return MemberRef(id_) if member else GroupRef(id_)
    valid = "a member id, a group id or an action set" if profile.selector else "a member id"
    raise invalid(f"{table}: has action profile {profile.name}, so the action must be {valid}, not {kind or 'nothing'}")


def _check_unsupported(table: TableInfo, message: Any) -> None:
    if message.HasField("time_since_last_hit"):
        raise invalid(f"{table}: time_since_last_hit can only be read")
    if message.idle_timeout_ns and (message.is_default_action or not table.idle_timeout):
        what = "the default entry" if message.is_default_action else "a table without `support_timeout = true`"
        raise invalid(f"{table}: {what} has no idle timeout")
    if message.idle_timeout_ns < 0:
        raise invalid(f"{table}: idle_timeout_ns must not be negative (got {message.idle_timeout_ns})")
    if message.HasField("meter_counter_data"):
        raise unimplemented(f"{table}: counters per meter colour are not supported")


def _decode_resources(table: TableInfo, message: Any) -> tuple[Any, Any, bytes]:
    """Direct counter value, direct meter configuration, and the latter as the client wrote it."""
    counter = meter = None
    meter_bytes = b""
    if message.HasField("counter_data"):
        if table.direct_counter is None:
            raise invalid(f"{table}: has no direct counter, so counter_data must be left out")
        counter = decode_counter(str(table), message.counter_data)
    if message.HasField("meter_config"):
        if table.direct_meter is None:
            raise invalid(f"{table}: has no direct meter, so meter_config must be left out")
        meter = decode_meter_config(str(table), message.meter_config)
        meter_bytes = message.meter_config.SerializeToString()
    return counter, meter, meter_bytes
