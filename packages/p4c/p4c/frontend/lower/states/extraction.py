"""The methods of `packet_in`: extract, advance and lookahead."""

from __future__ import annotations

from p4c.frontend.check.types import BOOL, Bits, CompositeType, VarBits, strip, width
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import Branch, Flow, ParserStep
from p4c.frontend.lower.assignment import keep
from p4c.frontend.lower.context import LowerContext, Methods, RefusalError
from p4c.frontend.lower.operator import operation
from p4c.frontend.lower.states.lookahead import has_bits, look_ahead
from p4c.frontend.lower.storage import header_instance, temporary
from p4c.frontend.lower.values import ElementValue, ExternValue, HeaderValue, LastValue, NextValue, Value
from p4c.frontend.parse import ast
from p4c.frontend.scalar import constant
from p4c.model.expressions import Bool, Const, Expression, FieldRef
from p4c.model.headers import Header, Stack
from p4c.model.parsers import Advance, Extract, StackNext, UnionStackNext, Verify


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
    into: Header | StackNext | UnionStackNext | ElementValue
    if isinstance(value, NextValue) and value.type.kind == "header":
        stack, t = value.stack.stack, value.type
        if isinstance(stack, Stack):
            into = StackNext(stack)
        else:
            into = UnionStackNext(stack, stack.unions[0].members.index(value.member))
    elif isinstance(value, HeaderValue):
        into, t = value.header, value.type
    elif isinstance(value, ElementValue) and value.type.kind == "header":
        into, t = value, value.type
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
    if isinstance(into, ElementValue):
        cx.out.append(_extract_by_index(cx, into, length, e.span))
    else:
        cx.out.append(ParserStep(Extract(into, length), e.span))


def _extract_by_index(cx: LowerContext, value: ElementValue, length: Expression | None, span: SourceSpan) -> Flow:
    """Extract into the element whose index is known at run time only; where none has it, error.StackOutOfBounds."""
    index = keep(cx, value.index, span)
    flow: Flow = ParserStep(Verify(Bool(False), Const(cx.checked.errors["StackOutOfBounds"])), span)
    for place, element in reversed(list(enumerate(value.choices))):
        assert isinstance(element, HeaderValue)
        cx.count_parts(1, span)
        here = operation("==", (index, constant(place, index.type)), BOOL, span)
        flow = Branch(here, [ParserStep(Extract(element.header, length), span)], [flow], span)
    return flow


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
