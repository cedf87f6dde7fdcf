"""Expression trees.

Arithmetic is exact on unbounded integers; a value is cut to a field's width when it is stored, and compilers emit
the masks and casts that P4's fixed widths need (JSON_format.md, "General information"). Every node knows its `kind`.
"""

from __future__ import annotations

from enum import Enum

from switch.model.headers import Field, Header, Stack, Union, UnionStack
from switch.model.registers import Register
from switch.records import Frozen


class Kind(Enum):
    DATA = "data"
    BOOL = "bool"
    HEADER = "header"
    STACK = "header_stack"
    UNION = "header_union"
    UNION_STACK = "header_union_stack"


# --- leaves -------------------------------------------------------------------------------------------------


class Const(Frozen):
    value: int
    kind = Kind.DATA


class Bool(Frozen):
    value: bool
    kind = Kind.BOOL


class Local(Frozen):
    """An argument of the action (runtime data), by index."""

    index: int
    kind = Kind.DATA


class FieldRef(Frozen):
    header: Header
    field: Field
    kind = Kind.DATA


class ValidBit(Frozen):
    """The hidden field `$valid$`: 1 when the header is valid, else 0."""

    header: Header
    kind = Kind.DATA


class LastField(Frozen):
    """A field of the last valid header of a stack (`stack.last.field`)."""

    stack: Stack
    field: Field
    kind = Kind.DATA


class HeaderRef(Frozen):
    header: Header
    kind = Kind.HEADER


class StackRef(Frozen):
    stack: Stack
    kind = Kind.STACK


class UnionRef(Frozen):
    union: Union
    kind = Kind.UNION


class UnionStackRef(Frozen):
    stack: UnionStack
    kind = Kind.UNION_STACK


# --- operations -------------------------------------------------------------------------------------------------

ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"})
CASTS = frozenset({"two_comp_mod", "usat_cast", "sat_cast"})  # the right operand is the width in bits
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
LOGIC = frozenset({"and", "or"})


class Unary(Frozen):
    """`op` is one of: `~` and `b2d` (data); `not`, `d2b`, `valid` and `valid_union` (bool); `last_stack_index` and
    `size_stack` (data, of a stack)."""

    op: str
    operand: Expression

    @property
    def kind(self) -> Kind:
        return Kind.BOOL if self.op in ("not", "d2b", "valid", "valid_union") else Kind.DATA


class Binary(Frozen):
    """`op` is in ARITHMETIC or CASTS (data), COMPARISONS or LOGIC (bool). `==` and `!=` compare two data, two bools,
    two headers or two unions. Unary plus and minus arrive with a left operand of Const(0)."""

    op: str
    left: Expression
    right: Expression

    @property
    def kind(self) -> Kind:
        return Kind.BOOL if self.op in COMPARISONS or self.op in LOGIC else Kind.DATA


class Ternary(Frozen):
    condition: Expression
    left: Expression
    right: Expression

    @property
    def kind(self) -> Kind:
        return self.left.kind


class RegisterCell(Frozen):
    """A register read in an expression; an index outside the array reads 0."""

    register: Register
    index: Expression
    kind = Kind.DATA


class StackElement(Frozen):
    """`stack[index]`; an index outside the stack is an invalid header of zeros, and writes to it are lost."""

    stack: StackRef
    index: Expression
    kind = Kind.HEADER


class UnionStackElement(Frozen):
    stack: UnionStackRef
    index: Expression
    kind = Kind.UNION


class AccessField(Frozen):
    """Field number `field_index` of a header that is known only at run time."""

    header: Expression
    field: Field
    kind = Kind.DATA


class UnionMember(Frozen):
    union: Expression
    member_index: int
    kind = Kind.HEADER


Expression = (
    Const
    | Bool
    | Local
    | FieldRef
    | ValidBit
    | LastField
    | HeaderRef
    | StackRef
    | UnionRef
    | UnionStackRef
    | Unary
    | Binary
    | Ternary
    | RegisterCell
    | StackElement
    | UnionStackElement
    | AccessField
    | UnionMember
)
