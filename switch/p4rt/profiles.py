"""ActionProfileMember and ActionProfileGroup (specification, "ActionProfileMember & ActionProfileGroup")."""

from collections.abc import Iterator
from typing import Any, TypeVar

from switch.engine import GROUP_WEIGHT_MAX
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.codec import decode_action, encode_action
from switch.p4rt.errors import choices, exhausted, exists, invalid, not_found, unimplemented, unready
from switch.p4rt.p4info import ActionInfo, ProfileInfo, find
from switch.p4rt.store import ActionProfileState, EntityStore, Group, Member, chosen

T = TypeVar("T")
INSERT, MODIFY, DELETE = p4rt.Update.INSERT, p4rt.Update.MODIFY, p4rt.Update.DELETE


def find_profile(store: EntityStore, profile_id: int) -> tuple[ProfileInfo, ActionProfileState]:
    """Raises P4RuntimeError (INVALID_ARGUMENT) naming the profiles that exist."""
    return find(store.pipeline.p4info.profiles, profile_id, "action profile"), store.profiles[profile_id]


def profile_actions(store: EntityStore, profile: ProfileInfo) -> dict[int, ActionInfo]:
    """The actions of the tables that the profile implements."""
    actions: dict[int, ActionInfo] = {}
    for table_id in profile.table_ids:
        table = store.pipeline.p4info.tables[table_id]
        actions.update({id_: a for id_, a in table.actions.items() if id_ not in table.default_only})
    return actions


def check_weight(owner: str, profile: ProfileInfo, weight: int) -> None:
    if weight <= 0:
        raise invalid(f"{owner}: weight must be at least 1, is {weight}")
    if profile.sum_of_members and profile.max_member_weight and weight > profile.max_member_weight:
        raise invalid(f"{owner}: weight {weight} exceeds the most allowed, {profile.max_member_weight}")


def check_total_weight(owner: str, weights: list[int]) -> None:
    """Raises P4RuntimeError (RESOURCE_EXHAUSTED) above what a group of the engine can weigh."""
    total = sum(weights)
    if total > GROUP_WEIGHT_MAX:
        raise exhausted(f"{owner}: the weights add up to {total}; at most {GROUP_WEIGHT_MAX} do")


def group_size(profile: ProfileInfo, weights: list[int]) -> int:
    """The load on a group's size: its members, or their weights together (P4Info's size semantics)."""
    return len(weights) if profile.sum_of_members else sum(weights)


def _existing(owner: str, state: ActionProfileState, items: dict[int, T], noun: str, id_: int, kind: int) -> T | None:
    """The member or group that an update is about; none for an insert. Raises P4RuntimeError if that cannot be."""
    if not id_:
        raise invalid(f"{owner}: {noun} id must not be 0")
    existing = items.get(id_)
    if kind != INSERT:
        if existing is None or state.one_shots:
            known = [] if state.one_shots else sorted(items)
            raise not_found(f"{owner}: no {noun} {id_}; {noun}s: {choices(known)}")
    elif existing is not None:
        raise exists(f"{owner}: there is a {noun} {id_} already")
    elif state.one_shots:
        raise invalid(f"{owner}: is programmed with action sets; members and groups cannot be added beside them")
    return existing


def check_watch(owner: str, message: Any) -> None:
    if message.watch or message.watch_port:
        raise unimplemented(f"{owner}: watch ports are not supported; leave watch and watch_port unset")


# --- members ----------------------------------------------------------------------------------------------------


def write_member(store: EntityStore, kind: int, message: Any) -> None:
    """One update. Raises P4RuntimeError and changes nothing when it is refused."""
    profile, state = find_profile(store, message.action_profile_id)
    owner = f"action profile {profile.name}"
    member_id = message.member_id
    member = _existing(owner, state, state.members, "member", member_id, kind)
    if kind == INSERT and profile.size and len(state.members) >= profile.size:
        raise exhausted(f"{owner}: is full: its size is {profile.size} members")
    if kind == DELETE:
        assert member is not None
        if member.groups or member.rows:
            raise unready(
                f"{owner}: member {member_id} is in use (groups: {member.groups}, table entries: {member.rows})"
            )
        store.engine.delete_member(profile.name, member_id)
        del state.members[member_id]
        return
    actions = profile_actions(store, profile)
    if not message.HasField("action"):
        raise invalid(f"{owner}: member {member_id}: the action is missing; actions: {choices(actions.values())}")
    action = decode_action(f"{owner}: member {member_id}", actions, message.action)
    store.engine.set_member(profile.name, member_id, action)
    if member is None:
        state.members[member_id] = Member(action)
    else:
        member.action = action


def read_member(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities; id 0 asks for all. One-shot members are not shown: the client never made them."""
    for profile, state in _selected(store, message.action_profile_id):
        if state.one_shots:
            continue
        actions = {action.name: action for action in profile_actions(store, profile).values()}
        for member_id, member in chosen(state.members, message.member_id):
            entity = p4rt.Entity()
            entity.action_profile_member.action_profile_id = profile.id
            entity.action_profile_member.member_id = member_id
            action = encode_action(actions[member.action.name], member.action.args)
            entity.action_profile_member.action.MergeFromString(action)
            yield entity.SerializeToString()


def _selected(store: EntityStore, profile_id: int) -> list[tuple[ProfileInfo, ActionProfileState]]:
    if profile_id:
        return [find_profile(store, profile_id)]
    return [(profile, store.profiles[id_]) for id_, profile in store.pipeline.p4info.profiles.items()]


# --- groups -----------------------------------------------------------------------------------------------------


def write_group(store: EntityStore, kind: int, message: Any) -> None:
    """One update. Raises P4RuntimeError and changes nothing when it is refused."""
    profile, state = find_profile(store, message.action_profile_id)
    if not profile.selector:
        raise invalid(f"action profile {profile.name}: has no selector, so it cannot have groups")
    group_id = message.group_id
    owner = f"action profile {profile.name}"
    group = _existing(owner, state, state.groups, "group", group_id, kind)
    if kind == DELETE:
        assert group is not None
        if group.rows:
            raise unready(f"{owner}: group {group_id} is in use (table entries: {group.rows})")
        store.engine.delete_group(profile.name, group_id)
        _count_members(state, group.members, -1)
        del state.groups[group_id]
        return
    members = _decode_group(profile, state, group, message)
    store.engine.set_group(profile.name, group_id, members)
    if group is not None:
        _count_members(state, group.members, -1)
        group.members = members
    else:
        state.groups[group_id] = Group(members, message.max_size)
    _count_members(state, members, 1)


def _decode_group(
    profile: ProfileInfo, state: ActionProfileState, group: Group | None, message: Any
) -> tuple[tuple[int, int], ...]:
    owner = f"action profile {profile.name}: group {message.group_id}"
    limit = message.max_size
    if group is not None and limit != group.max_size:
        raise invalid(f"{owner}: max_size must stay {group.max_size}, not {limit}")
    if profile.max_group_size and not 0 < limit <= profile.max_group_size:
        raise invalid(f"{owner}: max_size must be 1..{profile.max_group_size}, not {limit}")
    if limit < 0:
        raise invalid(f"{owner}: max_size must not be negative, is {limit}")
    members: dict[int, int] = {}
    for item in message.members:
        at = f"{owner}: member {item.member_id}"
        if item.member_id not in state.members:
            raise not_found(f"{at}: does not exist; members: {choices(sorted(state.members))}")
        if item.member_id in members:
            raise invalid(f"{at}: is given twice; use its weight instead")
        check_weight(at, profile, item.weight)
        check_watch(at, item)
        members[item.member_id] = item.weight
    weights = list(members.values())
    check_total_weight(owner, weights)
    size = group_size(profile, weights)
    if limit and size > limit:
        raise exhausted(f"{owner}: size {size} exceeds its max_size {limit}")
    return tuple(members.items())


def _count_members(state: ActionProfileState, members: tuple[tuple[int, int], ...], change: int) -> None:
    for member_id, _ in members:
        state.members[member_id].groups += change


def read_group(store: EntityStore, message: Any) -> Iterator[bytes]:
    """Serialised entities; id 0 asks for all. One-shot groups are not shown."""
    for profile, state in _selected(store, message.action_profile_id):
        if state.one_shots:
            continue
        for group_id, group in chosen(state.groups, message.group_id):
            yield encode_group(profile, group_id, group.members, group.max_size)


def encode_group(profile: ProfileInfo, group_id: int, members: tuple[tuple[int, int], ...], max_size: int) -> bytes:
    """A serialised Entity."""
    held = [p4rt.ActionProfileGroup.Member(member_id=member_id, weight=weight) for member_id, weight in members]
    group = p4rt.ActionProfileGroup(action_profile_id=profile.id, group_id=group_id, members=held, max_size=max_size)
    return bytes(p4rt.Entity(action_profile_group=group).SerializeToString())
