"""One-shot action selectors: entries that carry their own sets of actions (specification, "One Shot Action Selector
Programming").

The engine knows only members and groups, so a set becomes a group of fresh members. Their ids cannot meet the
client's: a selector is programmed in one style or in the other, which is checked here and in `profiles`.
"""

from __future__ import annotations

from typing import Any

from switch.engine import EngineError
from switch.p4rt.codec import decode_action
from switch.p4rt.errors import exhausted, invalid
from switch.p4rt.p4info import TableInfo
from switch.p4rt.profiles import check_total_weight, check_watch, check_weight, group_size
from switch.p4rt.store import EntityStore, Group, Member


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
