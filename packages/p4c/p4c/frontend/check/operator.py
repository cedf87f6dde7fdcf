"""Operators and casts: their types, and the values known at compile time (specification, sections 8.5 to 8.12)."""

from __future__ import annotations

from p4c.frontend.check import fold
from p4c.frontend.check import types as ty
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.conversion import coerce
from p4c.frontend.check.type_ref import type_of
from p4c.frontend.diagnostics import brief
from p4c.frontend.parse import ast
from p4c.frontend.parse.lexer import BITS_MAX

_COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">="])


def _unary(cx: CheckContext, e: ast.UnaryExpression) -> ty.Type:
    t = cx.expression(e.operand)
    if t == ty.ANY:
        return ty.ANY
    if e.op == "!":
        if t != ty.BOOL:
            return cx.type_error(f"! needs a bool, not {t}", e.span)
        e.value = None if e.operand.value is None else not e.operand.value
        return ty.BOOL
    plain = arithmetic(t)
    if plain is None or (plain == ty.INT and e.op == "~"):
        return cx.type_error(f"{e.op} needs a number with a width, not {t}", e.span)
    value = number_value(e.operand)
    if value is not None:
        e.value = fold.unary(e.op, value, plain)
    return plain


def arithmetic(t: ty.Type) -> ty.Type | None:
    """The type to compute with, or None if `t` is no number."""
    if t == ty.INT or isinstance(t, ty.Bits):
        return t
    return t.underlying if isinstance(t, ty.Enum) else None


def number_value(e: ast.Expression) -> int | None:
    if isinstance(e.value, ty.EnumValue):
        return e.value.number
    return e.value if isinstance(e.value, int) and not isinstance(e.value, bool) else None


def _binary(cx: CheckContext, e: ast.BinaryExpression) -> ty.Type:
    left, right = cx.expression(e.left), cx.expression(e.right)
    if ty.ANY in (left, right):
        return ty.BOOL if e.op in _COMPARISONS or e.op in ("&&", "||") else ty.ANY
    if e.op in ("&&", "||"):
        return _logical(cx, e, left, right)
    if e.op in ("&&&", ".."):
        _balance(cx, e)
        return e.left.type if isinstance(e.left.type, ty.Type) else ty.ANY
    if e.op in ("<<", ">>"):
        return _shift(cx, e, left, right)
    if e.op == "++":
        return _concatenation(cx, e, left, right)
    if e.op in ("==", "!=") and not (arithmetic(left) and arithmetic(right)):
        return _equality(cx, e, left, right)
    if arithmetic(left) is None or arithmetic(right) is None:
        culprit, t = (e.left, left) if arithmetic(left) is None else (e.right, right)
        note = f"cast it to {t.base} first" if isinstance(t, ty.NewType) else ""
        return cx.type_error(f"{e.op} needs numbers, not {t}", culprit.span, note)
    _balance(cx, e)
    t = e.left.type
    if not ty.same(t, e.right.type):
        note = "cast one of them to the type of the other" if isinstance(t, ty.Bits) else ""
        cx.type_error(f"{e.op} needs two values of one type, not {t} and {e.right.type}", e.span, note)
        return ty.BOOL if e.op in _COMPARISONS else ty.ANY
    a, b = number_value(e.left), number_value(e.right)
    if e.op in ("/", "%") and b is not None and b <= 0:
        return cx.type_error(f"{e.op} by {brief(b)} has no result", e.span)
    if a is not None and b is not None:
        e.value = fold.binary(e.op, a, b, t)
        if e.value is None:
            return _no_result(cx, e, a, b, t)
    return ty.BOOL if e.op in _COMPARISONS else t


def _no_result(cx: CheckContext, e: ast.BinaryExpression, a: int, b: int, t: ty.Type | None) -> ty.Type:
    if t == ty.INT and fold.too_large(e.op, a, b):
        return cx.type_error(f"the result of {e.op} must fit in {BITS_MAX} bits", e.span)
    return cx.type_error(f"{brief(a)} {e.op} {brief(b)} has no result", e.span)


def _balance(cx: CheckContext, e: ast.BinaryExpression) -> None:
    """Give a literal without width the type of the other side; enums with an underlying type become numbers."""
    for side in (e.left, e.right):
        if isinstance(side.type, ty.Enum) and side.type.underlying is not None:
            if ty.same(e.left.type, e.right.type) and e.op in ("==", "!="):
                continue
            coerce(cx, side, side.type.underlying)
    if e.left.type == ty.INT and e.right.type != ty.INT:
        coerce(cx, e.left, e.right.type)
    elif e.right.type == ty.INT and e.left.type != ty.INT:
        coerce(cx, e.right, e.left.type)


def _logical(cx: CheckContext, e: ast.BinaryExpression, left: ty.Type, right: ty.Type) -> ty.Type:
    for side, t in ((e.left, left), (e.right, right)):
        if t != ty.BOOL:
            cx.type_error(f"{e.op} needs bools, not {t}", side.span, "compare with a number: == or !=")
    a, b = e.left.value, e.right.value
    if isinstance(a, bool) and isinstance(b, bool):
        e.value = (a and b) if e.op == "&&" else (a or b)
    return ty.BOOL


def _equality(cx: CheckContext, e: ast.BinaryExpression, left: ty.Type, right: ty.Type) -> ty.Type:
    if left == ty.INT and isinstance(ty.strip(right), ty.Bits):
        coerce(cx, e.left, ty.strip(right))
        left = e.left.type = right
    elif right == ty.INT and isinstance(ty.strip(left), ty.Bits):
        coerce(cx, e.right, ty.strip(left))
        right = e.right.type = left
    if ty.INVALID in (left, right):
        known, other = (e.left, e.right) if right == ty.INVALID else (e.right, e.left)
        coerce(cx, other, known.type)
        left, right = e.left.type, e.right.type
    if isinstance(e.right, ast.ListExpression | ast.StructExpression) and isinstance(left, ty.CompositeType | ty.Tuple):
        coerce(cx, e.right, left)
        right = e.right.type
    if not ty.same(left, right):
        cx.type_error(f"{e.op} needs two values of one type, not {left} and {right}", e.span)
    if e.left.value is not None and e.right.value is not None:
        e.value = (e.left.value == e.right.value) == (e.op == "==")
    return ty.BOOL


def _shift(cx: CheckContext, e: ast.BinaryExpression, left: ty.Type, right: ty.Type) -> ty.Type:
    plain = arithmetic(left)
    by = arithmetic(right)
    if plain is None or by is None:
        return cx.type_error(f"{e.op} needs numbers, not {left} and {right}", e.span)
    if isinstance(by, ty.Bits) and by.signed:
        return cx.type_error("a shift needs an unsigned amount", e.right.span)
    amount, value = number_value(e.right), number_value(e.left)
    if amount is not None and amount < 0:
        return cx.type_error("a shift by a negative amount has no meaning", e.right.span)
    if plain == ty.INT and amount is None:
        return cx.type_error("a literal without width needs one to be shifted by a value known at run time", e.span)
    if value is not None and amount is not None:
        e.value = fold.binary(e.op, value, amount, plain)
        if e.value is None:
            return _no_result(cx, e, value, amount, plain)
    return plain


def _concatenation(cx: CheckContext, e: ast.BinaryExpression, left: ty.Type, right: ty.Type) -> ty.Type:
    a, b = arithmetic(left), arithmetic(right)
    if not isinstance(a, ty.Bits) or not isinstance(b, ty.Bits):
        return cx.type_error(f"++ needs values with widths, not {left} and {right}", e.span)
    t = ty.Bits(a.width + b.width, a.signed)
    if t.width > BITS_MAX:
        return cx.type_error(f"the result of {e.op} must have at most {BITS_MAX} bits, not {t.width}", e.span)
    x, y = number_value(e.left), number_value(e.right)
    if x is not None and y is not None:
        e.value = fold.binary("++", x, y, t, b.width)
    return t


def _conditional(cx: CheckContext, e: ast.ConditionalExpression) -> ty.Type:
    condition = cx.expression(e.condition)
    if condition not in (ty.BOOL, ty.ANY):
        cx.type_error(f"the condition before ? must be a bool, not {condition}", e.condition.span)
    then, otherwise = cx.expression(e.then), cx.expression(e.otherwise)
    if then == ty.INT and otherwise != ty.INT:
        coerce(cx, e.then, otherwise)
    elif otherwise == ty.INT and then != ty.INT:
        coerce(cx, e.otherwise, then)
    if not ty.same(e.then.type, e.otherwise.type):
        message = f"both sides of : need one type, not {e.then.type} and {e.otherwise.type}"
        return cx.type_error(message, e.span)
    if isinstance(e.condition.value, bool):
        e.value = (e.then if e.condition.value else e.otherwise).value
    return e.then.type if isinstance(e.then.type, ty.Type) else ty.ANY


def _cast(cx: CheckContext, e: ast.CastExpression) -> ty.Type:
    to = type_of(cx, e.to)
    t = cx.expression(e.operand)
    if ty.ANY in (t, to):
        return to
    source, plain = ty.strip(t), ty.strip(to)
    if isinstance(e.operand, ast.ListExpression | ast.StructExpression | ast.InvalidHeader) or ty.same(t, to):
        coerce(cx, e.operand, to, "the cast")
        e.value = e.operand.value
        return to
    value = e.operand.value
    if isinstance(value, ty.EnumValue) and isinstance(plain, ty.Bits):
        value = value.number
    if isinstance(plain, ty.Bits) and (source == ty.INT or isinstance(source, ty.Bits)):
        if isinstance(source, ty.Bits) and source.signed != plain.signed and source.width != plain.width:
            note = f"cast to {ty.Bits(source.width, plain.signed)} or {ty.Bits(plain.width, source.signed)} first"
            return cx.type_error(f"a cast changes the sign or the width, not both: {t} to {to}", e.span, note)
        if isinstance(value, int):
            e.value = fold.fit(value, plain)
    elif isinstance(plain, ty.Bits) and source == ty.BOOL and plain == ty.Bits(1):
        e.value = None if value is None else int(value)
    elif plain == ty.BOOL and (source == ty.Bits(1) or (source == ty.INT and value in (0, 1))):
        e.value = None if value is None else bool(value)
    elif plain == ty.INT and isinstance(source, ty.Bits):
        e.value = value
    else:
        return cx.type_error(f"{t} cannot be cast to {to}", e.span)
    return to


EXPRESSIONS: Handlers = {
    ast.UnaryExpression: _unary,
    ast.BinaryExpression: _binary,
    ast.ConditionalExpression: _conditional,
    ast.CastExpression: _cast,
}
