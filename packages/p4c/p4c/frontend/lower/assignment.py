"""Assignments of values of every kind, and values kept safe from later statements."""

from __future__ import annotations

from p4c.frontend.check.types import INT, Bits, CompositeType, VarBits, strip
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import Flow, assigned
from p4c.frontend.lower import values
from p4c.frontend.lower.context import LowerContext, RefusalError, as_expression
from p4c.frontend.lower.storage import allocate, header_fields, temporary
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar, ScalarSlice, computed, constant, slice_of
from p4c.model.expressions import AccessField, Const, Expression, FieldRef, LastField, Local, Unary
from p4c.model.headers import UnionStack
from p4c.model.parsers import LastUnionField


def assign(cx: LowerContext, target: values.Value, source: values.Value, span: SourceSpan) -> None:
    """target = source, for values of any kind."""
    cx.count_parts(1, span)
    if isinstance(target, Scalar):
        assign_scalar(cx, target, as_expression(source, span), span)
    elif (into := _union(target)) is not None and (out_of := _union(source)) is not None:
        cx.emit("assign_union", into, out_of, span=span)
    elif isinstance(target, values.Aggregate):
        if not isinstance(source, values.Aggregate):
            raise RefusalError("this value cannot be assigned to a struct", span)
        _assign_members(cx, list(target.members.values()), list(source.members.values()), span)
    elif isinstance(target, values.HeaderValue | values.ElementValue):
        _assign_header(cx, target, source, span)
    elif isinstance(target, values.StackValue) and isinstance(source, values.StackValue):
        if isinstance(target.stack, UnionStack) and isinstance(source.stack, UnionStack):
            for union, other in zip(target.stack.unions, source.stack.unions, strict=True):
                cx.emit("assign_union", union, other, span=span)
        else:
            cx.emit("assign_header_stack", target.stack, source.stack, span=span)
    elif isinstance(target, values.StackValue) and isinstance(source, values.Aggregate):
        _assign_members(cx, list(target.elements), list(source.members.values()), span)
    elif isinstance(target, values.NextValue | values.LastValue):
        _assign_header(cx, _element(target, span), source, span)
    else:
        raise RefusalError("this cannot be assigned on BMv2", span)


def _union(value: values.Value) -> Expression | None:
    """The header union that a value is, if it is one."""
    if isinstance(value, values.ElementValue) and value.type.kind == "header_union":
        return value.expression
    return value.union if isinstance(value, values.UnionValue) else None


def _assign_members(
    cx: LowerContext, targets: list[values.Value], sources: list[values.Value], span: SourceSpan
) -> None:
    """Member by member; sources that an earlier assignment would change are saved first."""
    written = set().union(*(values.storage_names(t) for t in targets)) if len(targets) > 1 else set()
    saved: list[tuple[values.Value, values.Value]] = []
    for target, source in zip(targets, sources, strict=True):
        if written and isinstance(source, Scalar) and written & values.storage_names(source):
            kept = temporary(cx, source.type)
            assign_scalar(cx, kept, source, span)
            saved.append((target, kept))
        else:
            saved.append((target, source))
    for target, source in saved:
        assign(cx, target, source, span)


def _element(value: values.NextValue | values.LastValue, span: SourceSpan) -> values.ElementValue:
    """`next` or `last` of a stack in a statement other than extract: the element with that index."""
    if isinstance(value.stack.stack, UnionStack):
        raise RefusalError("next and last of a stack of unions cannot be used here", span)
    op = "size_stack" if isinstance(value, values.NextValue) else "last_stack_index"
    return values.ElementValue(value.stack, Scalar(Unary(op, value.stack.stack), Bits(32)), value.type)


def header_object(value: values.Value, span: SourceSpan) -> Expression:
    if isinstance(value, values.HeaderValue):
        return value.header
    if isinstance(value, values.ElementValue):
        return value.expression
    if isinstance(value, values.LastValue | values.NextValue):
        return _element(value, span).expression
    raise RefusalError("a header is needed here", span)


def _assign_header(
    cx: LowerContext, target: values.HeaderValue | values.ElementValue, source: values.Value, span: SourceSpan
) -> None:
    if isinstance(source, values.Aggregate):
        if isinstance(target, values.HeaderValue):
            fields: list[values.Value] = list(header_fields(cx, target))
        elif any(isinstance(strip(f.type), CompositeType) for f in target.type.fields.values()):
            raise RefusalError("structs inside stack elements chosen at run time are not supported", span)
        else:
            target = values.ElementValue(target.stack, keep(cx, target.index, span), target.type, target.member)
            fields = [target.field(name, strip(f.type)) for name, f in target.type.fields.items()]
        cx.emit("add_header", header_object(target, span), span=span)
        _assign_members(cx, fields, list(values.leaves(source)), span)
        return
    cx.emit("assign_header", header_object(target, span), header_object(source, span), span=span)


def assign_scalar(cx: LowerContext, target: Scalar, source: Scalar, span: SourceSpan) -> None:
    if target == source:
        return
    if isinstance(target, ScalarSlice):
        _assign_slice(cx, target, source, span)
    elif isinstance(target.type, VarBits):
        cx.emit("assign_VL", target, source, span=span)
    elif isinstance(target.of, FieldRef | AccessField):
        cx.out.append(assigned(target, source, span))
    elif isinstance(target.of, LastField | LastUnionField):
        raise RefusalError("BMv2 cannot write to the last element of a stack", span)
    else:
        raise RefusalError("this cannot be written", span)


def _assign_slice(cx: LowerContext, target: ScalarSlice, source: Scalar, span: SourceSpan) -> None:
    base, high, low = target.base, target.high, target.low
    t = base.type
    assert isinstance(t, Bits)
    hole = ((1 << t.width) - 1) & ~(((1 << (high - low + 1)) - 1) << low)
    wide = (
        constant(source.number << low, Bits(t.width))
        if source.number is not None
        else computed("<<", (computed("cast", (source,), Bits(t.width)), constant(low, Bits(8))), Bits(t.width))
    )
    kept = computed("&", (base, constant(hole, Bits(t.width))), Bits(t.width))
    assign_scalar(cx, base, computed("|", (kept, wide), t), span)


def reset_headers(cx: LowerContext, storage: values.Value, span: SourceSpan) -> None:
    """A header variable starts invalid (specification, section 8.17)."""
    for leaf in values.leaves(storage):
        if isinstance(leaf, values.HeaderValue | values.StackValue):
            for header in leaf.headers if isinstance(leaf, values.StackValue) else [leaf]:
                cx.emit("remove_header", header.header, span=span)


def evaluated(cx: LowerContext, *items: tuple[ast.Expression, bool]) -> list[values.Value]:
    """Expressions in order, each a place (True) or a value; side effects of later ones do not change earlier ones."""
    parts: list[tuple[values.Value, list[Flow]]] = []
    for e, _ in items:
        outer, cx.out = cx.out, []
        try:
            parts.append((cx.value_of(e), cx.out))
        finally:
            cx.out = outer
    ordered: list[values.Value] = []
    for position, (value, made) in enumerate(parts):
        cx.out.extend(made)
        disturbed = any(later for _, later in parts[position + 1 :])
        e, place = items[position]
        if disturbed:
            value = pinned(cx, value, e.span) if place else saved(cx, value, e.span)
        ordered.append(value)
    return ordered


def pinned(cx: LowerContext, place: values.Value, span: SourceSpan) -> values.Value:
    """A place that does not move when variables in its index change."""
    if isinstance(place, values.ElementField):
        element = pinned(cx, place.element, span)
        assert isinstance(element, values.ElementValue)
        return element.field(place.name, place.type)
    if isinstance(place, ScalarSlice):
        base = pinned(cx, place.base, span)
        assert isinstance(base, Scalar)
        return slice_of(base, place.high, place.low)
    if isinstance(place, values.ElementValue):
        return values.ElementValue(place.stack, keep(cx, place.index, span), place.type, place.member)
    return place


def saved(cx: LowerContext, value: values.Value, span: SourceSpan) -> values.Value:
    """The present value, kept from later changes of the variables in `value`."""
    if isinstance(value, Scalar):
        return keep(cx, value, span)
    if isinstance(value, values.Aggregate):
        return values.Aggregate(value.type, {n: saved(cx, m, span) for n, m in value.members.items()})
    if isinstance(value, values.HeaderValue | values.StackValue | values.UnionValue):
        copy = allocate(cx, "tmp", value.type, span)
        assign(cx, copy, value, span)
        return copy
    return value


def keep(cx: LowerContext, value: Scalar, span: SourceSpan) -> Scalar:
    if isinstance(value.of, Const | Local) or isinstance(value.type, VarBits):
        return value
    return stored(cx, value, span)


def stored(cx: LowerContext, value: Scalar, span: SourceSpan) -> Scalar:
    """A new field with the value."""
    if value.type == INT:
        raise RefusalError("an int that is known at run time only must be cast to a type with a width here", span)
    kept = temporary(cx, value.type)
    assign_scalar(cx, kept, value, span)
    return kept
