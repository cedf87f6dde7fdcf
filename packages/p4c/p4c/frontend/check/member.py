"""Members, elements and slices of values and types."""

from __future__ import annotations

from p4c.frontend.check import types as ty
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.operator import arithmetic, number_value
from p4c.frontend.check.type_ref import constant_number
from p4c.frontend.diagnostics import brief, choices
from p4c.frontend.parse import ast

HEADER_METHODS = ("isValid", "setValid", "setInvalid")
SIZE_METHODS = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")
STACK_METHODS = ("push_front", "pop_front")


def _index(cx: CheckContext, e: ast.IndexExpression) -> ty.Type:
    base, index = cx.expression(e.base), cx.expression(e.index)
    if ty.ANY in (base, index):
        return base.element if isinstance(base, ty.StackType) else ty.ANY
    if isinstance(base, ty.Tuple):
        number = constant_number(cx, e.index, "the index of a tuple")
        if number is None or number >= len(base.items):
            return cx.type_error(f"{base} has {len(base.items)} members", e.span)
        return base.items[number]
    if not isinstance(base, ty.StackType):
        return cx.type_error(f"only header stacks and tuples can be indexed, not {base}", e.span)
    if arithmetic(index) is None:
        return cx.type_error(f"an index must be a number, not {index}", e.index.span)
    number = number_value(e.index)
    if number is not None and not 0 <= number < base.size:
        return cx.type_error(f"index {brief(number)} is outside {base}: valid are 0 to {base.size - 1}", e.index.span)
    return base.element


def _slice(cx: CheckContext, e: ast.SliceExpression) -> ty.Type:
    base = cx.expression(e.base)
    high = constant_number(cx, e.high, "the upper end of a slice")
    low = constant_number(cx, e.low, "the lower end of a slice")
    if base == ty.ANY or high is None or low is None:
        return ty.ANY
    plain = arithmetic(base)
    if not isinstance(plain, ty.Bits):
        return cx.type_error(f"only numbers with a width have slices, not {base}", e.span)
    if not 0 <= low <= high < plain.width:
        message = f"the slice [{brief(high)}:{brief(low)}] does not lie within {plain}"
        return cx.type_error(message, e.span, f"bits run from {plain.width - 1} down to 0, the higher first")
    value = number_value(e.base)
    if value is not None:
        e.value = (value >> low) & ((1 << (high - low + 1)) - 1)
    return ty.Bits(high - low + 1)


def _member(cx: CheckContext, e: ast.MemberExpression) -> ty.Type:
    base = cx.expression(e.base)
    if base == ty.ANY:
        return ty.ANY
    if isinstance(base, ty.Meta):
        return _static_member(cx, e, base.type)
    if isinstance(base, ty.CompositeType):
        if e.name in base.fields:
            return base.fields[e.name].type
        methods = HEADER_METHODS if base.kind == "header" else ("isValid",) if base.kind == "header_union" else ()
        if e.name in SIZE_METHODS or e.name in methods:
            return cx.type_error(f"{e.name} is a method: write {e.name}()", e.span)
        note = choices(e.name, [*base.fields, *(f"{m}()" for m in methods)], "fields")
        return cx.type_error(f"{base} has no field {e.name}", e.span, note)
    if isinstance(base, ty.StackType):
        if e.name in ("next", "last"):
            return base.element
        if e.name in ("lastIndex", "size"):
            e.value = base.size if e.name == "size" else None
            return ty.Bits(32)
        note = choices(e.name, ["next", "last", "lastIndex", "size", *STACK_METHODS], "members")
        return cx.type_error(f"a header stack has no member {e.name}", e.span, note)
    if base == ty.APPLY_RESULT:
        if e.name in ("hit", "miss"):
            return ty.BOOL
        if e.name == "action_run":
            return ty.ACTION_RUN
        return cx.type_error(f"the result of apply() has no member {e.name}", e.span, "members: action_run, hit, miss")
    if isinstance(base, ty.Extern | ty.ApplicableType):
        return cx.type_error(f"{base} has methods only: write {e.name}(…)", e.span)
    return cx.type_error(f"a value of type {base} has no members", e.span)


def _static_member(cx: CheckContext, e: ast.MemberExpression, base: ty.Type) -> ty.Type:
    if base == ty.ERROR:
        if e.name not in cx.errors:
            return cx.type_error(f"there is no error.{e.name}", e.span, choices(e.name, cx.errors, "errors"))
        e.value = ty.ErrorValue(e.name)
        return ty.ERROR
    if isinstance(base, ty.Enum):
        if e.name not in base.values:
            note = choices(e.name, base.values, "members")
            return cx.type_error(f"{base} has no member {e.name}", e.span, note)
        e.value = ty.EnumValue(base, e.name)
        return base
    if e.name in SIZE_METHODS:
        return cx.type_error(f"{e.name} is a method: write {e.name}()", e.span)
    return cx.type_error(f"{base} has no member {e.name}", e.span)


EXPRESSIONS: Handlers = {ast.IndexExpression: _index, ast.SliceExpression: _slice, ast.MemberExpression: _member}
