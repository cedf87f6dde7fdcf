"""setValid, setInvalid, push_front and pop_front."""

from functools import partial
from typing import Any

from p4c.model import Stack
from switch.reference.expressions import NOWHERE
from switch.reference.packet import Packet
from switch.reference.primitives.registry import Effect, builds
from switch.reference.runtime import Runtime


def _validity(runtime: Runtime, header: Any, valid: bool) -> Effect:
    find, headers = runtime.expressions.header(header), runtime.program.headers

    def change(packet: Packet) -> None:
        number = find(packet)
        if number == NOWHERE or packet.valid[number] is valid:
            return
        if valid:
            packet.clear_fields(number)
            packet.set_valid(number)
            packet.length += packet.header_bytes(number)
        else:
            packet.length -= packet.header_bytes(number)
            packet.set_invalid(number)
        runtime.record(packet, "primitive", text=f"{headers[number].name} made {'valid' if valid else 'invalid'}")

    return change


def _rows(stack: Any) -> list[tuple[int, ...]]:
    """A stack's elements, each as the headers that move together."""
    if isinstance(stack, Stack):
        return [(h.index,) for h in stack.headers]
    return [tuple(h.index for h in union.headers) for union in stack.unions]


def _shifter(runtime: Runtime, stack: Any, count: Any, push: bool) -> Effect:
    rows, read, number = _rows(stack), runtime.expressions.reader(count), stack.index
    is_header_stack, size = isinstance(stack, Stack), len(rows)

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
        runtime.record(packet, "primitive", text=f"{stack.name}.{'push' if push else 'pop'}_front({amount})")

    return shift


builds("add_header")(partial(_validity, valid=True))
builds("remove_header")(partial(_validity, valid=False))
builds("push")(partial(_shifter, push=True))
builds("pop")(partial(_shifter, push=False))
