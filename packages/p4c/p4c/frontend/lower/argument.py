"""Arguments of extern calls in the forms that BMv2 takes: fields, lists of data, named calculations."""

from __future__ import annotations

from p4c.frontend.check.types import BOOL, ERROR, Bits, EnumValue, Type, width
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.lower.assignment import assign_scalar
from p4c.frontend.lower.context import LowerContext, RefusalError, as_expression
from p4c.frontend.lower.storage import header_fields, temporary
from p4c.frontend.lower.values import Aggregate, HeaderValue, Literal, StackValue, UnionValue, Value, identity
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar, constant
from p4c.model.actions import Argument
from p4c.model.expressions import FieldRef
from p4c.model.externs import Calculation, CalculationInput, ConstInput, FieldInput, FieldList


def number(cx: LowerContext, e: ast.Expression, t: Type | None = None) -> Scalar:
    """An argument that BMv2 reads: any expression."""
    value = cx.scalar_of(e)
    if value.number is not None and not isinstance(value.type, Bits) and value.type != BOOL:
        return constant(value.number, t or Bits(32))
    return value


def _destination(cx: LowerContext, e: ast.Expression) -> tuple[Scalar, Scalar | None]:
    """The field that BMv2 writes a result to, and the place that the result then goes to if the field is temporary."""
    if isinstance(e, ast.Default):
        return temporary(cx, e.type), None
    place = cx.scalar_of(e)
    if isinstance(place.of, FieldRef):
        return place, None
    return temporary(cx, place.type), place


def into(
    cx: LowerContext,
    op: str,
    destination: ast.Expression,
    span: SourceSpan,
    *rest: Scalar | Argument,
    last: bool = False,
) -> None:
    """Emit a primitive that writes `destination`, given first or (`last`) last."""
    field, place = _destination(cx, destination)
    parameters = (*rest, field) if last else (field, *rest)
    cx.emit(op, *parameters, span=span)
    if place is not None:
        assign_scalar(cx, place, field, span)


def flat(cx: LowerContext, value: Value, span: SourceSpan, simple: bool = False) -> list[Scalar]:
    """A list of values as fields and constants: calculations and field lists consist of such.

    Anything else is computed into a temporary, unless `simple` forbids it.
    """
    if isinstance(value, Aggregate):
        return [x for member in value.members.values() for x in flat(cx, member, span, simple)]
    if isinstance(value, HeaderValue):
        cx.count_parts(len(value.header.type.fields), span)
        return header_fields(cx, value)
    if isinstance(value, StackValue):
        return [x for element in value.elements for x in flat(cx, element, span, simple)]
    if isinstance(value, UnionValue):
        return [x for member in value.members.values() for x in flat(cx, member, span, simple)]
    cx.count_parts(1, span)
    scalar = as_expression(value, span)
    if isinstance(scalar.of, FieldRef):
        return [scalar]
    if scalar.number is not None:
        if scalar.type == ERROR:
            return [constant(scalar.number, Bits(32))]
        if not isinstance(scalar.type, Bits) and scalar.type != BOOL:
            raise RefusalError("a number in a list of data needs a width: write 16w… or a cast", span)
        return [scalar]
    if simple:
        raise RefusalError("a checksum covers fields and constants, not computed values", span)
    kept = temporary(cx, scalar.type)
    assign_scalar(cx, kept, scalar, span)
    return [kept]


def algorithm(cx: LowerContext, e: ast.Expression) -> str:
    value = cx.value_of(e)
    if isinstance(value, Literal) and isinstance(value.value, EnumValue):
        return value.value.member
    raise RefusalError("the algorithm must be known at compile time", e.span)


def data_items(items: list[Scalar]) -> tuple[FieldInput | ConstInput, ...]:
    """Fields and constants, as `flat` gives them: inputs of a calculation, or the data of a digest."""
    made: list[FieldInput | ConstInput] = []
    for item in items:
        if isinstance(item.of, FieldRef):
            made.append(FieldInput(item.of))
        else:
            assert item.number is not None
            made.append(ConstInput(item.number, width(item.type) or 1))
    return tuple(made)


def calculation(
    cx: LowerContext, algorithm: str, inputs: tuple[CalculationInput, ...], span: SourceSpan
) -> Calculation:
    # Equal calculations are one.
    key = (algorithm, *(identity(i.field) if isinstance(i, FieldInput) else i for i in inputs))
    if key in cx.known:
        known: Calculation = cx.known[key]
        return known
    count = len(cx.program.calculations)
    name = f"calc_{count - 1}" if count else "calc"
    made = Calculation(name, count, algorithm, inputs, cx.diagnostics.source(span))
    cx.program.calculations.append(made)
    cx.known[key] = made
    return made


def empty_field_list(cx: LowerContext, name: str) -> FieldList:
    # To BMv2, id 0 means that the primitive was not called.
    lists = cx.program.field_lists
    empty = next((f for f in lists if not f.fields), None)
    if empty is None:
        empty = FieldList(name, len(lists) + 1, ())
        lists.append(empty)
    return empty
