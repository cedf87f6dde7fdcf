"""The primitives of simple_switch, compiled to closures (targets/simple_switch/primitives.cpp, bm_sim/core)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from switch.engine import DROP_PORT
from switch.model.actions import Primitive, Vector
from switch.model.expressions import FieldRef, LastField, StackRef
from switch.model.headers import Header, Stack, Union, UnionStack
from switch.reference.calculations import gatherer
from switch.reference.expressions import NOWHERE, Writer, fit
from switch.reference.hashes import ALGORITHMS
from switch.reference.packet import Packet
from switch.reference.runtime import Runtime
from switch.reference.trace import show

_M64 = (1 << 64) - 1
_M16 = (1 << 16) - 1
COLOURS = ("green", "yellow", "red")

# Returns the index of the primitive to jump to, or None for the next one.
Effect = Callable[[Packet], int | None]
_BUILDERS: dict[str, Callable[[Runtime, Any], Effect]] = {}


def compile_primitive(primitive: Primitive, runtime: Runtime) -> Effect:
    return _BUILDERS[primitive.op](runtime, primitive.args)


def _builds(*ops: str) -> Callable[[Callable[..., Effect]], Callable[..., Effect]]:
    """Registers the builder of some primitives; it gets the runtime and the arguments, unpacked."""

    def register(build: Callable[..., Effect]) -> Callable[..., Effect]:
        for op in ops:
            _BUILDERS[op] = lambda runtime, args: build(runtime, *args)
        return build

    return register


def _said(runtime: Runtime, packet: Packet, message: str) -> None:
    if runtime.trace is not None:
        runtime.trace.record(runtime.now_ns, packet.id, "primitive", text=message)


def _name_of(target: Any) -> str:
    if isinstance(target, FieldRef):
        return f"{target.header.name}.{target.field.name}"
    if isinstance(target, LastField):
        return f"{target.stack.name}.last.{target.field.name}"
    return f"<element>.{target.field.name}"


def _traced_writer(runtime: Runtime, target: Any) -> Writer:
    write, store, name, width = (
        runtime.expressions.writer(target),
        fit(target.field),
        _name_of(target),
        target.field.width_bits,
    )

    def write_and_tell(packet: Packet, value: int) -> None:
        write(packet, value)
        if runtime.trace is not None:
            shown = show(store(value), width)
            runtime.trace.record(runtime.now_ns, packet.id, "assign", target=name, value=shown)

    return write_and_tell


# --- assignment -------------------------------------------------------------------------------------------------


@_builds("assign", "modify_field")
def _assign(runtime: Runtime, target: Any, value: Any) -> Effect:
    write, read = _traced_writer(runtime, target), runtime.expressions.reader(value)
    return lambda packet: write(packet, read(packet))


@_builds("add_to_field")
def _add_to_field(runtime: Runtime, target: Any, value: Any) -> Effect:
    write, old, read = _traced_writer(runtime, target), *map(runtime.expressions.reader, (target, value))
    return lambda packet: write(packet, old(packet) + read(packet))


@_builds("subtract_from_field")
def _subtract_from_field(runtime: Runtime, target: Any, value: Any) -> Effect:
    write, old, read = _traced_writer(runtime, target), *map(runtime.expressions.reader, (target, value))
    return lambda packet: write(packet, old(packet) - read(packet))


@_builds("assign_VL")
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


@_builds("assign_header", "copy_header")
def _assign_header(runtime: Runtime, target: Any, source: Any) -> Effect:
    into, out_of = runtime.expressions.header(target), runtime.expressions.header(source)
    return lambda packet: _copy_header(packet, into(packet), out_of(packet))


@_builds("assign_union")
def _assign_union(runtime: Runtime, target: Any, source: Any) -> Effect:
    into, out_of = runtime.expressions.union(target), runtime.expressions.union(source)

    def assign(packet: Packet) -> None:
        a, b = into(packet), out_of(packet)
        # The valid member last: making it valid invalidates its siblings, never the other way round.
        pairs = zip(a, b or (NOWHERE,) * len(a), strict=False)
        for x, y in sorted(pairs, key=lambda pair: pair[1] != NOWHERE and packet.valid[pair[1]]):
            _copy_header(packet, x, y)

    return assign


@_builds("assign_header_stack")
def _assign_stack(runtime: Runtime, target: Any, source: Any) -> Effect:
    into: Stack = target.stack
    out_of: Stack = source.stack

    def assign(packet: Packet) -> None:
        packet.nexts[into.index] = packet.nexts[out_of.index]
        for a, b in zip(into.headers, out_of.headers, strict=False):
            _copy_header(packet, a.index, b.index)

    return assign


@_builds("assign_union_stack")
def _assign_union_stack(runtime: Runtime, target: Any, source: Any) -> Effect:
    into: UnionStack = target.stack
    out_of: UnionStack = source.stack

    def headers(union: Union) -> tuple[int, ...]:
        return tuple(h.index for h in union.headers)

    def assign(packet: Packet) -> None:
        packet.union_nexts[into.index] = packet.union_nexts[out_of.index]
        for a, b in zip(into.unions, out_of.unions, strict=False):
            pairs = zip(headers(a), headers(b), strict=False)
            for x, y in sorted(pairs, key=lambda pair: packet.valid[pair[1]]):
                _copy_header(packet, x, y)

    return assign


# --- headers ----------------------------------------------------------------------------------------------------


@_builds("add_header")
def _add_header(runtime: Runtime, header: Any) -> Effect:
    find, headers = runtime.expressions.header(header), runtime.program.headers

    def add(packet: Packet) -> None:
        number = find(packet)
        if number == NOWHERE or packet.valid[number]:
            return
        packet.clear_fields(number)
        packet.set_valid(number)
        packet.length += packet.header_bytes(number)
        _said(runtime, packet, f"{headers[number].name} made valid")

    return add


@_builds("remove_header")
def _remove_header(runtime: Runtime, header: Any) -> Effect:
    find, headers = runtime.expressions.header(header), runtime.program.headers

    def remove(packet: Packet) -> None:
        number = find(packet)
        if number == NOWHERE or not packet.valid[number]:
            return
        packet.length -= packet.header_bytes(number)
        packet.set_invalid(number)
        _said(runtime, packet, f"{headers[number].name} made invalid")

    return remove


def _rows(stack: Any) -> list[tuple[int, ...]]:
    """A stack's elements, each as the headers that move together."""
    if isinstance(stack, StackRef):
        return [(h.index,) for h in stack.stack.headers]
    return [tuple(h.index for h in union.headers) for union in stack.stack.unions]


def _shifter(runtime: Runtime, stack: Any, count: Any, push: bool) -> Effect:
    rows, read, number = _rows(stack), runtime.expressions.reader(count), stack.stack.index
    is_header_stack, size = isinstance(stack, StackRef), len(rows)

    def swap(packet: Packet, a: int, b: int) -> None:
        for x, y in zip(rows[a], rows[b], strict=True):
            packet.swap_headers(x, y)

    def shift(packet: Packet) -> None:
        amount = min(max(read(packet), 0), size)
        nexts = packet.nexts if is_header_stack else packet.union_nexts
        if push:
            nexts[number] = min(size, nexts[number] + amount)
            for i in range(size - 1, amount - 1, -1):
                swap(packet, i, i - amount)
            freed = range(amount)
        else:
            nexts[number] -= min(nexts[number], amount)
            for i in range(size - amount):
                swap(packet, i, i + amount)
            freed = range(size - amount, size)
        for i in freed:
            for header in rows[i]:
                packet.set_invalid(header)
        _said(runtime, packet, f"{stack.stack.name}.{'push' if push else 'pop'}_front({amount})")

    return shift


@_builds("push")
def _push(runtime: Runtime, stack: Any, count: Any) -> Effect:
    return _shifter(runtime, stack, count, push=True)


@_builds("pop")
def _pop(runtime: Runtime, stack: Any, count: Any) -> Effect:
    return _shifter(runtime, stack, count, push=False)


# --- control ----------------------------------------------------------------------------------------------------


@_builds("_jump")
def _jump(runtime: Runtime, target: Any) -> Effect:
    where = target.value
    return lambda packet: where


@_builds("_jump_if_zero")
def _jump_if_zero(runtime: Runtime, condition: Any, target: Any) -> Effect:
    where, read = target.value, runtime.expressions.reader(condition)
    return lambda packet: where if read(packet) == 0 else None


@_builds("exit")
def _exit(runtime: Runtime) -> Effect:
    def leave(packet: Packet) -> None:
        packet.exited = True
        _said(runtime, packet, "exit")

    return leave


@_builds("no_op")
def _no_op(runtime: Runtime) -> Effect:
    return lambda packet: None


def _dropper(runtime: Runtime) -> Effect:
    intrinsics, expressions = runtime.program.intrinsics, runtime.expressions
    set_spec = expressions.writer(intrinsics.egress_spec)
    set_group = None if intrinsics.mcast_grp is None else expressions.writer(intrinsics.mcast_grp)

    def drop(packet: Packet) -> None:
        set_spec(packet, DROP_PORT)
        if set_group is not None:
            set_group(packet, 0)
        _said(runtime, packet, "mark_to_drop")

    return drop


@_builds("drop")
def _drop(runtime: Runtime) -> Effect:
    return _dropper(runtime)


@_builds("mark_to_drop")
def _mark_to_drop(runtime: Runtime, header: Header) -> Effect:
    return _dropper(runtime)


# --- externs ----------------------------------------------------------------------------------------------------


def _out_of_range(runtime: Runtime, packet: Packet, extern: str, index: int, size: int) -> None:
    if runtime.trace is not None:
        runtime.trace.record(runtime.now_ns, packet.id, "out_of_range", extern=extern, index=index, size=size)


@_builds("count")
def _count(runtime: Runtime, counter: Any, index: Any) -> Effect:
    cells, read = runtime.externs.counters[counter.name], runtime.expressions.reader(index)

    def count(packet: Packet) -> None:
        i = read(packet)
        if not 0 <= i < len(cells):
            return _out_of_range(runtime, packet, counter.name, i, len(cells))
        cells[i].count(packet.ingress_length)
        if runtime.trace is not None:
            value = {"packets": cells[i].packets, "bytes": cells[i].bytes}
            runtime.trace.record(runtime.now_ns, packet.id, "counter", counter=counter.name, index=i, **value)
        return None

    return count


@_builds("execute_meter")
def _execute_meter(runtime: Runtime, meter: Any, index: Any, target: Any) -> Effect:
    cells, read = runtime.externs.meters[meter.name], runtime.expressions.reader(index)
    write = runtime.expressions.writer(target)

    def execute(packet: Packet) -> None:
        i = read(packet)
        if not 0 <= i < len(cells):
            return _out_of_range(runtime, packet, meter.name, i, len(cells))
        colour = cells[i].colour(packet.ingress_length if meter.bytes else 1, runtime.now_ns)
        write(packet, colour)
        if runtime.trace is not None:
            named = {"meter": meter.name, "index": i, "colour": COLOURS[colour]}
            runtime.trace.record(runtime.now_ns, packet.id, "meter", **named)
        return None

    return execute


@_builds("register_read")
def _register_read(runtime: Runtime, target: Any, register: Any, index: Any) -> Effect:
    cells, read = runtime.externs.registers[register.name], runtime.expressions.reader(index)
    write = runtime.expressions.writer(target)

    def register_read(packet: Packet) -> None:
        i = read(packet)
        if not 0 <= i < len(cells):
            return _out_of_range(runtime, packet, register.name, i, len(cells))
        write(packet, cells[i])
        if runtime.trace is not None:
            named = {"register": register.name, "index": i, "value": show(cells[i], register.width_bits)}
            runtime.trace.record(runtime.now_ns, packet.id, "register_read", **named)
        return None

    return register_read


@_builds("register_write")
def _register_write(runtime: Runtime, register: Any, index: Any, value: Any) -> Effect:
    cells, read, get = runtime.externs.registers[register.name], *map(runtime.expressions.reader, (index, value))
    mask = (1 << register.width_bits) - 1

    def register_write(packet: Packet) -> None:
        i = read(packet)
        if not 0 <= i < len(cells):
            return _out_of_range(runtime, packet, register.name, i, len(cells))
        cells[i] = get(packet) & mask
        if runtime.trace is not None:
            named = {"register": register.name, "index": i, "value": show(cells[i], register.width_bits)}
            runtime.trace.record(runtime.now_ns, packet.id, "register_write", **named)
        return None

    return register_write


@_builds("modify_field_with_hash_based_offset")
def _hash(runtime: Runtime, target: Any, base: Any, calculation: Any, size: Any) -> Effect:
    write = _traced_writer(runtime, target)
    read_base, read_size = map(runtime.expressions.reader, (base, size))
    gather, algorithm = gatherer(calculation, runtime.layout), ALGORITHMS[calculation.algorithm]

    def run(packet: Packet) -> None:
        data = gather(packet)
        value = algorithm(data)
        if runtime.trace is not None:
            named = {"algorithm": calculation.algorithm, "input": data.hex(), "value": show(value)}
            runtime.trace.record(runtime.now_ns, packet.id, "hash", **named)
        write(packet, (value % ((read_size(packet) & _M64) or 1) + (read_base(packet) & _M64)) & _M64)

    return run


@_builds("modify_field_rng_uniform")
def _random(runtime: Runtime, target: Any, low: Any, high: Any) -> Effect:
    write, read_low, read_high = runtime.expressions.writer(target), *map(runtime.expressions.reader, (low, high))

    def run(packet: Packet) -> None:
        lo, hi = read_low(packet) & _M64, read_high(packet) & _M64
        if lo > hi:
            return
        value = runtime.rng.between(lo, hi)
        write(packet, value)
        if runtime.trace is not None:
            runtime.trace.record(runtime.now_ns, packet.id, "random", low=lo, high=hi, value=value)

    return run


@_builds("log_msg")
def _log(runtime: Runtime, text: Any, arguments: Vector) -> Effect:
    readers = [runtime.expressions.reader(item) for item in arguments.items]

    def log(packet: Packet) -> None:
        if runtime.trace is not None:
            message = text.value
            for read in readers:
                message = message.replace("{}", str(read(packet)), 1)
            runtime.trace.record(runtime.now_ns, packet.id, "log", message=message)

    return log


# --- what the packet shall become -------------------------------------------------------------------------------


@_builds("clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress")
def _clone(runtime: Runtime, session: Any, preserved: Any) -> Effect:
    read = runtime.expressions.reader(session)

    def clone(packet: Packet) -> None:
        packet.clone = (read(packet) & _M16 & 0x7FFF, preserved)
        _said(runtime, packet, f"clone to session {packet.clone[0]}")

    return clone


@_builds("resubmit")
def _resubmit(runtime: Runtime, preserved: Any) -> Effect:
    def resubmit(packet: Packet) -> None:
        packet.resubmit = preserved
        _said(runtime, packet, "resubmit")

    return resubmit


@_builds("recirculate")
def _recirculate(runtime: Runtime, preserved: Any) -> Effect:
    def recirculate(packet: Packet) -> None:
        packet.recirculate = preserved
        _said(runtime, packet, "recirculate")

    return recirculate


@_builds("truncate")
def _truncate(runtime: Runtime, length: Any) -> Effect:
    read = runtime.expressions.reader(length)

    def truncate(packet: Packet) -> None:
        packet.truncate = min(packet.truncate, max(read(packet), 0))
        _said(runtime, packet, f"truncate to {packet.truncate} bytes")

    return truncate
