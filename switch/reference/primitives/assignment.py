"""Assignments to fields, headers, unions and stacks."""

from functools import partial
from typing import Any

from p4c.model import Stack, Union, UnionStack
from switch.reference.expressions import NOWHERE
from switch.reference.packet import Packet
from switch.reference.primitives.registry import Effect, builds, traced_writer
from switch.reference.runtime import Runtime


@builds("assign", "modify_field")
def _assign(runtime: Runtime, target: Any, value: Any) -> Effect:
    write, read = traced_writer(runtime, target), runtime.expressions.reader(value)
    return lambda packet: write(packet, read(packet))


def _accumulate(sign: int, runtime: Runtime, target: Any, value: Any) -> Effect:
    write, old, read = traced_writer(runtime, target), *map(runtime.expressions.reader, (target, value))
    return lambda packet: write(packet, old(packet) + sign * read(packet))


builds("add_to_field")(partial(_accumulate, 1))
builds("subtract_from_field")(partial(_accumulate, -1))


@builds("assign_VL")
def _assign_varbit(runtime: Runtime, target: Any, source: Any) -> Effect:
    layout = runtime.layout
    into, out_of = runtime.expressions.field_header(target), runtime.expressions.field_header(source)

    def assign(packet: Packet) -> None:
        a, b = into(packet), out_of(packet)
        if a == NOWHERE:
            return
        packet.values[layout.bases[a] + target.field.index] = (
            0 if b == NOWHERE else packet.values[layout.bases[b] + source.field.index]
        )
        packet.varbits[a] = packet.varbits.get(b, 0)

    return assign


def _copy_header(packet: Packet, a: int, b: int) -> None:
    if a == NOWHERE:
        return
    if b == NOWHERE or not packet.valid[b]:
        packet.set_invalid(a)
        return
    for i, j in zip(packet.layout.slots(a), packet.layout.slots(b), strict=True):
        packet.values[i] = packet.values[j]
    packet.varbits[a] = packet.varbits.get(b, 0)
    packet.set_valid(a)


@builds("assign_header", "copy_header")
def _assign_header(runtime: Runtime, target: Any, source: Any) -> Effect:
    into, out_of = runtime.expressions.header(target), runtime.expressions.header(source)
    return lambda packet: _copy_header(packet, into(packet), out_of(packet))


def _copy_union(packet: Packet, into: tuple[int, ...], out_of: tuple[int, ...]) -> None:
    """The valid member last: making it valid invalidates its siblings, never the other way round."""
    pairs = zip(into, out_of, strict=False)
    for a, b in sorted(pairs, key=lambda pair: pair[1] != NOWHERE and packet.valid[pair[1]]):
        _copy_header(packet, a, b)


@builds("assign_union")
def _assign_union(runtime: Runtime, target: Any, source: Any) -> Effect:
    into, out_of = runtime.expressions.union(target), runtime.expressions.union(source)

    return lambda packet: _copy_union(packet, a := into(packet), out_of(packet) or (NOWHERE,) * len(a))


@builds("assign_header_stack")
def _assign_stack(runtime: Runtime, into: Stack, out_of: Stack) -> Effect:
    def assign(packet: Packet) -> None:
        packet.nexts[into.index] = packet.nexts[out_of.index]
        for a, b in zip(into.headers, out_of.headers, strict=False):
            _copy_header(packet, a.index, b.index)

    return assign


@builds("assign_union_stack")
def _assign_union_stack(runtime: Runtime, into: UnionStack, out_of: UnionStack) -> Effect:
    def headers(union: Union) -> tuple[int, ...]:
        return tuple(h.index for h in union.headers)

    def assign(packet: Packet) -> None:
        packet.union_nexts[into.index] = packet.union_nexts[out_of.index]
        for a, b in zip(into.unions, out_of.unions, strict=False):
            _copy_union(packet, headers(a), headers(b))

    return assign
