"""Table entries on the wire: decoding with complete validation, and canonical encoding (specification, "TableEntry").

Decoding turns the generated messages into the engine's values; encoding writes bytes without the generated classes
(`wire` says why). Encoded match fields are in P4Info order with don't-care fields left out, so equal entries have equal
bytes.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from p4c.entries import ActionCall, Exact, Lpm, Match, Optional, Range, Ternary
from switch.p4rt import wire
from switch.p4rt.bindings import p4runtime_pb2 as p4rt
from switch.p4rt.bytestring import encode, misfit
from switch.p4rt.errors import choices, denied, invalid
from switch.p4rt.p4info import ActionInfo, FieldInfo, MatchKind, TableInfo

__all__ = ["decode_action", "decode_matches", "encode_action", "encode_key", "encode_table_action", "wildcard"]

_NO_CALLER_CHOICE: frozenset[int] = frozenset()

# --- decoding -----------------------------------------------------------------------------------------------


def decode_matches(table: TableInfo, messages: Iterable[Any]) -> tuple[Match, ...]:
    """One engine match per field of the table, in its order; absent fields match anything.

    Raises P4RuntimeError (INVALID_ARGUMENT).
    """
    matches: dict[int, Match] = {}
    for message in messages:
        field = table.field_by_id.get(message.field_id)
        if field is None:
            known = choices(f"{f.id} {f}" for f in table.fields)
            raise invalid(f"{table}: no match field with id {message.field_id}; fields: {known}")
        if field.id in matches:
            raise invalid(f"{table}: field {field}: given twice; each field may occur once")
        given = message.WhichOneof("field_match_type")
        assert field.kind is not None
        if given != field.kind.word:
            raise invalid(f"{table}: field {field}: the match is {given or 'not set'}, but must be {field.kind.word}")
        matches[field.id] = _DECODERS[field.kind](table, field, getattr(message, given))
    if len(matches) != len(table.fields):
        for field in table.fields:
            if field.id not in matches:
                if field.kind is MatchKind.EXACT:
                    raise invalid(f"{table}: field {field}: is missing; an exact field must always be given")
                matches[field.id] = wildcard(field)
    return tuple([matches[field.id] for field in table.fields])


def wildcard(field: FieldInfo) -> Match:
    """The don't-care match of a field that may be left out."""
    if field.kind is MatchKind.LPM:
        return Lpm(0, 0)
    if field.kind is MatchKind.TERNARY:
        return Ternary(0, 0)
    if field.kind is MatchKind.RANGE:
        return Range(0, field.max)
    return Optional(None)


def _integer(table: TableInfo, field: FieldInfo, value: bytes, part: str = "") -> int:
    if field.translation is not None:
        return field.translation.number(value, f"{table}: field {field}{part}")
    result = int.from_bytes(value, "big")
    if not value or result >> field.bits:
        raise misfit(value, field.bits, f"{table}: field {field}{part}")
    return result


def _exact(table: TableInfo, field: FieldInfo, message: Any) -> Match:
    return Exact(_integer(table, field, message.value))


def _lpm(table: TableInfo, field: FieldInfo, message: Any) -> Match:
    length = message.prefix_len
    if not 0 < length <= field.bits:
        hint = "; leave the field out to match anything" if length == 0 else ""
        raise invalid(f"{table}: field {field}: prefix length {length} must be 1..{field.bits}{hint}")
    value = _integer(table, field, message.value)
    if value & ((1 << field.bits - length) - 1):
        raise invalid(
            f"{table}: field {field}: 0x{value:x} has bits set behind its prefix of {length} bits; "
            f"they must be 0 (0x{value >> field.bits - length << field.bits - length:x})"
        )
    return Lpm(value, length)


def _ternary(table: TableInfo, field: FieldInfo, message: Any) -> Match:
    value = _integer(table, field, message.value)
    mask = _integer(table, field, message.mask, " mask")
    if not mask:
        raise invalid(f"{table}: field {field}: the mask is 0; leave the field out to match anything")
    if value & ~mask:
        raise invalid(
            f"{table}: field {field}: value 0x{value:x} has bits set outside its mask 0x{mask:x}; "
            f"they must be 0 (0x{value & mask:x})"
        )
    return Ternary(value, mask)


def _range(table: TableInfo, field: FieldInfo, message: Any) -> Match:
    low = _integer(table, field, message.low, " low")
    high = _integer(table, field, message.high, " high")
    if low > high:
        raise invalid(f"{table}: field {field}: low 0x{low:x} must not exceed high 0x{high:x}")
    if low == 0 and high == field.max:
        raise invalid(f"{table}: field {field}: the range holds every value; leave the field out to match anything")
    return Range(low, high)


def _optional(table: TableInfo, field: FieldInfo, message: Any) -> Match:
    return Optional(_integer(table, field, message.value))


_DECODERS: dict[MatchKind, Callable[[TableInfo, FieldInfo, Any], Match]] = {
    MatchKind.EXACT: _exact,
    MatchKind.LPM: _lpm,
    MatchKind.TERNARY: _ternary,
    MatchKind.RANGE: _range,
    MatchKind.OPTIONAL: _optional,
}


def decode_action(
    owner: str,
    allowed: Mapping[int, ActionInfo],
    message: Any,
    forbidden: frozenset[int] = _NO_CALLER_CHOICE,
    why: str = "",
) -> ActionCall:
    """An action and its arguments. `owner` names the table or profile; `forbidden` are ids out of scope, because `why`.

    Raises P4RuntimeError: INVALID_ARGUMENT, or PERMISSION_DENIED for the scope.
    """
    action = allowed.get(message.action_id)
    if action is None or action.id in forbidden:
        valid = choices(a for i, a in allowed.items() if i not in forbidden)
        if action is None:
            raise invalid(f"{owner}: no action with id {message.action_id}; actions: {valid}")
        raise denied(f"{owner}: action {action.name} {why}; valid: {valid}")
    params = message.params
    if [param.param_id for param in params] != [info.id for info in action.params]:
        params = _in_order(owner, action, params)
    arguments = []
    for info, param in zip(action.params, params, strict=True):
        value = int.from_bytes(param.value, "big")
        if info.translation is not None:
            value = info.translation.number(param.value, f"{owner}: action {action.name}: parameter {info}")
        elif not param.value or value >> info.bits:
            raise misfit(param.value, info.bits, f"{owner}: action {action.name}: parameter {info}")
        arguments.append(value)
    return ActionCall(action.name, tuple(arguments))


def _in_order(owner: str, action: ActionInfo, params: Iterable[Any]) -> list[Any]:
    """Parameters that were given in another order than declared, or wrongly."""
    given: dict[int, Any] = {}
    known = {info.id: info for info in action.params}
    for param in params:
        info = known.get(param.param_id)
        if info is None:
            valid = choices(f"{p.id} {p}" for p in action.params)
            raise invalid(f"{owner}: action {action.name}: no parameter with id {param.param_id}; parameters: {valid}")
        if info.id in given:
            raise invalid(f"{owner}: action {action.name}: parameter {info} is given twice")
        given[info.id] = param
    for info in action.params:
        if info.id not in given:
            raise invalid(f"{owner}: action {action.name}: parameter {info} is missing")
    return [given[info.id] for info in action.params]


# --- encoding -----------------------------------------------------------------------------------------------

_TABLE_ID, _MATCH, _ACTION, _PRIORITY = wire.tags(p4rt.TableEntry, "table_id", "match", "action", "priority")
_FIELD_ID = wire.tag(p4rt.FieldMatch, "field_id")
_KIND = {kind: wire.tag(p4rt.FieldMatch, kind.word) for kind in MatchKind}
_VALUE, _MASK = wire.tags(p4rt.FieldMatch.Ternary, "value", "mask")
_PREFIX_LEN = wire.tag(p4rt.FieldMatch.LPM, "prefix_len")
_LOW, _HIGH = wire.tags(p4rt.FieldMatch.Range, "low", "high")
_TABLE_ACTION, _MEMBER_ID, _GROUP_ID = wire.tags(
    p4rt.TableAction, "action", "action_profile_member_id", "action_profile_group_id"
)
_ACTION_ID, _PARAMS = wire.tags(p4rt.Action, "action_id", "params")
_PARAM_ID, _PARAM_VALUE = wire.tags(p4rt.Action.Param, "param_id", "value")


def encode_key(table: TableInfo, matches: Iterable[Match], priority: int) -> tuple[bytes, bytes]:
    """A TableEntry's fields before its action (table id and matches), and after it (priority)."""
    parts = [_TABLE_ID, wire.varint(table.id)]
    for field, match in zip(table.fields, matches, strict=True):
        body = _encode_match(field, match)
        if body is not None:
            assert field.kind is not None
            parts.append(wire.block(_MATCH, _FIELD_ID + wire.varint(field.id) + wire.block(_KIND[field.kind], body)))
    return b"".join(parts), wire.number(_PRIORITY, priority)


def _encode_match(field: FieldInfo, match: Match) -> bytes | None:
    """The body of the match kind's own message; None for a don't-care match."""
    if isinstance(match, Exact):
        return wire.block(_VALUE, field.value(match.value))
    if isinstance(match, Lpm):
        if not match.prefix_len:
            return None
        return wire.block(_VALUE, encode(match.value)) + _PREFIX_LEN + wire.varint(match.prefix_len)
    if isinstance(match, Ternary):
        if not match.mask:
            return None
        return wire.block(_VALUE, encode(match.value)) + wire.block(_MASK, encode(match.mask))
    if isinstance(match, Range):
        if match.low == 0 and match.high == field.max:
            return None
        return wire.block(_LOW, encode(match.low)) + wire.block(_HIGH, encode(match.high))
    if match.value is None:
        return None
    return wire.block(_VALUE, field.value(match.value))


def encode_action(action: ActionInfo, arguments: Iterable[int]) -> bytes:
    """A serialised p4.v1.Action."""
    parts = [_ACTION_ID, wire.varint(action.id)]
    for info, argument in zip(action.params, arguments, strict=True):
        parts.append(
            wire.block(_PARAMS, _PARAM_ID + wire.varint(info.id) + wire.block(_PARAM_VALUE, info.value(argument)))
        )
    return b"".join(parts)


def encode_table_action(
    action: ActionInfo | None = None, arguments: Iterable[int] = (), *, member_id: int = 0, group_id: int = 0
) -> bytes:
    """TableEntry.action: an action, or a reference to a member or a group."""
    if action is not None:
        return wire.block(_ACTION, wire.block(_TABLE_ACTION, encode_action(action, arguments)))
    if member_id:
        return wire.block(_ACTION, _MEMBER_ID + wire.varint(member_id))
    return wire.block(_ACTION, _GROUP_ID + wire.varint(group_id))
