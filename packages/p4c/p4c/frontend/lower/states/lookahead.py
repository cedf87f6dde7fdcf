"""`lookahead`: bits ahead of the parser's cursor, all read at once into a variable."""

from __future__ import annotations

from p4c.frontend.check.types import BOOL, Bits, CompositeType, StackType, Tuple, Type, strip, width
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import ParserStep
from p4c.frontend.lower.context import LowerContext, RefusalError
from p4c.frontend.lower.operator import cast, operation
from p4c.frontend.lower.storage import temporary
from p4c.frontend.lower.values import Aggregate, Value
from p4c.frontend.scalar import Scalar, constant, slice_of
from p4c.model.expressions import FieldRef
from p4c.model.parsers import Lookahead, Set

# Up to this many bits ahead are read as one number and cut into parts; not every engine computes with wider numbers,
# so each part of a wider lookahead is read by itself.
WHOLE_BITS_MAX = 128


def lookahead(cx: LowerContext, t: Type, span: SourceSpan) -> Value:
    """The bits of a `t` ahead, all read at once: all must be there, however few are used (specification, 13.8.4).

    BMv2 1.15 checks the length of neither a key nor a part, so a lookahead becomes neither.
    """
    plain = strip(t)
    bits = width(plain)
    if bits is None or not has_bits(plain):
        raise RefusalError(f"lookahead needs a type of fixed size, not {t}", span)
    aggregate = isinstance(plain, CompositeType | Tuple)
    # Packets are whole bytes: a packet that holds a part of a byte holds the whole byte.
    ahead: Type = Bits((bits + 7) // 8 * 8 if aggregate else bits) if aggregate or plain == BOOL else plain
    kept = temporary(cx, ahead)
    look_ahead(cx, kept, 0, width(ahead) or 0, span)
    return _part_ahead(cx, kept, plain, 0, span)


def has_bits(t: Type) -> bool:
    """Whether the language says how values of `t` are bits: not of errors and of enums without an underlying type."""
    plain = strip(t)
    if isinstance(plain, CompositeType):
        return all(has_bits(f.type) for f in plain.fields.values())
    if isinstance(plain, Tuple):
        return all(map(has_bits, plain.items))
    if isinstance(plain, StackType):
        return has_bits(plain.element)
    return isinstance(plain, Bits) or plain == BOOL


def look_ahead(cx: LowerContext, into: Scalar, offset: int, bits: int, span: SourceSpan) -> None:
    """Read bits from ahead of the cursor into a field."""
    assert isinstance(into.of, FieldRef)
    cx.out.append(ParserStep(Set(into.of, Lookahead(offset, bits)), span))


def _part_ahead(cx: LowerContext, whole: Scalar, t: Type, offset: int, span: SourceSpan) -> Value:
    """The part of `whole` that begins at bit `offset`; aggregates fall into their fields."""
    plain = strip(t)
    if isinstance(plain, CompositeType | Tuple | StackType):
        if isinstance(plain, CompositeType):
            items = [(name, f.type) for name, f in plain.fields.items()]
        else:
            inside = plain.items if isinstance(plain, Tuple) else [plain.element] * plain.size
            items = [(str(place), item) for place, item in enumerate(inside)]
        members: dict[str, Value] = {}
        for name, inner in items:
            members[name] = _part_ahead(cx, whole, inner, offset, span)
            offset += width(inner) or 0
        return Aggregate(plain, members)
    size, total = width(plain) or 0, width(whole.type) or 0
    part: Scalar
    if total > WHOLE_BITS_MAX:
        part = temporary(cx, Bits(size))
        look_ahead(cx, part, offset, size, span)
    else:
        part = slice_of(whole, total - offset - 1, total - offset - size)
    if plain == BOOL:
        return operation("==", (part, constant(1, Bits(1))), BOOL, span)
    return whole if whole.type == plain else cast(part, plain, span)
