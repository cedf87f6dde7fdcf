"""Entities as bytes: compared with those that a switch returns, and written to it.

An item's `key` says which object of the switch it is, its `body` is the whole canonical Entity. Our own switch answers
reads with exactly these bytes, so comparing is set arithmetic; bytes that another switch writes differently are parsed
and brought to the same form.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from controller.entries import DefaultEntry, Entity, GroupEntry, MeterEntry, SelectorGroup, SelectorMember, TableEntry
from p4c.entries import ActionCall, Match
from switch import MeterConfig
from switch.p4rt import (
    SHOWN_BYTES_MAX,
    ActionInfo,
    P4Info,
    P4RuntimeError,
    ProfileInfo,
    TableInfo,
    choices,
    codec,
    encode_group,
    invalid,
    unconfigured_cell,
    wire,
)
from switch.p4rt import p4runtime_pb2 as p4rt

T = TypeVar("T")
TABLE_ENTRY, DEFAULT, MEMBER, GROUP, METER = "entry", "default action", "member", "group", "meter"
# Members before the groups of them, groups before the entries that refer to them.
WRITE_ORDER = (MEMBER, GROUP, TABLE_ENTRY, DEFAULT, METER)
INSERTED = (MEMBER, GROUP, TABLE_ENTRY)  # the others always exist and are only modified

_TABLE_ENTRY, _MEMBER, _METER = wire.tags(p4rt.Entity, "table_entry", "action_profile_member", "meter_entry")
_TABLE_ID, _IS_DEFAULT = wire.tags(p4rt.TableEntry, "table_id", "is_default_action")
_MEMBER_PROFILE, _MEMBER_ID, _MEMBER_ACTION = wire.tags(
    p4rt.ActionProfileMember, "action_profile_id", "member_id", "action"
)
_METER_ID, _METER_INDEX, _METER_CONFIG = wire.tags(p4rt.MeterEntry, "meter_id", "index", "config")
_INDEX = wire.tag(p4rt.Index, "index")
_RATES = {name: wire.tag(p4rt.MeterConfig, name) for name in ("cir", "cburst", "pir", "pburst")}


@dataclass(frozen=True, slots=True)
class Item:
    kind: str
    key: bytes
    body: bytes
    entity: Entity = field(compare=False)


def encode(p4info: P4Info, entity: Entity) -> Item:
    """The item of an entity. Raises P4RuntimeError naming what the P4Info does not have."""
    if isinstance(entity, TableEntry | GroupEntry):
        return _encode_entry(p4info, entity)
    if isinstance(entity, DefaultEntry):
        table = p4info.table(entity.table)
        key = wire.number(_TABLE_ID, table.id)
        action = codec.encode_table_action(_action(p4info, table.actions, entity.action, entity.table), entity.args)
        return Item(DEFAULT, key, wire.block(_TABLE_ENTRY, key + action + wire.number(_IS_DEFAULT, 1)), entity)
    if isinstance(entity, SelectorMember):
        profile = p4info.profile(entity.profile)
        actions = _member_actions(p4info, profile)
        key = wire.number(_MEMBER_PROFILE, profile.id) + wire.number(_MEMBER_ID, entity.member_id)
        body = codec.encode_action(_action(p4info, actions, entity.action, entity.profile), entity.args)
        return Item(MEMBER, key, wire.block(_MEMBER, key + wire.block(_MEMBER_ACTION, body)), entity)
    if isinstance(entity, SelectorGroup):
        profile = p4info.profile(entity.profile)
        key = wire.number(_MEMBER_PROFILE, profile.id) + wire.number(_MEMBER_ID, entity.group_id)
        members = tuple((member_id, 1) for member_id in entity.members)
        return Item(GROUP, key, encode_group(profile, entity.group_id, members, entity.max_size), entity)
    meter = p4info.meter(entity.meter)
    key = wire.number(_METER_ID, meter.id) + wire.block(_METER_INDEX, wire.number(_INDEX, entity.index))
    config = b"".join(wire.number(tag, getattr(entity.config, name)) for name, tag in _RATES.items())
    return Item(METER, key, wire.block(_METER, key + wire.block(_METER_CONFIG, config)), entity)


def _encode_entry(p4info: P4Info, entity: TableEntry | GroupEntry) -> Item:
    table = p4info.table(entity.table)
    before, after = codec.encode_key(table, _matches(table, dict(entity.match)), entity.priority)
    if isinstance(entity, GroupEntry):
        action = codec.encode_table_action(group_id=entity.group_id)
    else:
        action = codec.encode_table_action(_action(p4info, table.actions, entity.action, entity.table), entity.args)
    return Item(TABLE_ENTRY, before + after, wire.block(_TABLE_ENTRY, before + action + after), entity)


def _matches(table: TableInfo, match: dict[str, Match]) -> list[Match]:
    matches = [match.pop(info.name) if info.name in match else codec.wildcard(info) for info in table.fields]
    if match:
        raise invalid(f"table {table.name}: no match field {next(iter(match))!r}; fields: {choices(table.fields)}")
    return matches


def _member_actions(p4info: P4Info, profile: ProfileInfo) -> dict[int, ActionInfo]:
    """Of the tables that the profile implements; a profile of no table has none."""
    return {id_: action for table_id in profile.table_ids for id_, action in p4info.tables[table_id].actions.items()}


def _action(p4info: P4Info, allowed: Mapping[int, ActionInfo], name: str, owner: str) -> ActionInfo:
    action = p4info.action(name)
    if action.id not in allowed:
        raise invalid(f"{owner}: no action {name!r}; actions: {choices(allowed.values())}")
    return action


def reset(item: Item) -> Item:
    """The item that takes a meter cell's configuration away: the meter then marks every packet green."""
    return Item(METER, item.key, wire.block(_METER, item.key), item.entity)


# --- what a switch answered -------------------------------------------------------------------------------------------


def decode(p4info: P4Info, body: bytes) -> Item | None:
    """The item of a serialised Entity that a switch returned; None for one that means "nothing configured".

    Raises P4RuntimeError for bytes that are no Entity, and for one of an object that the P4Info does not have.
    """
    try:
        message = p4rt.Entity.FromString(body)
    except DecodeError:
        raise invalid(f"an entity that is no P4Runtime message: {body[:SHOWN_BYTES_MAX].hex()}") from None
    which = message.WhichOneof("entity")
    entity = _DECODERS[which](p4info, getattr(message, which)) if which in _DECODERS else None
    return None if entity is None else encode(p4info, entity)


def _known(objects: Mapping[int, T], kind: str, id_: int) -> T:
    if id_ not in objects:
        raise invalid(f"an entity of {kind} id {id_}, which the P4Info does not have")
    return objects[id_]


def _decode_entry(p4info: P4Info, message: Any) -> Entity | None:
    table = _known(p4info.tables, "table", message.table_id)
    if message.is_const:
        return None
    if message.is_default_action:
        if not message.HasField("action"):
            return None
        call = codec.decode_action(table.name, table.actions, message.action.action)
        return DefaultEntry(table.alias, _alias(table.actions, call), call.args)
    pairs = zip(table.fields, codec.decode_matches(table, message.match), strict=True)
    match = tuple((info.name, value) for info, value in pairs)
    if message.action.WhichOneof("type") == "action_profile_group_id":
        return GroupEntry(table.alias, match, message.action.action_profile_group_id, message.priority)
    if message.action.WhichOneof("type") != "action":
        raise invalid(f"table {table.name}: an entry that is neither an action nor a group")
    call = codec.decode_action(table.name, table.actions, message.action.action)
    return TableEntry(table.alias, match, _alias(table.actions, call), call.args, message.priority)


def _alias(actions: Mapping[int, ActionInfo], call: ActionCall) -> str:
    return next(action.alias for action in actions.values() if action.name == call.name)


def _decode_member(p4info: P4Info, message: Any) -> Entity:
    profile = _known(p4info.profiles, "action profile", message.action_profile_id)
    actions = _member_actions(p4info, profile)
    call = codec.decode_action(profile.name, actions, message.action)
    return SelectorMember(profile.alias, message.member_id, _alias(actions, call), call.args)


def _decode_group(p4info: P4Info, message: Any) -> Entity:
    members = tuple(sorted(member.member_id for member in message.members))
    profile = _known(p4info.profiles, "action profile", message.action_profile_id)
    return SelectorGroup(profile.alias, message.group_id, members, message.max_size)


def _decode_meter(p4info: P4Info, message: Any) -> Entity | None:
    config = message.config
    if not message.HasField("config"):
        return None
    values = MeterConfig(config.cir, config.cburst, config.pir, config.pburst)
    return MeterEntry(_known(p4info.meters, "meter", message.meter_id).alias, message.index.index, values)


_DECODERS = {
    "table_entry": _decode_entry,
    "action_profile_member": _decode_member,
    "action_profile_group": _decode_group,
    "meter_entry": _decode_meter,
}


@lru_cache(maxsize=16)
def _unconfigured_cells(p4info: P4Info) -> frozenset[bytes]:
    """The bytes of meter cells without configuration, which are by far most of a switch's answer."""
    return frozenset(
        unconfigured_cell(meter.id, index) for meter in p4info.meters.values() for index in range(meter.size)
    )


@dataclass(frozen=True, slots=True)
class Changes:
    """The writes that turn a switch's present state into the wanted state. `modify` pairs (present, wanted)."""

    insert: tuple[Item, ...] = ()
    modify: tuple[tuple[Item, Item], ...] = ()
    delete: tuple[Item, ...] = ()
    unreadable: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.insert) + len(self.modify) + len(self.delete) + len(self.unreadable)


def compare(p4info: P4Info, wanted: Iterable[Item], present: Iterable[bytes]) -> Changes:
    """`present` are the serialised Entities that the switch returned."""
    by_body = {item.body: item for item in wanted}
    unconfigured = _unconfigured_cells(p4info)
    others = [body for body in present if by_body.pop(body, None) is None and body not in unconfigured]
    if not by_body and not others:
        return Changes()
    missing = {(item.kind, item.key): item for item in by_body.values()}
    modify, delete, unreadable = [], [], []
    matched = set()
    for body in others:
        try:
            actual = decode(p4info, body)
        except P4RuntimeError as error:
            unreadable.append(str(error))
            continue
        if actual is None:
            continue
        key = (actual.kind, actual.key)
        expected = missing.get(key)
        if expected is None:
            delete.append(actual)
        else:
            matched.add(key)
            if expected.body != actual.body:
                modify.append((actual, expected))
    insert = [item for key, item in missing.items() if key not in matched]
    return Changes(tuple(insert), tuple(modify), tuple(delete), tuple(unreadable))
