"""Operators and casts: every result keeps its P4 type, and operations on constants are folded."""

from __future__ import annotations

from collections.abc import Iterable

from p4c.frontend.check import fold
from p4c.frontend.check.types import BOOL, ERROR, INT, Bits, CompositeType, Enum, Type, VarBits, strip
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import Branch, assigned
from p4c.frontend.lower.assignment import assign_scalar, evaluated
from p4c.frontend.lower.context import Expressions, LowerContext, RefusalError, as_expression
from p4c.frontend.lower.storage import temporary
from p4c.frontend.lower.values import Aggregate, HeaderValue, Literal, StackValue, UnionValue, Value
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar, computed, constant, slice_of
from p4c.model.expressions import Binary, Unary, ValidBit


def operation(op: str, operands: tuple[Scalar, ...], t: Type, span: SourceSpan) -> Scalar:
    """An operator on scalars, folded if they are all known (constructor parameters are only known here)."""
    t = strip(t)
    numbers = [o.number for o in operands if o.number is not None]
    if len(numbers) == len(operands):
        folded: int | bool | None = None
        if op == "cast":
            folded = fold.fit(numbers[0], t)
        elif op == "!":
            folded = not numbers[0]
        elif op in ("&&", "||"):
            folded = all(numbers) if op == "&&" else any(numbers)
        elif op == "?":
            folded = numbers[1] if numbers[0] else numbers[2]
        elif len(numbers) == 1:
            folded = fold.unary(op, numbers[0], t)
        else:
            right = operands[1].type
            folded = fold.binary(op, numbers[0], numbers[1], t, right.width if isinstance(right, Bits) else 0)
        if folded is not None:
            return constant(int(folded), t)
    known = operands[0].number
    if op == "?" and known is not None:
        return operands[1] if known else operands[2]
    if op == "&&" and known is not None:
        return operands[1] if known else operands[0]
    if op == "||" and known is not None:
        return operands[0] if known else operands[1]
    if op in ("/", "%") and (t == INT or (isinstance(t, Bits) and t.signed)):
        raise RefusalError(f"BMv2 has no {op} on signed values known only at run time", span)
    return computed(op, operands, t)


def cast(value: Scalar, to: Type, span: SourceSpan) -> Scalar:
    t, plain = value.type, strip(to)
    if t == plain:
        return value
    if value.number is not None:
        return constant(fold.fit(value.number, plain), plain)
    if isinstance(t, Bits) and plain == BOOL:
        return operation("==", (value, constant(1, t)), BOOL, span)
    if t == BOOL and isinstance(plain, Bits):
        return operation("?", (value, constant(1, plain), constant(0, plain)), plain, span)
    if isinstance(plain, Bits) and (t == INT or isinstance(t, Bits)):
        if isinstance(t, Bits) and plain.width < t.width and not plain.signed:
            return slice_of(value, plain.width - 1, 0)
        return computed("cast", (value,), plain)
    if plain == INT:
        return Scalar(value.of, INT)
    if plain == ERROR or isinstance(plain, Enum):
        return value
    raise RefusalError(f"a value of type {t} cannot be cast to {to}", span)


def binary(cx: LowerContext, e: ast.BinaryExpression, left: Value, right: Value) -> Value:
    """The operator of `e` on two values."""
    if e.op in ("==", "!=") and not (isinstance(left, Scalar) and isinstance(right, Scalar)):
        equal = _equal(cx, left, right, e.span)
        return equal if e.op == "==" else operation("!", (equal,), BOOL, e.span)
    a, b = as_expression(left, e.left.span), as_expression(right, e.right.span)
    if e.op in ("<<", ">>") and b.number is not None and isinstance(a.type, Bits):
        gone = b.number >= a.type.width and (e.op == "<<" or not a.type.signed)
        if gone:
            return constant(0, a.type)
    if isinstance(a.type, VarBits) and e.op not in ("==", "!="):
        raise RefusalError("varbit fields can only be extracted, emitted, copied and compared by == and !=", e.span)
    return operation(e.op, (a, b), e.type, e.span)


def _equal(cx: LowerContext, left: Value, right: Value, span: SourceSpan) -> Scalar:
    cx.count_parts(1, span)
    if isinstance(left, HeaderValue) and isinstance(right, HeaderValue):
        return _headers_equal(left, right, span)
    pairs: Iterable[tuple[Value, Value]] | None = None
    if isinstance(left, Aggregate) and isinstance(right, Aggregate):
        pairs = zip(left.members.values(), right.members.values(), strict=True)
    elif isinstance(left, StackValue) and isinstance(right, StackValue):
        pairs = zip(left.elements, right.elements, strict=True)
    if pairs is None:
        return operation("==", (as_expression(left, span), as_expression(right, span)), BOOL, span)
    result: Scalar = constant(1, BOOL)
    for a, b in pairs:
        result = operation("&&", (result, _equal(cx, a, b, span)), BOOL, span)
    return result


def _headers_equal(left: HeaderValue, right: HeaderValue, span: SourceSpan) -> Scalar:
    """Two invalid headers are equal (specification, section 8.17); for BMv2's `==` no invalid header equals another."""
    invalid = [operation("!", (Scalar(Unary("d2b", ValidBit(h.header)), BOOL),), BOOL, span) for h in (left, right)]
    neither = operation("&&", (invalid[0], invalid[1]), BOOL, span)
    return operation("||", (neither, Scalar(Binary("==", left.header, right.header), BOOL)), BOOL, span)


def _unary(cx: LowerContext, e: ast.UnaryExpression) -> Value:
    operand = cx.scalar_of(e.operand)
    return operand if e.op == "+" else operation(e.op, (operand,), e.type, e.span)


def _binary(cx: LowerContext, e: ast.BinaryExpression) -> Value:
    if e.op in ("&&", "||"):
        return _short_circuit(cx, e)
    left, right = evaluated(cx, (e.left, False), (e.right, False))
    return binary(cx, e, left, right)


def _short_circuit(cx: LowerContext, e: ast.BinaryExpression) -> Scalar:
    left = cx.scalar_of(e.left)
    right, before = cx.isolated(e.right)
    if not before:
        return operation(e.op, (left, right), BOOL, e.span)
    # The right side has effects, which may happen only if the left side does not decide.
    result = temporary(cx, BOOL)
    assign_scalar(cx, result, left, e.span)
    body = [*before, assigned(result, right, e.span)]
    branch = Branch(result, body, [], e.span) if e.op == "&&" else Branch(result, [], body, e.span)
    cx.out.append(branch)
    return result


def _conditional(cx: LowerContext, e: ast.ConditionalExpression) -> Value:
    condition = cx.scalar_of(e.condition)
    if condition.number is not None:
        return cx.value_of(e.then if condition.number else e.otherwise)
    if isinstance(strip(e.type), CompositeType):
        raise RefusalError("a conditional expression of structs or headers is not supported: use if", e.span)
    then, before_then = cx.isolated(e.then)
    otherwise, before_otherwise = cx.isolated(e.otherwise)
    if not before_then and not before_otherwise:
        return operation("?", (condition, then, otherwise), e.type, e.span)
    result = temporary(cx, e.type)
    before_then.append(assigned(result, then, e.span))
    before_otherwise.append(assigned(result, otherwise, e.span))
    cx.out.append(Branch(condition, before_then, before_otherwise, e.span))
    return result


def _cast(cx: LowerContext, e: ast.CastExpression) -> Value:
    value = cx.value_of(e.operand)
    if isinstance(value, Aggregate | HeaderValue | UnionValue | Literal):
        return value
    return cast(as_expression(value, e.span), e.type, e.span)


EXPRESSIONS: Expressions = {
    ast.UnaryExpression: _unary,
    ast.BinaryExpression: _binary,
    ast.ConditionalExpression: _conditional,
    ast.CastExpression: _cast,
}
