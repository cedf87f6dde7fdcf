"""Names, the symbols behind them, and scopes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from common.records import Mutable
from p4c.frontend.check.types import ANY, Type
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.parse.ast import Declaration, Expression, ParameterDecl


class Symbol(Mutable):
    """One declared thing.

    `kind` is const, variable, parameter, type, function, action, table, instance, control, parser, package, state,
    value_set or match_kind. `overloads` holds every declaration of an extern function's name.
    """

    kind: str
    name: str
    declaration: Declaration | None
    type: Type = ANY
    value: Any = None
    direction: str = ""
    span: SourceSpan | None = None
    written: int = 0  # how often, as far as the program is checked
    used: bool = False  # of an action: called or listed by a table; of a table: applied
    overloads: list[Symbol] = field(default_factory=list)
    parameters: list[ParameterInfo] = field(default_factory=list)

    @property
    def writable(self) -> bool:
        return self.kind == "variable" or (self.kind == "parameter" and self.direction in ("out", "inout"))


@dataclass(slots=True)
class ParameterInfo:
    """A parameter with its type worked out."""

    name: str
    direction: str
    type: Type
    declaration: ParameterDecl
    symbol: Symbol


@dataclass(slots=True)
class Callee:
    """The callee of a call with the arguments in the order of the parameters, None for an argument left out.

    `kind` is extern_function, extern_method, function, action, table, control, parser, header, stack, constructor
    or size.
    """

    kind: str
    name: str
    symbol: Symbol | None = None
    base: Expression | None = None
    parameters: list[ParameterInfo] = field(default_factory=list)
    arguments: list[Expression | None] = field(default_factory=list)
    type_arguments: list[Type] = field(default_factory=list)
    returns: Type = ANY


class Scope:
    """A block of names inside another."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Symbol] = {}

    def lookup(self, name: str) -> Symbol | None:
        return next((scope.names[name] for scope in self._outwards() if name in scope.names), None)

    def visible(self) -> Iterator[Symbol]:
        for scope in self._outwards():
            yield from scope.names.values()

    def _outwards(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent
