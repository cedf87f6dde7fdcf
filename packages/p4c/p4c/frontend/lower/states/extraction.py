"""The methods of `packet_in`: extract, advance and lookahead."""

from __future__ import annotations

from p4c.frontend.check.types import Bits, CompositeType, VarBits, strip, width
from p4c.frontend.flow import ParserStep
from p4c.frontend.lower.assignment import keep
from p4c.frontend.lower.context import LowerContext, Methods, RefusalError
from p4c.frontend.lower.states.lookahead import has_bits, look_ahead
from p4c.frontend.lower.storage import header_instance, temporary
from p4c.frontend.lower.values import ExternValue, HeaderValue, LastValue, NextValue, Value
from p4c.frontend.parse import ast
from p4c.model.expressions import Const, FieldRef
from p4c.model.headers import Header, Stack
from p4c.model.parsers import Advance, Extract, StackNext, UnionStackNext


def _packet_in_extract(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], _o: ExternValue) -> None:
    if cx.block != "parser":
        raise RefusalError("extract can be called in the parser's states only", e.span)
    target = a[0]
    assert target is not None
    if isinstance(target, ast.Default):
        if not isinstance(target.type, CompositeType):
            raise RefusalError("extract needs a type argument to skip a header: extract<T>(_)", e.span)
        value: Value = header_instance(cx, cx.unique("skipped"), target.type)
    else:
        value = cx.value_of(target)
    into: Header | StackNext | UnionStackNext
    if isinstance(value, NextValue) and value.type.kind == "header":
        stack, t = value.stack.stack, value.type
        if isinstance(stack, Stack):
            into = StackNext(stack)
        else:
            into = UnionStackNext(stack, stack.unions[0].members.index(value.member))
    elif isinstance(value, HeaderValue):
        into, t = value.header, value.type
    else:
        what = "the last element of a stack" if isinstance(value, LastValue) else "this"
        raise RefusalError(f"BMv2 extracts into headers and the next element of a stack, not into {what}", e.span)
    variable = any(isinstance(strip(f.type), VarBits) for f in t.fields.values())
    if variable != (len(a) == 2):
        need = "needs the length of its varbit field" if variable else "has no varbit field: leave out the length"
        raise RefusalError(f"extracting header {t.name} {need}", e.span)
    bits = width(t)
    if bits is not None and bits % 8:
        raise RefusalError(f"header {t.name} is {bits} bits long: BMv2 extracts whole bytes", e.span)
    length = cx.scalar_of(a[1]).operand if variable else None
    cx.out.append(ParserStep(Extract(into, length), e.span))


def _packet_in_advance(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], _o: ExternValue) -> None:
    distance = cx.scalar_of(a[0])
    if not isinstance(distance.of, FieldRef | Const):
        distance = keep(cx, distance, e.span)  # BMv2 advances by fields and constants
    cx.out.append(ParserStep(Advance(distance.operand), e.span))


def _packet_in_lookahead(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], _o: ExternValue) -> None:
    # Without use for the bits there still is an error if they are not there.
    t = e.target.type_arguments[0]
    bits = width(t)
    if bits is None or not has_bits(t):
        raise RefusalError(f"lookahead needs a type of fixed size, not {t}", e.span)
    look_ahead(cx, temporary(cx, Bits(bits)), 0, bits, e.span)


METHODS: Methods = {
    "packet_in.extract": _packet_in_extract,
    "packet_in.advance": _packet_in_advance,
    "packet_in.lookahead": _packet_in_lookahead,
}
