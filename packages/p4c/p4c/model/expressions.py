"""Expression trees.

Arithmetic is exact on unbounded integers; a value is cut to a field's width when it is stored, and compilers emit
the masks and casts that P4's fixed widths need (JSON_format.md, "General information"). Every node knows its `kind`;
headers, stacks and unions have no other value than themselves.
"""

from p4c.model.headers import Field, Header, Stack, UnionStack
from p4c.model.kind import Expression as Expression
from p4c.model.kind import Kind as Kind
from p4c.model.registers import Register

__all__ = [
    "AccessField", "Binary", "Bool", "Const", "Expression", "FieldRef", "Kind", "LastField", "Local", "RegisterCell",
    "StackElement", "Ternary", "Unary", "UnionMember", "UnionStackElement", "ValidBit",
]  # fmt: skip

# --- leaves -------------------------------------------------------------------------------------------------


class Const(Expression):
    """A constant integer."""

    value: int
    kind = Kind.DATA
    notation = "{0.value}"


class Bool(Expression):
    """A constant truth value."""

    value: bool
    kind = Kind.BOOL

    def __str__(self) -> str:
        return str(self.value).lower()


class Local(Expression):
    """An argument of the action (runtime data), by index."""

    index: int
    kind = Kind.DATA
    notation = "argument {0.index}"


class FieldRef(Expression):
    """The field of a header, to read or to write."""

    header: Header
    field: Field
    kind = Kind.DATA
    notation = "{0.header.name}.{0.field.name}"


class ValidBit(Expression):
    """The hidden field `$valid$`: 1 when the header is valid, else 0."""

    header: Header
    kind = Kind.DATA
    notation = "{0.header.name}.isValid()"


class LastField(Expression):
    """A field of the last valid header of a stack (`stack.last.field`)."""

    stack: Stack
    field: Field
    kind = Kind.DATA
    notation = "{0.stack.name}.last.{0.field.name}"


# --- operations -------------------------------------------------------------------------------------------------

ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"})
CASTS = frozenset({"two_comp_mod", "usat_cast", "sat_cast"})  # the right operand is the width in bits
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
LOGIC = frozenset({"and", "or"})


class Unary(Expression):
    """`op` is one of: `~` and `b2d` (data); `not`, `d2b`, `valid` and `valid_union` (bool); `last_stack_index` and
    `size_stack` (data, of a stack)."""

    op: str
    operand: Expression
    notation = "{0.op}({0.operand})"

    @property
    def kind(self) -> Kind:
        return Kind.BOOL if self.op in ("not", "d2b", "valid", "valid_union") else Kind.DATA


class Binary(Expression):
    """`op` is in ARITHMETIC or CASTS (data), COMPARISONS or LOGIC (bool). `==` and `!=` compare two data, two bools,
    two headers or two unions. Unary plus and minus arrive with a left operand of Const(0)."""

    op: str
    left: Expression
    right: Expression
    notation = "({0.left} {0.op} {0.right})"

    @property
    def kind(self) -> Kind:
        return Kind.BOOL if self.op in COMPARISONS or self.op in LOGIC else Kind.DATA


class Ternary(Expression):
    """`condition ? left : right`."""

    condition: Expression
    left: Expression
    right: Expression
    notation = "({0.condition} ? {0.left} : {0.right})"

    @property
    def kind(self) -> Kind:
        return self.left.kind


class Cast(Expression):
    """A cast that changes no value. Compilers write it as an expression around another; `load` leaves it out."""

    operand: Expression
    notation = "{0.operand}"

    @property
    def kind(self) -> Kind:
        return self.operand.kind


class RegisterCell(Expression):
    """A register read in an expression; an index outside the array reads 0."""

    register: Register
    index: Expression
    kind = Kind.DATA
    notation = "{0.register.name}[{0.index}]"


class StackElement(Expression):
    """`stack[index]`; an index outside the stack is an invalid header of zeros, and writes to it are lost."""

    stack: Stack
    index: Expression
    kind = Kind.HEADER
    notation = "{0.stack.name}[{0.index}]"


class UnionStackElement(Expression):
    """An element of a stack of unions; the index may be computed."""

    stack: UnionStack
    index: Expression
    kind = Kind.UNION
    notation = "{0.stack.name}[{0.index}]"


class AccessField(Expression):
    """Field number `field_index` of a header that is known only at run time."""

    header: Expression
    field: Field
    kind = Kind.DATA
    notation = "{0.header}.{0.field.name}"


class UnionMember(Expression):
    """One member of a header union, as a header."""

    union: Expression
    member_index: int
    kind = Kind.HEADER
    notation = "{0.union}.{0.member_index}"
