"""Expressions other than operators: names, members, elements, lists, and calls that return a value."""

from __future__ import annotations

from p4c.frontend.check.scope import Callee
from p4c.frontend.check.types import BOOL, Bits, CompositeType, Tuple, Type, strip
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import assigned
from p4c.frontend.lower import values
from p4c.frontend.lower.assignment import evaluated, keep
from p4c.frontend.lower.context import Expressions, LowerContext, RefusalError
from p4c.frontend.lower.inline import call_function
from p4c.frontend.lower.operator import operation
from p4c.frontend.lower.states.lookahead import lookahead
from p4c.frontend.lower.storage import allocate, header_field, temporary
from p4c.frontend.lower.table import apply_table
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar, constant, slice_of
from p4c.model.expressions import LastField, Unary, ValidBit
from p4c.model.headers import Stack
from p4c.model.parsers import LastUnionField

_TRIED_MAX = 64  # elements of a stack that are compared with an index, each deeper in an expression


def _name(cx: LowerContext, e: ast.Name) -> values.Value:
    symbol = e.target
    value = cx.frame.lookup(symbol)
    if value is not None:
        return value
    declaration = symbol.declaration
    if isinstance(declaration, ast.Constant):
        return cx.value_of(declaration.initial)
    raise RefusalError(f"{e.name} cannot be used as a value here", e.span)


def _member(cx: LowerContext, e: ast.MemberExpression) -> values.Value:
    base = cx.value_of(e.base) if not isinstance(e.base, ast.CallExpression) else _member_of_call(cx, e)
    if isinstance(e.base, ast.CallExpression) and isinstance(base, Scalar):
        return base
    if isinstance(base, values.Aggregate):
        return base.members[e.name]
    if isinstance(base, values.HeaderValue):
        return header_field(cx, base, "", e.name, base.type.fields[e.name].type)
    if isinstance(base, values.UnionValue):
        return base.members[e.name]
    if isinstance(base, values.StackValue):
        return _stack_member(cx, base, e)
    if isinstance(base, values.ElementValue) and base.type.kind == "header_union":
        member = base.type.fields[e.name].type
        assert isinstance(member, CompositeType)
        return values.ElementValue(base.stack, base.index, member, e.name)
    if isinstance(base, values.ElementValue):
        t = strip(base.type.fields[e.name].type)
        if isinstance(t, CompositeType):
            raise RefusalError("structs inside stack elements chosen at run time are not supported", e.span)
        return base.field(e.name, t)
    if isinstance(base, values.NextValue | values.LastValue) and base.type.kind == "header_union":
        member = base.type.fields[e.name].type
        assert isinstance(member, CompositeType)
        return type(base)(base.stack, member, e.name)
    if isinstance(base, values.LastValue):
        return _last_field(base, e.name)
    raise RefusalError(f"{e.name} cannot be read here", e.span)


def _member_of_call(cx: LowerContext, e: ast.MemberExpression) -> values.Value:
    """`table.apply().hit`, or a member of a call's result."""
    call = e.base
    assert isinstance(call, ast.CallExpression)
    if isinstance(call.target, Callee) and call.target.kind == "table":
        if e.name == "action_run":
            raise RefusalError("action_run can be used as the subject of a switch only", e.span)
        hit = temporary(cx, BOOL)
        truth = [assigned(hit, constant(v, BOOL), e.span) for v in (0, 1)]
        when_hit, when_miss = (truth[1], truth[0]) if e.name == "hit" else (truth[0], truth[1])
        apply_table(cx, call, hit=[when_hit], miss=[when_miss])
        return hit
    return cx.value_of(call)


def _stack_member(cx: LowerContext, stack: values.StackValue, e: ast.MemberExpression) -> values.Value:
    element = stack.type.element
    if e.name == "lastIndex":
        return Scalar(Unary("last_stack_index", stack.stack), Bits(32))
    if cx.block != "parser":
        raise RefusalError(f"{e.name} of a header stack exists in parsers only", e.span)
    return values.NextValue(stack, element) if e.name == "next" else values.LastValue(stack, element)


def _last_field(last: values.LastValue, name: str) -> Scalar:
    stack, t = last.stack.stack, strip(last.type.fields[name].type)
    if isinstance(stack, Stack):
        field = stack.type.field(name)
        assert field is not None
        return Scalar(LastField(stack, field), t)
    member = stack.unions[0].members.index(last.member)
    field = stack.unions[0].headers[member].type.field(name)
    assert field is not None
    return Scalar(LastUnionField(stack, member, field), t)


def _index(cx: LowerContext, e: ast.IndexExpression) -> values.Value:
    base = cx.value_of(e.base)
    if isinstance(base, values.Aggregate):
        assert isinstance(e.index.value, int)
        return base.members[list(base.members)[e.index.value]]
    if not isinstance(base, values.StackValue):
        raise RefusalError("this cannot be indexed", e.span)
    index = cx.scalar_of(e.index)
    if index.number is not None:
        if index.number >= len(base.elements):
            raise RefusalError(f"index {index.number} is outside the stack of {len(base.elements)}", e.span)
        return base.elements[index.number]
    return values.ElementValue(base, index, base.type.element)


def _slice(cx: LowerContext, e: ast.SliceExpression) -> values.Value:
    base = cx.scalar_of(e.base)
    high, low = e.high.value, e.low.value
    assert isinstance(high, int)
    assert isinstance(low, int)
    return slice_of(base, high, low)


def _listexpression(cx: LowerContext, e: ast.ListExpression) -> values.Value:
    items = evaluated(cx, *((i, False) for i in e.items))
    names = list(e.type.fields) if isinstance(e.type, CompositeType) else [str(i) for i in range(len(items))]
    t = e.type if isinstance(e.type, Type) else Tuple(())
    return values.Aggregate(t, dict(zip(names, items, strict=True)))


def _structexpression(cx: LowerContext, e: ast.StructExpression) -> values.Value:
    evaluations = evaluated(cx, *((item, False) for _, item in e.items))
    given = {name: value for (name, _), value in zip(e.items, evaluations, strict=True)}
    order = list(e.type.fields) if isinstance(e.type, CompositeType) else list(given)
    return values.Aggregate(e.type, {name: given[name] for name in order})


def _call(cx: LowerContext, e: ast.CallExpression) -> values.Value:
    callee: Callee = e.target
    if callee.kind == "header" and callee.name == "isValid":
        assert callee.base is not None
        return validity(cx, cx.value_of(callee.base), e.span)
    if callee.kind == "function":
        return call_function(cx, e, callee)
    if callee.kind == "extern_method" and callee.name == "packet_in.lookahead":
        return lookahead(cx, callee.type_arguments[0], e.span)
    if callee.kind == "table":
        raise RefusalError("the result of apply() is used through hit, miss or action_run", e.span)
    raise RefusalError(f"BMv2 has no {callee.name} whose result can be used in an expression", e.span)


def validity(cx: LowerContext, value: values.Value, span: SourceSpan) -> Scalar:
    if isinstance(value, values.HeaderValue):
        return Scalar(Unary("d2b", ValidBit(value.header)), BOOL)
    if isinstance(value, values.UnionValue):
        return Scalar(Unary("valid_union", value.union), BOOL)
    if isinstance(value, values.ElementValue):
        if value.stack.type.size > _TRIED_MAX:
            message = f"the validity of an element chosen at run time can be told of at most {_TRIED_MAX} elements"
            raise RefusalError(message, span)
        index, valid = keep(cx, value.index, span), constant(0, BOOL)
        for place, element in enumerate(value.choices):
            here = operation("==", (index, constant(place, index.type)), BOOL, span)
            here = operation("&&", (here, validity(cx, element, span)), BOOL, span)
            valid = operation("||", (valid, here), BOOL, span)
        return valid
    raise RefusalError("validity is a property of headers", span)


def _invalidheader(cx: LowerContext, e: ast.InvalidHeader) -> values.Value:
    """A header that nothing writes, one per type."""
    key = ("invalid", e.type)
    if key not in cx.known:
        cx.known[key] = allocate(cx, "invalid", e.type, e.span)
    header: values.Value = cx.known[key]
    return header


EXPRESSIONS: Expressions = {
    ast.InvalidHeader: _invalidheader,
    ast.Name: _name,
    ast.MemberExpression: _member,
    ast.IndexExpression: _index,
    ast.SliceExpression: _slice,
    ast.ListExpression: _listexpression,
    ast.StructExpression: _structexpression,
    ast.CallExpression: _call,
}
