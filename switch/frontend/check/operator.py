"""Operators and casts: their types, and the values known at compile time (specification, sections 8.5 to 8.12)."""

from __future__ import annotations

from switch.frontend.check import fold
from switch.frontend.check.context import Context, Handlers
from switch.frontend.check.conversion import coerce
from switch.frontend.check.type_ref import type_of
from switch.frontend.check.types import (
    ANY,
    BOOL,
    INT,
    Bits,
    Composite,
    Enum,
    EnumValue,
    NewType,
    Tuple,
    Type,
    same,
    strip,
)
from switch.frontend.parse import ast

_ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "&", "|", "^", "|+|", "|-|"])
_COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">="])


def _unary(cx: Context, e: ast.Unary) -> Type:
    t = cx.expression(e.operand)
    if t == ANY:
        return ANY
    if e.op == "!":
        if t != BOOL:
            return cx.type_error(f"! needs a bool, not {t}", e.span)
        e.value = None if e.operand.value is None else not e.operand.value
        return BOOL
    plain = arithmetic(t)
    if plain is None or (plain == INT and e.op == "~"):
        return cx.type_error(f"{e.op} needs a number with a width, not {t}", e.span)
    value = number_value(e.operand)
    if value is not None:
        e.value = fold.unary(e.op, value, plain)
    return plain


def arithmetic(t: Type) -> Type | None:
    """The type to compute with, or None if `t` is no number."""
    if t == INT or isinstance(t, Bits):
        return t
    return t.underlying if isinstance(t, Enum) else None


def number_value(e: ast.Expression) -> int | None:
    if isinstance(e.value, EnumValue):
        return e.value.number
    return e.value if isinstance(e.value, int) and not isinstance(e.value, bool) else None


def _binary(cx: Context, e: ast.Binary) -> Type:
    left, right = cx.expression(e.left), cx.expression(e.right)
    if ANY in (left, right):
        return BOOL if e.op in _COMPARISONS or e.op in ("&&", "||") else ANY
    if e.op in ("&&", "||"):
        return _logical(cx, e, left, right)
    if e.op in ("&&&", ".."):
        _balance(cx, e)
        return e.left.type if isinstance(e.left.type, Type) else ANY
    if e.op in ("<<", ">>"):
        return _shift(cx, e, left, right)
    if e.op == "++":
        return _concatenation(cx, e, left, right)
    if e.op in ("==", "!=") and not (arithmetic(left) and arithmetic(right)):
        return _equality(cx, e, left, right)
    if arithmetic(left) is None or arithmetic(right) is None:
        culprit, t = (e.left, left) if arithmetic(left) is None else (e.right, right)
        note = f"cast it to {t.base} first" if isinstance(t, NewType) else ""
        return cx.type_error(f"{e.op} needs numbers, not {t}", culprit.span, note)
    _balance(cx, e)
    t = e.left.type
    if not same(t, e.right.type):
        note = "cast one of them to the type of the other" if isinstance(t, Bits) else ""
        cx.type_error(f"{e.op} needs two values of one type, not {t} and {e.right.type}", e.span, note)
        return BOOL if e.op in _COMPARISONS else ANY
    a, b = number_value(e.left), number_value(e.right)
    if e.op in ("/", "%") and b is not None and b <= 0:
        return cx.type_error(f"{e.op} by {b} has no result", e.span)
    if a is not None and b is not None:
        e.value = fold.binary(e.op, a, b, t)
        if e.value is None:
            return cx.type_error(f"{a} {e.op} {b} has no result", e.span)
    return BOOL if e.op in _COMPARISONS else t


def _balance(cx: Context, e: ast.Binary) -> None:
    """Give a literal without width the type of the other side; enums with an underlying type become numbers."""
    for side in (e.left, e.right):
        if isinstance(side.type, Enum) and side.type.underlying is not None:
            if same(e.left.type, e.right.type) and e.op in ("==", "!="):
                continue
            coerce(cx, side, side.type.underlying)
    if e.left.type == INT and e.right.type != INT:
        coerce(cx, e.left, e.right.type)
    elif e.right.type == INT and e.left.type != INT:
        coerce(cx, e.right, e.left.type)


def _logical(cx: Context, e: ast.Binary, left: Type, right: Type) -> Type:
    for side, t in ((e.left, left), (e.right, right)):
        if t != BOOL:
            cx.type_error(f"{e.op} needs bools, not {t}", side.span, "compare with a number: == or !=")
    a, b = e.left.value, e.right.value
    if isinstance(a, bool) and isinstance(b, bool):
        e.value = (a and b) if e.op == "&&" else (a or b)
    return BOOL


def _equality(cx: Context, e: ast.Binary, left: Type, right: Type) -> Type:
    if left == INT and isinstance(strip(right), Bits):
        coerce(cx, e.left, strip(right))
        left = e.left.type = right
    elif right == INT and isinstance(strip(left), Bits):
        coerce(cx, e.right, strip(left))
        right = e.right.type = left
    if isinstance(e.right, ast.ListExpression | ast.StructExpression) and isinstance(left, Composite | Tuple):
        coerce(cx, e.right, left)
        right = e.right.type
    if not same(left, right):
        cx.type_error(f"{e.op} needs two values of one type, not {left} and {right}", e.span)
    if e.left.value is not None and e.right.value is not None:
        e.value = (e.left.value == e.right.value) == (e.op == "==")
    return BOOL


def _shift(cx: Context, e: ast.Binary, left: Type, right: Type) -> Type:
    plain = arithmetic(left)
    by = arithmetic(right)
    if plain is None or by is None:
        return cx.type_error(f"{e.op} needs numbers, not {left} and {right}", e.span)
    if isinstance(by, Bits) and by.signed:
        return cx.type_error("a shift needs an unsigned amount", e.right.span)
    amount, value = number_value(e.right), number_value(e.left)
    if amount is not None and amount < 0:
        return cx.type_error("a shift by a negative amount has no meaning", e.right.span)
    if plain == INT and amount is None:
        return cx.type_error("a literal without width needs one to be shifted by a value known at run time", e.span)
    if value is not None and amount is not None:
        e.value = fold.binary(e.op, value, amount, plain)
    return plain


def _concatenation(cx: Context, e: ast.Binary, left: Type, right: Type) -> Type:
    a, b = arithmetic(left), arithmetic(right)
    if not isinstance(a, Bits) or not isinstance(b, Bits):
        return cx.type_error(f"++ needs values with widths, not {left} and {right}", e.span)
    t = Bits(a.width + b.width, a.signed)
    x, y = number_value(e.left), number_value(e.right)
    if x is not None and y is not None:
        e.value = fold.binary("++", x, y, t, b.width)
    return t


def _conditional(cx: Context, e: ast.Conditional) -> Type:
    condition = cx.expression(e.condition)
    if condition not in (BOOL, ANY):
        cx.type_error(f"the condition before ? must be a bool, not {condition}", e.condition.span)
    then, otherwise = cx.expression(e.then), cx.expression(e.otherwise)
    if then == INT and otherwise != INT:
        coerce(cx, e.then, otherwise)
    elif otherwise == INT and then != INT:
        coerce(cx, e.otherwise, then)
    if not same(e.then.type, e.otherwise.type):
        message = f"both sides of : need one type, not {e.then.type} and {e.otherwise.type}"
        return cx.type_error(message, e.span)
    if isinstance(e.condition.value, bool):
        e.value = (e.then if e.condition.value else e.otherwise).value
    return e.then.type if isinstance(e.then.type, Type) else ANY


def _cast(cx: Context, e: ast.Cast) -> Type:
    to = type_of(cx, e.to)
    t = cx.expression(e.operand)
    if ANY in (t, to):
        return to
    source, plain = strip(t), strip(to)
    if isinstance(e.operand, ast.ListExpression | ast.StructExpression) or same(t, to):
        coerce(cx, e.operand, to, "the cast")
        e.value = e.operand.value
        return to
    value = e.operand.value
    if isinstance(value, EnumValue) and isinstance(plain, Bits):
        value = value.number
    if isinstance(plain, Bits) and (source == INT or isinstance(source, Bits)):
        if isinstance(source, Bits) and source.signed != plain.signed and source.width != plain.width:
            note = f"cast to {Bits(source.width, plain.signed)} or {Bits(plain.width, source.signed)} first"
            return cx.type_error(f"a cast changes the sign or the width, not both: {t} to {to}", e.span, note)
        if isinstance(value, int):
            e.value = fold.fit(value, plain)
    elif isinstance(plain, Bits) and source == BOOL and plain == Bits(1):
        e.value = None if value is None else int(value)
    elif plain == BOOL and (source == Bits(1) or (source == INT and value in (0, 1))):
        e.value = None if value is None else bool(value)
    elif plain == INT and isinstance(source, Bits):
        e.value = value
    else:
        return cx.type_error(f"{t} cannot be cast to {to}", e.span)
    return to


EXPRESSIONS: Handlers = {ast.Unary: _unary, ast.Binary: _binary, ast.Conditional: _conditional, ast.Cast: _cast}
