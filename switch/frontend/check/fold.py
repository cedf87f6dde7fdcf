"""Arithmetic on compile-time values, with the widths of P4 (specification, section 8)."""

from __future__ import annotations

from switch.frontend.check.types import INT, Bits, Type, truncate


def fit(value: int, t: Type) -> int:
    """`value` as a variable of type `t` holds it."""
    return truncate(value, t) if isinstance(t, Bits) else value


def saturate(value: int, t: Type) -> int:
    if not isinstance(t, Bits):
        return value
    low, high = (-(1 << (t.width - 1)), (1 << (t.width - 1)) - 1) if t.signed else (0, (1 << t.width) - 1)
    return min(max(value, low), high)


def binary(op: str, left: int, right: int, t: Type, right_width: int = 0) -> int | bool | None:
    """The result of an operator on numbers, or None if there is none (division by zero, a negative shift)."""
    match op:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "+":
            return fit(left + right, t)
        case "-":
            return fit(left - right, t)
        case "*":
            return fit(left * right, t)
        case "/" | "%":
            if right <= 0 or left < 0:
                return None
            return fit(left // right if op == "/" else left % right, t)
        case "&":
            return fit(left & right, t)
        case "|":
            return fit(left | right, t)
        case "^":
            return fit(left ^ right, t)
        case "|+|":
            return saturate(left + right, t)
        case "|-|":
            return saturate(left - right, t)
        case "<<":
            if right < 0 or (t == INT and right > 4096):
                return None
            return 0 if isinstance(t, Bits) and right >= t.width else fit(left << right, t)
        case ">>":
            return None if right < 0 else fit(left >> right, t)
        case "++":
            return fit((left << right_width) | (right & ((1 << right_width) - 1)), t)
    return None


def unary(op: str, value: int, t: Type) -> int:
    """The result of `-`, `+` or `~`."""
    return fit({"-": -value, "+": value, "~": ~value}[op], t)
