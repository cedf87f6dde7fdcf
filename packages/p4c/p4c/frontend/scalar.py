"""Scalars, and P4's arithmetic in the model's.

BMv2 computes without limits of width and cuts only when a value is stored in a field, so every P4 operator that can
leave its width is followed by a mask (unsigned) or a two's complement reduction (signed).
"""

from common.records import Frozen
from p4c.frontend.check.types import BOOL, INT, Bits, Type
from p4c.model.expressions import Binary, Bool, Cast, Const, Expression, FieldRef, Kind, Local, Ternary, Unary

_LOGIC = {"&&": "and", "||": "or"}


class Scalar(Frozen):
    """An expression with its P4 type. Fields and constants of type bool are data in `of`: 0 or 1."""

    of: Expression
    type: Type
    notation = "{0.of}"

    @property
    def number(self) -> int | None:
        """The value of a constant."""
        return self.of.value if isinstance(self.of, Const) else None

    @property
    def operand(self) -> Expression:
        """As a part of an expression: of type bool, a boolean."""
        if self.type != BOOL or self.of.kind is Kind.BOOL:
            return self.of
        return Bool(bool(self.of.value)) if isinstance(self.of, Const) else Unary("d2b", self.of)

    @property
    def data(self) -> Expression:
        """As a parameter of a primitive, which takes no booleans."""
        if self.type != BOOL or isinstance(self.of, FieldRef | Local):
            return self.of
        return Unary("b2d", self.operand)


def constant(value: int, t: Type) -> Scalar:
    """A number, or with type bool 0 or 1."""
    return Scalar(Const(value), t)


def fitted(e: Expression, t: Type) -> Expression:
    """`e` cut to its type."""
    if not isinstance(t, Bits):
        return e
    return Binary("two_comp_mod", e, Const(t.width)) if t.signed else Binary("&", e, Const((1 << t.width) - 1))


def computed(op: str, operands: tuple[Scalar, ...], t: Type) -> Scalar:
    """The value of type `t` of a P4 operator; unary ones have one operand, `?` has three, `cast` one."""
    return Scalar(_computed(op, operands, t), t)


def _computed(op: str, operands: tuple[Scalar, ...], t: Type) -> Expression:
    if op == "?":
        return Ternary(operands[0].operand, operands[1].operand, operands[2].operand)
    if op == "cast":
        return _cast(operands[0], t)
    right = operands[-1].operand
    if len(operands) == 1:
        if op == "!":
            return Unary("not", right)
        return fitted(Binary("-", Const(0), right) if op == "-" else Unary(op, right), t)
    left = operands[0].operand
    if op == "++":
        low = operands[1].type
        assert isinstance(low, Bits)
        assert isinstance(t, Bits)
        # Unsigned operands are within their widths already.
        if low.signed:
            right = fitted(right, Bits(low.width))
        made = Binary("|", Binary("<<", left, Const(low.width)), right)
        return fitted(made, t) if t.signed or low.signed else made
    if op in ("|+|", "|-|"):
        assert isinstance(t, Bits)
        return Binary("sat_cast" if t.signed else "usat_cast", Binary(op[1], left, right), Const(t.width))
    made = Binary(_LOGIC.get(op, op), left, right)
    return fitted(made, t) if op in ("+", "-", "*", "<<") else made


def _cast(operand: Scalar, to: Type) -> Expression:
    source = operand.type
    if source == INT:
        return fitted(operand.operand, to)
    if isinstance(source, Bits) and isinstance(to, Bits):
        fits = to.width >= source.width if to.signed == source.signed else to.width > source.width and not source.signed
        if not fits:
            return fitted(operand.operand, to)
    return Cast(operand.operand)


class ScalarSlice(Scalar):
    """Some bits of a scalar, which may also be written."""

    base: Scalar
    high: int
    low: int


def slice_of(base: Scalar, high: int, low: int) -> Scalar:
    t = Bits(high - low + 1)
    mask = (1 << t.width) - 1
    if base.number is not None:
        return constant((base.number >> low) & mask, t)
    if isinstance(base, ScalarSlice):
        return slice_of(base.base, high + base.low, low + base.low)
    assert isinstance(base.type, Bits)
    if t.width == base.type.width and not base.type.signed:
        return base
    shifted = Binary(">>", base.operand, Const(low)) if low else base.operand
    return ScalarSlice(Binary("&", shifted, Const(mask)), t, base, high, low)
