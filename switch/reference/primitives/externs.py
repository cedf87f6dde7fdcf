"""Counters, meters, registers, hashes, random numbers and messages."""

from collections.abc import Callable, Sized
from typing import Any

from p4c.model import Vector
from p4c.model.expressions import Kind
from switch.reference.calculations import gatherer
from switch.reference.hashes import ALGORITHMS
from switch.reference.packet import Packet
from switch.reference.primitives.registry import Effect, builds, traced_writer
from switch.reference.runtime import Runtime
from switch.reference.trace import show

_M64 = (1 << 64) - 1
COLOURS = ("green", "yellow", "red")


def _at_cell(runtime: Runtime, extern: Any, index: Any, cells: Sized, work: Callable[..., None]) -> Effect:
    """Calls `work` with the packet and the index, if there is such a cell."""
    read = runtime.expressions.reader(index)

    def effect(packet: Packet) -> None:
        i = read(packet)
        if 0 <= i < len(cells):
            work(packet, i)
        else:
            runtime.record(packet, "out_of_range", extern=extern.name, index=i, size=len(cells))

    return effect


@builds("count")
def _count(runtime: Runtime, counter: Any, index: Any) -> Effect:
    cells = runtime.externs.counters[counter.name]

    def count(packet: Packet, i: int) -> None:
        cells.count(i, packet.ingress_length)
        if runtime.trace is not None:
            value = cells.read(i)
            runtime.record(packet, "counter", counter=counter.name, index=i, packets=value.packets, bytes=value.bytes)

    return _at_cell(runtime, counter, index, cells, count)


@builds("execute_meter")
def _execute_meter(runtime: Runtime, meter: Any, index: Any, target: Any) -> Effect:
    cells, write = runtime.externs.meters[meter.name], runtime.expressions.writer(target)

    def execute(packet: Packet, i: int) -> None:
        colour = cells.colour(i, packet.ingress_length if meter.bytes else 1, runtime.now_ns)
        write(packet, colour)
        runtime.record(packet, "meter", meter=meter.name, index=i, colour=COLOURS[colour])

    return _at_cell(runtime, meter, index, cells, execute)


def _tell_register(runtime: Runtime, packet: Packet, kind: str, register: Any, i: int) -> None:
    if runtime.trace is not None:
        value = show(runtime.externs.registers[register.name][i], register.width_bits)
        runtime.record(packet, kind, register=register.name, index=i, value=value)


@builds("register_read")
def _register_read(runtime: Runtime, target: Any, register: Any, index: Any) -> Effect:
    cells, write = runtime.externs.registers[register.name], runtime.expressions.writer(target)

    def register_read(packet: Packet, i: int) -> None:
        write(packet, cells[i])
        _tell_register(runtime, packet, "register_read", register, i)

    return _at_cell(runtime, register, index, cells, register_read)


@builds("register_write")
def _register_write(runtime: Runtime, register: Any, index: Any, value: Any) -> Effect:
    cells, get = runtime.externs.registers[register.name], runtime.expressions.reader(value)
    mask = (1 << register.width_bits) - 1

    def register_write(packet: Packet, i: int) -> None:
        cells[i] = get(packet) & mask
        _tell_register(runtime, packet, "register_write", register, i)

    return _at_cell(runtime, register, index, cells, register_write)


@builds("modify_field_with_hash_based_offset")
def _hash(runtime: Runtime, target: Any, base: Any, calculation: Any, size: Any) -> Effect:
    write = traced_writer(runtime, target)
    read_base, read_size = map(runtime.expressions.reader, (base, size))
    gather, algorithm = gatherer(calculation, runtime.layout), ALGORITHMS[calculation.algorithm]

    def run(packet: Packet) -> None:
        data = gather(packet)
        value = algorithm(data)
        if runtime.trace is not None:
            named = {"algorithm": calculation.algorithm, "input": data.hex(), "value": show(value)}
            runtime.record(packet, "hash", **named)
        write(packet, (value % ((read_size(packet) & _M64) or 1) + (read_base(packet) & _M64)) & _M64)

    return run


@builds("modify_field_rng_uniform")
def _random(runtime: Runtime, target: Any, low: Any, high: Any) -> Effect:
    write, read_low, read_high = runtime.expressions.writer(target), *map(runtime.expressions.reader, (low, high))

    def run(packet: Packet) -> None:
        lo, hi = read_low(packet) & _M64, read_high(packet) & _M64
        if lo > hi:
            return
        value = runtime.rng.between(lo, hi)
        write(packet, value)
        runtime.record(packet, "random", low=lo, high=hi, value=value)

    return run


@builds("assert", "assume")
def _assert(runtime: Runtime, condition: Any) -> Effect:
    """simple_switch ends its process when one fails. The trace says so here, and the packet goes on."""
    expressions = runtime.expressions
    holds = expressions.test(condition) if condition.kind is Kind.BOOL else expressions.reader(condition)

    def check(packet: Packet) -> None:
        if runtime.trace is not None and not holds(packet):
            runtime.record(packet, "assertion", failed=str(condition))

    return check


@builds("log_msg")
def _log(runtime: Runtime, text: Any, arguments: Vector) -> Effect:
    readers = [runtime.expressions.reader(item) for item in arguments.items]

    def log(packet: Packet) -> None:
        if runtime.trace is not None:
            message = text.value
            for read in readers:
                message = message.replace("{}", str(read(packet)), 1)
            runtime.record(packet, "log", message=message)

    return log
