"""How a primitive is made: builders by name, and what they share."""

from collections.abc import Callable
from typing import Any

from p4c.model import Primitive
from p4c.model.expressions import FieldRef, LastField
from switch.reference.expressions import Writer, fit
from switch.reference.packet import Packet
from switch.reference.runtime import Runtime
from switch.reference.trace import show

# Returns the index of the primitive to jump to, or None for the next one.
Effect = Callable[[Packet], int | None]
_BUILDERS: dict[str, Callable[[Runtime, Any], Effect]] = {}


def compile_primitive(primitive: Primitive, runtime: Runtime) -> Effect:
    return _BUILDERS[primitive.op](runtime, primitive.args)


def builds(*ops: str) -> Callable[[Callable[..., Effect]], Callable[..., Effect]]:
    """Registers the builder of some primitives; it gets the runtime and the arguments, unpacked."""

    def register(build: Callable[..., Effect]) -> Callable[..., Effect]:
        for op in ops:
            _BUILDERS[op] = lambda runtime, args: build(runtime, *args)
        return build

    return register


def _name_of(target: Any) -> str:
    if isinstance(target, FieldRef):
        return f"{target.header.name}.{target.field.name}"
    if isinstance(target, LastField):
        return f"{target.stack.name}.last.{target.field.name}"
    return f"<element>.{target.field.name}"


def traced_writer(runtime: Runtime, target: Any) -> Writer:
    write, store, name = runtime.expressions.writer(target), fit(target.field), _name_of(target)

    def write_and_tell(packet: Packet, value: int) -> None:
        write(packet, value)
        if runtime.trace is not None:
            shown = show(store(value), target.field.width_bits)
            runtime.record(packet, "assign", target=name, value=shown)

    return write_and_tell
