"""Members, elements and slices of values and types."""

from __future__ import annotations

from switch.frontend.check.context import Context, Handlers
from switch.frontend.check.operator import arithmetic, number_value
from switch.frontend.check.type_ref import constant_number
from switch.frontend.check.types import (
    ACTION_RUN,
    ANY,
    APPLY_RESULT,
    BOOL,
    ERROR,
    Applicable,
    Bits,
    Composite,
    Enum,
    EnumValue,
    ErrorValue,
    Extern,
    Meta,
    Stack,
    Tuple,
    Type,
)
from switch.frontend.diagnostics import choices
from switch.frontend.parse import ast

HEADER_METHODS = ("isValid", "setValid", "setInvalid")
SIZE_METHODS = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")
STACK_METHODS = ("push_front", "pop_front")


def _index(cx: Context, e: ast.Index) -> Type:
    base, index = cx.expression(e.base), cx.expression(e.index)
    if ANY in (base, index):
        return base.element if isinstance(base, Stack) else ANY
    if isinstance(base, Tuple):
        number = constant_number(cx, e.index, "the index of a tuple")
        if number is None or number >= len(base.items):
            return cx.type_error(f"{base} has {len(base.items)} members", e.span)
        return base.items[number]
    if not isinstance(base, Stack):
        return cx.type_error(f"only header stacks and tuples can be indexed, not {base}", e.span)
    if arithmetic(index) is None:
        return cx.type_error(f"an index must be a number, not {index}", e.index.span)
    number = number_value(e.index)
    if number is not None and not 0 <= number < base.size:
        return cx.type_error(f"index {number} is outside {base}: valid are 0 to {base.size - 1}", e.index.span)
    return base.element


def _slice(cx: Context, e: ast.Slice) -> Type:
    base = cx.expression(e.base)
    high = constant_number(cx, e.high, "the upper end of a slice")
    low = constant_number(cx, e.low, "the lower end of a slice")
    if base == ANY or high is None or low is None:
        return ANY
    plain = arithmetic(base)
    if not isinstance(plain, Bits):
        return cx.type_error(f"only numbers with a width have slices, not {base}", e.span)
    if not 0 <= low <= high < plain.width:
        message = f"the slice [{high}:{low}] does not lie within {plain}"
        return cx.type_error(message, e.span, f"bits run from {plain.width - 1} down to 0, the higher first")
    value = number_value(e.base)
    if value is not None:
        e.value = (value >> low) & ((1 << (high - low + 1)) - 1)
    return Bits(high - low + 1)


def _member(cx: Context, e: ast.Member) -> Type:
    base = cx.expression(e.base)
    if base == ANY:
        return ANY
    if isinstance(base, Meta):
        return _static_member(cx, e, base.type)
    if isinstance(base, Composite):
        if e.name in base.fields:
            return base.fields[e.name].type
        methods = HEADER_METHODS if base.kind == "header" else ("isValid",) if base.kind == "header_union" else ()
        if e.name in SIZE_METHODS or e.name in methods:
            return cx.type_error(f"{e.name} is a method: write {e.name}()", e.span)
        note = choices(e.name, [*base.fields, *(f"{m}()" for m in methods)], "fields")
        return cx.type_error(f"{base} has no field {e.name}", e.span, note)
    if isinstance(base, Stack):
        if e.name in ("next", "last"):
            return base.element
        if e.name in ("lastIndex", "size"):
            e.value = base.size if e.name == "size" else None
            return Bits(32)
        note = choices(e.name, ["next", "last", "lastIndex", "size", *STACK_METHODS], "members")
        return cx.type_error(f"a header stack has no member {e.name}", e.span, note)
    if base == APPLY_RESULT:
        if e.name in ("hit", "miss"):
            return BOOL
        if e.name == "action_run":
            return ACTION_RUN
        return cx.type_error(f"the result of apply() has no member {e.name}", e.span, "members: action_run, hit, miss")
    if isinstance(base, Extern | Applicable):
        return cx.type_error(f"{base} has methods only: write {e.name}(…)", e.span)
    return cx.type_error(f"a value of type {base} has no members", e.span)


def _static_member(cx: Context, e: ast.Member, base: Type) -> Type:
    if base == ERROR:
        if e.name not in cx.errors:
            return cx.type_error(f"there is no error.{e.name}", e.span, choices(e.name, cx.errors, "errors"))
        e.value = ErrorValue(e.name)
        return ERROR
    if isinstance(base, Enum):
        if e.name not in base.values:
            note = choices(e.name, base.values, "members")
            return cx.type_error(f"{base} has no member {e.name}", e.span, note)
        e.value = EnumValue(base, e.name)
        return base
    if e.name in SIZE_METHODS:
        return cx.type_error(f"{e.name} is a method: write {e.name}()", e.span)
    return cx.type_error(f"{base} has no member {e.name}", e.span)


EXPRESSIONS: Handlers = {ast.Index: _index, ast.Slice: _slice, ast.Member: _member}
