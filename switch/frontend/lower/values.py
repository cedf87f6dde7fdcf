"""Values that names and expressions stand for while a program is lowered: scalars are `ir.Expr`, the rest is here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from switch.frontend import ir
from switch.frontend.check.scope import Symbol
from switch.frontend.check.types import Composite, Extern, Stack, Type
from switch.frontend.parse import ast
from switch.records import Mutable


class HeaderValue(Mutable):
    """A header instance."""

    name: str
    type: Composite


class StackValue(Mutable):
    """A stack of headers or of header unions."""

    name: str
    type: Stack
    elements: list[HeaderValue] | list[UnionValue]

    @property
    def kind(self) -> str:
        """BMv2's word for such a stack."""
        return "header_stack" if self.type.element.kind == "header" else "header_union_stack"

    @property
    def headers(self) -> list[HeaderValue]:
        found: list[HeaderValue] = []
        for element in self.elements:
            found.extend([element] if isinstance(element, HeaderValue) else element.members.values())
        return found


class UnionValue(Mutable):
    name: str
    type: Composite
    members: dict[str, HeaderValue]


class ElementValue(Mutable):
    """A stack element whose index is known at run time only."""

    stack: StackValue
    index: ir.Expr
    type: Composite


class NextValue(Mutable):
    """`stack.next` in a parser; with `member`, a header of the next union."""

    stack: StackValue
    type: Composite
    member: str = ""


class LastValue(Mutable):
    """`stack.last` in a parser; with `member`, a header of the last union."""

    stack: StackValue
    type: Composite
    member: str = ""


class Record(Mutable):
    """A struct, tuple or list: storage if its members are, else a value."""

    type: Type
    members: dict[str, Value]


class ExternValue(Mutable):
    """An extern object; `object` is its IR definition, or None for packet_in and packet_out."""

    type: Extern
    name: str
    object: Any = None


class Literal(Mutable):
    """A string or a compile-time enum member or error that is needed as such."""

    value: Any
    type: Type


class BlockValue(Mutable):
    """An instance of a control or parser: what was declared in it, and how it was last applied."""

    symbol: Symbol
    declaration: ast.Applicable
    name: str
    frame: Frame
    bound: list[Value] | None = None
    storage: dict[int, Value] = field(default_factory=dict)  # of parameters that are copied, by position
    locals_made: bool = False


class TableValue(Mutable):
    """A table of a control instance. `prepared` are key expressions that are computed into scalars before it."""

    declaration: ast.TableDecl
    name: str
    frame: Frame
    table: ir.TableDef | None = None
    actions: dict[str, ir.ActionDef] = field(default_factory=dict)  # by the name in its action list
    prepared: list[tuple[ir.FieldRef, ast.Expression]] = field(default_factory=list)


class ActionValue(Mutable):
    """An action of a control instance."""

    symbol: Symbol
    declaration: ast.Action
    name: str
    frame: Frame
    definition: ir.ActionDef | None = None  # without arguments bound in an action list


Value = (
    ir.Expr
    | HeaderValue
    | StackValue
    | UnionValue
    | ElementValue
    | NextValue
    | LastValue
    | Record
    | ExternValue
    | Literal
    | BlockValue
    | TableValue
    | ActionValue
)


class Frame:
    """Bindings of symbols to values, inside those of the enclosing block."""

    def __init__(self, parent: Frame | None, prefix: str) -> None:
        self.parent = parent
        self.prefix = prefix
        self.bindings: dict[int, Value] = {}

    def bind(self, symbol: Symbol, value: Value) -> None:
        self.bindings[id(symbol)] = value

    def lookup(self, symbol: Symbol) -> Value | None:
        frame: Frame | None = self
        while frame is not None:
            found = frame.bindings.get(id(symbol))
            if found is not None:
                return found
            frame = frame.parent
        return None


def leaves(value: Value) -> Iterator[Value]:
    """The scalars, headers, stacks and unions that a value consists of."""
    if isinstance(value, Record):
        for member in value.members.values():
            yield from leaves(member)
    else:
        yield value


def storage_names(value: Value) -> set[str]:
    """Names of what a value reads or is stored in, to see whether two overlap."""
    names: set[str] = set()
    for leaf in leaves(value):
        if isinstance(leaf, HeaderValue):
            names.add(leaf.name)
        elif isinstance(leaf, StackValue):
            names.update(h.name for h in leaf.headers)
            names.add(leaf.name)
        elif isinstance(leaf, UnionValue):
            names.update(h.name for h in leaf.members.values())
        elif isinstance(leaf, ElementValue | NextValue | LastValue):
            names.update(h.name for h in leaf.stack.headers)
        elif isinstance(leaf, ir.Expr):
            names.update(_expression_names(leaf))
    return names


def _expression_names(e: ir.Expr) -> Iterator[str]:
    if isinstance(e, ir.FieldRef):
        # Scalars are fields of one instance: each counts by itself.
        yield f"{e.header}.{e.field}" if e.header in ("scalars", "standard_metadata") else e.header
    elif isinstance(e, ir.Valid):
        yield e.header
    elif isinstance(e, ir.LastField | ir.LastIndex | ir.ElementField | ir.ElementHeader):
        yield e.stack
        if not isinstance(e, ir.LastField | ir.LastIndex):
            yield from _expression_names(e.index)
    elif isinstance(e, ir.Operation):
        for operand in e.operands:
            yield from _expression_names(operand)
    elif isinstance(e, ir.SliceOf):
        yield from _expression_names(e.base)
    elif isinstance(e, ir.HeadersEqual):
        yield from (e.left, e.right)
