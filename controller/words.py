"""Entries as a person reads them: addresses as addresses, names of parameters, one line each."""

from ipaddress import IPv6Address

from controller.entries import DefaultEntry, Entity, GroupEntry, MeterEntry, SelectorGroup, SelectorMember, TableEntry
from p4c.entries import Lpm, Match, Range, Ternary
from switch.p4rt import P4Info

__all__ = ["key", "match", "number", "value"]


def number(value: int, bits: int) -> str:
    """A value as users read it: an address at 128 and at 48 bits, else decimal."""
    if bits == 128:
        return str(IPv6Address(value))
    if bits == 48:
        return ":".join(f"{octet:02x}" for octet in value.to_bytes(6, "big"))
    return str(value)


def match(value: Match, bits: int) -> str:
    """A match as text; empty when the match takes any value."""
    if isinstance(value, Lpm):
        return f"{number(value.value, bits)}/{value.prefix_len}" if value.prefix_len else ""
    if isinstance(value, Ternary):
        return f"{number(value.value, bits)}&{value.mask:#x}" if value.mask else ""
    if isinstance(value, Range):
        return f"{value.low}..{value.high}" if (value.low, value.high) != (0, (1 << bits) - 1) else ""
    return "" if value.value is None else number(value.value, bits)


def key(p4info: P4Info, entity: Entity) -> str:
    """The configured object: table and match, or the object's id."""
    if isinstance(entity, TableEntry | GroupEntry):
        given = dict(entity.match)
        fields = [f for f in p4info.table(entity.table).fields if f.name in given]
        parts = [f"{f.name}={text}" for f in fields if (text := match(given[f.name], f.bits))]
        if entity.priority:
            parts.append(f"priority={entity.priority}")
        return " ".join([entity.table, *parts])
    if isinstance(entity, DefaultEntry):
        return f"{entity.table} default"
    if isinstance(entity, SelectorMember):
        return f"{entity.profile} member {entity.member_id}"
    if isinstance(entity, SelectorGroup):
        return f"{entity.profile} group {entity.group_id}"
    return f"{entity.meter}[{entity.index}]"


def value(p4info: P4Info, entity: Entity) -> str:
    """The object's configuration: action and arguments, members, or rates."""
    if isinstance(entity, TableEntry | DefaultEntry | SelectorMember):
        params = p4info.action(entity.action).params
        pairs = zip(params, entity.args, strict=True)
        return f"{entity.action}({', '.join(f'{p.name}={number(a, p.bits)}' for p, a in pairs)})"
    if isinstance(entity, GroupEntry):
        return f"group {entity.group_id}"
    if isinstance(entity, SelectorGroup):
        return f"members {', '.join(map(str, entity.members)) or 'none'}, at most {entity.max_size}"
    assert isinstance(entity, MeterEntry)
    config = entity.config
    return f"cir={config.cir} cburst={config.cburst} pir={config.pir} pburst={config.pburst}"


def line(p4info: P4Info, entity: Entity) -> str:
    return f"{key(p4info, entity)} → {value(p4info, entity)}"
