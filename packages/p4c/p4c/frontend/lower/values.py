"""Values of names and expressions while a program is lowered, besides scalars (`scalar.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from common.records import Mutable
from p4c.frontend.check.scope import Symbol
from p4c.frontend.check.types import CompositeType, Extern, Type
from p4c.frontend.check.types import StackType as StackType
from p4c.frontend.declared import DeclaredAction, DeclaredTable
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.expressions import AccessField, Expression, FieldRef, StackElement, UnionMember, UnionStackElement
from p4c.model.headers import Header, Stack, Union, UnionStack


class HeaderValue(Mutable):
    """A header instance."""

    header: Header
    type: CompositeType


class StackValue(Mutable):
    """A stack of headers or of header unions."""

    stack: Stack | UnionStack
    type: StackType
    elements: list[HeaderValue] | list[UnionValue]

    @property
    def headers(self) -> list[HeaderValue]:
        headers: list[HeaderValue] = []
        for element in self.elements:
            headers.extend([element] if isinstance(element, HeaderValue) else element.members.values())
        return headers


class UnionValue(Mutable):
    union: Union
    type: CompositeType
    members: dict[str, HeaderValue]


class ElementValue(Mutable):
    """A stack element whose index is known at run time only; with `member`, a header of such a union."""

    stack: StackValue
    index: Scalar
    type: CompositeType
    member: str = ""

    @property
    def expression(self) -> StackElement | UnionStackElement | UnionMember:
        stack = self.stack.stack
        if isinstance(stack, Stack):
            return StackElement(stack, self.index.operand)
        union = UnionStackElement(stack, self.index.operand)
        return UnionMember(union, stack.unions[0].members.index(self.member)) if self.member else union

    @property
    def choices(self) -> list[HeaderValue | UnionValue]:
        """What it may be, in the order of indices."""
        elements = self.stack.elements
        return [e.members[self.member] if isinstance(e, UnionValue) and self.member else e for e in elements]

    def field(self, name: str, t: Type) -> Scalar:
        first = self.choices[0]
        assert isinstance(first, HeaderValue)
        field = first.header.type.field(name)
        assert field is not None
        return ElementField(AccessField(self.expression, field), t, self, name)


class ElementField(Scalar):
    """A field of such an element."""

    element: ElementValue = field(compare=False)
    name: str = field(compare=False)


class NextValue(Mutable):
    """`stack.next` in a parser; with `member`, a header of the next union."""

    stack: StackValue
    type: CompositeType
    member: str = ""


class LastValue(Mutable):
    """`stack.last` in a parser; with `member`, a header of the last union."""

    stack: StackValue
    type: CompositeType
    member: str = ""


class Aggregate(Mutable):
    """A struct, tuple or list: storage if its members are, else a value."""

    type: Type
    members: dict[str, Value]


class ExternValue(Mutable):
    """An extern object; `object` is what was declared (`declared.py`), or None for packet_in and packet_out."""

    type: Extern
    name: str
    object: Any = None


class Literal(Mutable):
    """A string or a compile-time enum member or error that is needed as such."""

    value: Any
    type: Type


class BlockValue(Mutable):
    """An instance of a control or parser: its declarations, and how it was last applied."""

    symbol: Symbol
    declaration: ast.Applicable
    name: str
    frame: Bindings
    bound: list[Value] | None = None
    storage: dict[int, Value] = field(default_factory=dict)  # of parameters that are copied, by position
    locals_made: bool = False


class TableValue(Mutable):
    """A table of a control instance. `prepared` are key expressions that are computed into scalars before it."""

    declaration: ast.TableDecl
    name: str
    frame: Bindings
    table: DeclaredTable | None = None
    actions: dict[str, DeclaredAction] = field(default_factory=dict)  # by the name in its action list
    prepared: list[tuple[Scalar, ast.Expression]] = field(default_factory=list)


class ActionValue(Mutable):
    """An action of a control instance."""

    symbol: Symbol
    declaration: ast.ActionDecl
    name: str
    frame: Bindings
    definition: DeclaredAction | None = None  # without arguments bound in an action list


Value = (
    Scalar
    | HeaderValue
    | StackValue
    | UnionValue
    | ElementValue
    | NextValue
    | LastValue
    | Aggregate
    | ExternValue
    | Literal
    | BlockValue
    | TableValue
    | ActionValue
)


class Bindings:
    """Bindings of symbols to values, inside those of the enclosing block."""

    def __init__(self, parent: Bindings | None, prefix: str) -> None:
        self.parent = parent
        self.prefix = prefix
        self.bindings: dict[int, Value] = {}

    def bind(self, symbol: Symbol, value: Value) -> None:
        self.bindings[id(symbol)] = value

    def lookup(self, symbol: Symbol) -> Value | None:
        frame: Bindings | None = self
        while frame is not None:
            value = frame.bindings.get(id(symbol))
            if value is not None:
                return value
            frame = frame.parent
        return None


def leaves(value: Value) -> Iterator[Value]:
    """The scalars, headers, stacks and unions that a value consists of."""
    if isinstance(value, Aggregate):
        for member in value.members.values():
            yield from leaves(member)
    else:
        yield value


def storage_names(value: Value) -> set[str]:
    """Names of what a value reads or is stored in, to see whether two overlap."""
    names: set[str] = set()
    for leaf in leaves(value):
        if isinstance(leaf, HeaderValue):
            names.add(leaf.header.name)
        elif isinstance(leaf, StackValue):
            names.update(h.header.name for h in leaf.headers)
            names.add(leaf.stack.name)
        elif isinstance(leaf, UnionValue):
            names.update(h.header.name for h in leaf.members.values())
        elif isinstance(leaf, ElementValue | NextValue | LastValue):
            names.update(h.header.name for h in leaf.stack.headers)
        elif isinstance(leaf, Scalar):
            names.update(_expression_names(leaf.of))
    return names


def _expression_names(e: Expression) -> Iterator[str]:
    match e:
        case FieldRef():
            # Scalars are fields of one instance: each counts by itself.
            own = e.header.name in ("scalars", "standard_metadata")
            yield f"{e.header.name}.{e.field.name}" if own else e.header.name
        case Header() | Stack() | Union() | UnionStack():
            yield e.name
        case _:
            for part in e.parts:
                yield from _expression_names(part)


def identity(item: Expression) -> object:
    """The key that tells a field or constant from others, quickly: a field knows its whole header."""
    return (item.header.name, item.field.name) if isinstance(item, FieldRef) else item
