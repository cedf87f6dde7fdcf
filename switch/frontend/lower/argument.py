"""Arguments of extern calls in the forms that BMv2 takes: fields, lists of data, named calculations."""

from __future__ import annotations

from switch.frontend import ir
from switch.frontend.check.types import BOOL, Bits, EnumValue, Type
from switch.frontend.diagnostics import Span
from switch.frontend.lower.assignment import assign_scalar
from switch.frontend.lower.context import Context, RefusalError, as_expression
from switch.frontend.lower.storage import header_fields, temporary
from switch.frontend.lower.values import HeaderValue, Literal, Record, StackValue, UnionValue, Value
from switch.frontend.parse import ast


def number(cx: Context, e: ast.Expression, t: Type | None = None) -> ir.Expr:
    """An argument that BMv2 reads: any expression."""
    value = cx.scalar_of(e)
    if isinstance(value, ir.Const) and not isinstance(value.type, Bits) and value.type != BOOL:
        return ir.Const(value.value, t or Bits(32))
    return value


def _destination(cx: Context, e: ast.Expression) -> tuple[ir.Expr, ir.Expr | None]:
    """The field that BMv2 writes a result to, and the place that the result then goes to if the field is temporary."""
    if isinstance(e, ast.Default):
        return temporary(cx, e.type), None
    place = cx.scalar_of(e)
    if isinstance(place, ir.FieldRef):
        return place, None
    return temporary(cx, place.type), place


def into(cx: Context, op: str, destination: ast.Expression, span: Span, *rest: ir.Expr, last: bool = False) -> None:
    """Emit a primitive that writes `destination`, given first or (`last`) last."""
    field, place = _destination(cx, destination)
    parameters = (*rest, field) if last else (field, *rest)
    cx.emit(op, *parameters, span=span)
    if place is not None:
        assign_scalar(cx, place, field, span)


def flat(cx: Context, value: Value, span: Span, simple: bool = False) -> list[ir.Expr]:
    """A list of values as fields and constants: calculations and field lists consist of such.

    Anything else is computed into a temporary, unless `simple` forbids it.
    """
    if isinstance(value, Record):
        return [x for member in value.members.values() for x in flat(cx, member, span, simple)]
    if isinstance(value, HeaderValue):
        return header_fields(cx, value)
    if isinstance(value, StackValue):
        return [x for element in value.elements for x in flat(cx, element, span, simple)]
    if isinstance(value, UnionValue):
        return [x for member in value.members.values() for x in flat(cx, member, span, simple)]
    scalar = as_expression(value, span)
    if isinstance(scalar, ir.FieldRef):
        return [scalar]
    if isinstance(scalar, ir.Const):
        if not isinstance(scalar.type, Bits) and scalar.type != BOOL:
            raise RefusalError("a number in a list of data needs a width: write 16w… or a cast", span)
        return [scalar]
    if simple:
        raise RefusalError("a checksum covers fields and constants, not computed values", span)
    kept = temporary(cx, scalar.type)
    assign_scalar(cx, kept, scalar, span)
    return [kept]


def algorithm(cx: Context, e: ast.Expression) -> str:
    value = cx.value_of(e)
    if isinstance(value, Literal) and isinstance(value.value, EnumValue):
        return value.value.member
    raise RefusalError("the algorithm must be known at compile time", e.span)


def calculation(cx: Context, algorithm: str, inputs: list[ir.Expr], span: Span) -> str:
    # Equal calculations share a name.
    for known in cx.program.calculations:
        if known.algorithm == algorithm and known.inputs == inputs:
            return known.name
    name = "calc" if not cx.program.calculations else f"calc_{len(cx.program.calculations) - 1}"
    cx.program.calculations.append(ir.Calculation(name, algorithm, inputs, span))
    return name


def field_list(cx: Context, name: str, items: list[ir.Expr]) -> ir.FieldList:
    # To BMv2, id 0 means that the primitive was not called.
    lists = cx.program.field_lists
    found = next((f for f in lists if not items and not f.items), None)
    if found is None:
        found = ir.FieldList(len(lists) + 1, name, items)
        lists.append(found)
    return found
