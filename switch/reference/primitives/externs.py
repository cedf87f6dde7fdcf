"""Counters, meters, registers, hashes, random numbers and messages."""

from __future__ import annotations

from typing import Any

from switch.model.actions import Vector
from switch.reference.calculations import gatherer
from switch.reference.hashes import ALGORITHMS
from switch.reference.packet import Packet
from switch.reference.primitives.registry import Effect, builds, traced_writer
from switch.reference.runtime import Runtime
from switch.reference.trace import show

_M64 = (1 << 64) - 1
COLOURS = ("green", "yellow", "red")


def _out_of_range(runtime: Runtime, packet: Packet, extern: str, index: int, size: int) -> None:
    if runtime.trace is not None:
        runtime.trace.record(runtime.now_ns, packet.id, "out_of_range", extern=extern, index=index, size=size)


@builds("count")
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


@builds("execute_meter")
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


@builds("register_read")
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


@builds("register_write")
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
            runtime.trace.record(runtime.now_ns, packet.id, "hash", **named)
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
        if runtime.trace is not None:
            runtime.trace.record(runtime.now_ns, packet.id, "random", low=lo, high=hi, value=value)

    return run


@builds("log_msg")
def _log(runtime: Runtime, text: Any, arguments: Vector) -> Effect:
    readers = [runtime.expressions.reader(item) for item in arguments.items]

    def log(packet: Packet) -> None:
        if runtime.trace is not None:
            message = text.value
            for read in readers:
                message = message.replace("{}", str(read(packet)), 1)
            runtime.trace.record(runtime.now_ns, packet.id, "log", message=message)

    return log
