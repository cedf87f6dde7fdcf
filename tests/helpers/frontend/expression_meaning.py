"""What P4 expressions mean by the P4_16 specification: exact arithmetic, cut to the type after each operator.

Reads the checked syntax tree, before anything is lowered, and is written without a look at the masks that the compiler
emits: the values here are a truth from outside for what the compiled program computes.
"""

from collections.abc import Mapping

from p4c.frontend.check.types import Bits, Type, strip
from p4c.frontend.parse import ast


def cut(value: int, t: Type) -> int:
    """`value` as the type holds it (specification, sections 8.6 and 8.7)."""
    t = strip(t)
    if not isinstance(t, Bits):
        return value
    low = value & ((1 << t.width) - 1)
    return low - (1 << t.width) if t.signed and low >> (t.width - 1) else low


def clamp(value: int, t: Bits) -> int:
    """`value`, or the nearest value that the type holds (section 8.6)."""
    low, high = (-(1 << (t.width - 1)), (1 << (t.width - 1)) - 1) if t.signed else (0, (1 << t.width) - 1)
    return min(max(value, low), high)


def meaning(e: ast.Expression, fields: Mapping[str, int]) -> int:
    """The value of `e`, where members are fields by name; a bool is 0 or 1."""
    match e:
        case ast.Number():
            return cut(e.number, e.type)
        case ast.MemberExpression():
            return fields[e.name]
        case ast.ConditionalExpression():
            return meaning(e.then if meaning(e.condition, fields) else e.otherwise, fields)
        case ast.CastExpression():
            return cut(meaning(e.operand, fields), e.type)
        case ast.SliceExpression():
            high, low = meaning(e.high, fields), meaning(e.low, fields)
            return meaning(e.base, fields) >> low & ((1 << (high - low + 1)) - 1)
        case ast.UnaryExpression():
            value = meaning(e.operand, fields)
            return int(not value) if e.op == "!" else cut(~value if e.op == "~" else -value, e.type)
        case ast.BinaryExpression():
            return _binary(e, meaning(e.left, fields), meaning(e.right, fields))
    raise AssertionError(e)


def _binary(e: ast.BinaryExpression, a: int, b: int) -> int:
    match e.op:
        case "&&":
            return int(bool(a and b))
        case "||":
            return int(bool(a or b))
        case "==" | "!=" | "<" | "<=" | ">" | ">=":
            return int({"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[e.op])
        case "|+|" | "|-|":
            return clamp(a + b if e.op == "|+|" else a - b, e.type)
        case "++":
            width = e.right.type.width
            return cut(a << width | b & ((1 << width) - 1), e.type)
        case "<<" | ">>":
            far = min(b, 4096)
            return cut(a << far if e.op == "<<" else a >> far, e.type)
    return cut({"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[e.op], e.type)
