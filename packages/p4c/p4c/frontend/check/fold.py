"""Arithmetic on compile-time values, with the widths of P4 (specification, section 8)."""

import operator as op

from p4c.frontend.check.types import INT, Bits, Type, truncate
from p4c.frontend.parse.lexer import BITS_MAX


def fit(value: int, t: Type) -> int:
    """`value` as a variable of type `t` holds it."""
    return truncate(value, t) if isinstance(t, Bits) else value


def saturate(value: int, t: Type) -> int:
    if not isinstance(t, Bits):
        return value
    low, high = (-(1 << (t.width - 1)), (1 << (t.width - 1)) - 1) if t.signed else (0, (1 << t.width) - 1)
    return min(max(value, low), high)


_COMPARISONS = {"==": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}
_EXACT = {"+": op.add, "-": op.sub, "*": op.mul, "/": op.floordiv, "%": op.mod, "&": op.and_, "|": op.or_, "^": op.xor}


def too_large(sign: str, left: int, right: int) -> bool:
    """Whether the result would have more bits than a number of type int may: told before it is computed."""
    bits = left.bit_length()
    if sign == "*":
        return bits + right.bit_length() > BITS_MAX + 1 or (left * right).bit_length() > BITS_MAX
    if sign == "<<":
        return right > 0 and left != 0 and bits + right > BITS_MAX
    return sign in ("+", "-") and (left + right if sign == "+" else left - right).bit_length() > BITS_MAX


def binary(sign: str, left: int, right: int, t: Type, right_width: int = 0) -> int | bool | None:
    """The result of an operator on numbers, or None if there is none (division by zero, a negative shift).

    Also None where a result of type int is too large: `too_large` tells.
    """
    if sign in _COMPARISONS:
        return bool(_COMPARISONS[sign](left, right))
    if sign in ("/", "%") and (right <= 0 or left < 0):
        return None
    if t == INT and too_large(sign, left, right):
        return None
    if sign in _EXACT:
        return fit(_EXACT[sign](left, right), t)
    if sign in ("|+|", "|-|"):
        return saturate(left + right if sign == "|+|" else left - right, t)
    if sign == "++":
        return fit((left << right_width) | (right & ((1 << right_width) - 1)), t)
    if sign not in ("<<", ">>") or right < 0:
        return None
    if sign == ">>":
        return fit(left >> right, t)
    return 0 if isinstance(t, Bits) and right >= t.width else fit(left << right, t)


def unary(sign: str, value: int, t: Type) -> int:
    """The result of `-`, `+` or `~`."""
    return fit({"-": -value, "+": value, "~": ~value}[sign], t)
