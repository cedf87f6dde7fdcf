"""Types of P4_16 (specification, chapter 7) as values, however they were written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from common.records import Frozen, Mutable

if TYPE_CHECKING:
    from p4c.frontend.parse.ast import Annotation, Declaration, ExternDecl


class Type(Frozen, eq=False):
    """Base of all types. `str()` is the notation of P4."""


class Bits(Type):
    """bit<W> or int<W>."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"


class Simple(Type):
    """A type without structure, known by its name."""

    name: str
    notation = "{0.name}"


BOOL = Simple("bool")
INT = Simple("int")  # arbitrary precision: literals without a width
ERROR = Simple("error")
STRING = Simple("string")
VOID = Simple("void")
MATCH_KIND = Simple("match_kind")
INVALID = Simple("{#}")  # of a header, until it is known of which
ANY = Simple("_")  # a wildcard, and the type of an expression after a complaint


class VarBits(Type):
    width_max: int
    notation = "varbit<{0.width_max}>"


class Tuple(Type):
    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.items))}>"


class StackType(Type):
    element: CompositeType
    size: int
    notation = "{0.element}[{0.size}]"


class FieldType(Mutable):
    name: str
    type: Type
    annotations: list[Annotation]


class CompositeType(Type, eq=False):
    """struct, header or header_union: equal only to itself. `anonymous` marks the type of a list or struct value."""

    name: str
    kind: str
    fields: dict[str, FieldType] = field(default_factory=dict)
    annotations: list[Annotation] = field(default_factory=list)
    anonymous: bool = False
    size: int = 0  # `parts` of all fields

    def __str__(self) -> str:
        if self.anonymous:
            return "{" + ", ".join(f"{f.name}: {f.type}" for f in self.fields.values()) + "}"
        return f"{self.kind} {self.name}"


class GenericType(Type, eq=False):
    """A struct, header or header union with type parameters; `made` gives its type with arguments for them."""

    name: str
    parameters: list[str]
    made: Callable[[tuple[Type, ...]], Type]


class Enum(Type, eq=False):
    """`values` are what the data plane sees: given with an underlying type, counted from 0 without."""

    name: str
    underlying: Bits | None
    values: dict[str, int] = field(default_factory=dict)
    notation = "enum {0.name}"


class NewType(Type, eq=False):
    """`type base name`: a new type, cast to and from its base."""

    name: str
    base: Type
    annotations: list[Annotation] = field(default_factory=list)
    notation = "{0.name}"


class TypeVariable(Type):
    """A type parameter."""

    name: str
    notation = "{0.name}"


class Extern(Type):
    """An extern object's type with its type arguments."""

    declaration: ExternDecl = field(hash=False, compare=False)
    name: str
    arguments: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return self.name + (f"<{', '.join(map(str, self.arguments))}>" if self.arguments else "")


class ApplicableType(Type):
    """A table, control, parser, package, action or state: something named by a declaration."""

    kind: str
    name: str
    declaration: Declaration = field(hash=False, compare=False)
    arguments: tuple[Type, ...] = ()
    notation = "{0.kind} {0.name}"


class Meta(Type):
    """The type of a type's own name where a value is read: `Enum` in `Enum.member`."""

    type: Type
    notation = "the type {0.type}"


# What `table.apply()` yields. Its members are hit, miss and action_run.
APPLY_RESULT = Simple("apply_result")
ACTION_RUN = Simple("action_run")


class EnumValue(Frozen):
    """A compile-time enum member."""

    type: Enum
    member: str

    @property
    def number(self) -> int:
        return self.type.values[self.member]


class ErrorValue(Frozen):
    """A compile-time error constant."""

    member: str


def strip(t: Type) -> Type:
    """The type that the data plane computes with: new types and enums with an underlying type give their base."""
    while True:
        if isinstance(t, NewType):
            t = t.base
        elif isinstance(t, Enum) and t.underlying is not None:
            t = t.underlying
        else:
            return t


def scalar(t: Type) -> bool:
    """Whether a value of type `t` is one number, bool, enum member or error."""
    plain = strip(t)
    return isinstance(plain, Bits | Enum) or plain in (BOOL, ERROR)


def width(t: Type) -> int | None:
    """Bits that a value occupies: bool 1, error and plain enums 32; None if not fixed (varbit, union)."""
    t = strip(t)
    if isinstance(t, Bits):
        return t.width
    if t == BOOL:
        return 1
    if t == ERROR or isinstance(t, Enum):
        return 32
    if isinstance(t, StackType):
        one = width(t.element)
        return None if one is None else t.size * one
    if isinstance(t, CompositeType) and t.kind != "header_union":
        widths = [width(f.type) for f in t.fields.values()]
        return None if None in widths else sum(w for w in widths if w is not None)
    if isinstance(t, Tuple):
        widths = [width(i) for i in t.items]
        return None if None in widths else sum(w for w in widths if w is not None)
    return None


def parts(t: Type) -> int:
    """How many fields a value consists of, those with fields inside counted as well."""
    t = strip(t)
    if isinstance(t, CompositeType):
        return 1 + t.size
    if isinstance(t, Tuple):
        return 1 + sum(parts(i) for i in t.items)
    return t.size * parts(t.element) if isinstance(t, StackType) else 1


def same(a: Type, b: Type) -> bool:
    """Whether the two are one type."""
    if a is b or a is ANY or b is ANY or a == b:
        return True
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a.items) == len(b.items) and all(same(x, y) for x, y in zip(a.items, b.items, strict=True))
    return False


def substitute(t: Type, bound: Mapping[str, Type]) -> Type:
    """Put types for type parameters; those without a binding stay."""
    if isinstance(t, TypeVariable):
        return bound.get(t.name, t)
    if isinstance(t, Tuple):
        return Tuple(tuple(substitute(i, bound) for i in t.items))
    if isinstance(t, Extern) and t.arguments:
        return Extern(t.declaration, t.name, tuple(substitute(a, bound) for a in t.arguments))
    if isinstance(t, ApplicableType) and t.arguments:
        return ApplicableType(t.kind, t.name, t.declaration, tuple(substitute(a, bound) for a in t.arguments))
    return t


def truncate(value: int, t: Bits) -> int:
    """The value that a variable of type `t` holds after an assignment of `value`."""
    value &= (1 << t.width) - 1
    if t.signed and t.width and value >> (t.width - 1):
        value -= 1 << t.width
    return value
