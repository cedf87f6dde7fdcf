"""The context that is handed on while a program is checked: scope, diagnostics, and the kind of block around."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from p4c.frontend.check.scope import Scope, Symbol
from p4c.frontend.check.types import ANY, VOID, Type, TypeVariable
from p4c.frontend.diagnostics import Diagnostics, SourceSpan, article, choices
from p4c.frontend.parse import ast

# How each kind of expression, statement and declaration is checked: an expression's handler returns its type, the
# others return nothing. The tables are arguments of the context, so that no handler imports another and every
# handler can check the parts of its node.
Handlers = dict[type[ast.Node], Callable[["CheckContext", Any], Any]]


@dataclass(slots=True)
class CheckContext:
    """Scope, complaints and handlers. Symbols stay after the check, for lowering."""

    diagnostics: Diagnostics
    expressions: Handlers
    statements: Handlers
    declarations: Handlers
    scope: Scope = field(default_factory=Scope)
    errors: dict[str, int] = field(default_factory=dict)
    match_kinds: list[str] = field(default_factory=list)
    declared: dict[int, Symbol] = field(default_factory=dict)  # symbols by the identity of their declaration
    blocks: dict[int, Symbol] = field(default_factory=dict)  # the same for controls and parsers, still open ones too
    returns: Type = VOID  # of the enclosing function
    in_parser: bool = False
    action_calls_allowed: bool = True
    apply_allowed: bool = False  # only in the body of a control or a parser
    loops: list[ast.LoopStatement] = field(default_factory=list)  # around the present statement
    calls: int = 0  # of actions, controls and parsers, which may write any variable
    action_arguments_needed: bool = True  # not in a table's action list, where the control plane gives action data

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A scope inside the present one."""
        outer = self.scope
        self.scope = Scope(outer)
        yield
        self.scope = outer

    def expression(self, e: ast.Expression) -> Type:
        """Work out `e.type` (ANY after a complaint) and `e.value`."""
        t = self.expressions[type(e)](self, e)
        assert isinstance(t, Type)
        e.type = t
        return t

    def statement(self, s: ast.Statement) -> None:
        self.statements[type(s)](self, s)

    def declaration(self, d: ast.Declaration) -> None:
        self.declarations[type(d)](self, d)

    def type_error(self, message: str, span: SourceSpan, *notes: str) -> Type:
        self.diagnostics.error("types", message, span, *notes)
        return ANY

    def name_error(self, message: str, span: SourceSpan, *notes: str) -> None:
        self.diagnostics.error("names", message, span, *notes)

    def declare(self, symbol: Symbol, span: SourceSpan) -> Symbol:
        symbol.span = span
        if symbol.declaration is not None:
            self.declared[id(symbol.declaration)] = symbol
        earlier = self.scope.names.get(symbol.name)
        if earlier is not None and not (earlier.kind == symbol.kind == "function"):
            place = f" (first at {earlier.span})" if earlier.span else ""
            self.name_error(f"{symbol.name} is declared twice in the same scope{place}", span)
        elif earlier is not None:
            earlier.overloads.append(symbol)
            return symbol
        self.scope.names[symbol.name] = symbol
        return symbol

    def find(self, name: str, span: SourceSpan, kinds: tuple[str, ...], what: str) -> Symbol | None:
        """The symbol of one of `kinds`; otherwise a complaint with the names that would fit."""
        symbol = self.scope.lookup(name)
        if symbol is not None and symbol.kind in kinds:
            return symbol
        note = self.names_like(name, kinds, f"{what}s in scope")
        if symbol is None:
            self.name_error(f"there is no {what} named {name}", span, note)
        else:
            self.name_error(f"{name} is {article(symbol.kind)}, not {article(what)}", span, note)
        return None

    def names_like(self, name: str, kinds: tuple[str, ...], what: str) -> str:
        """A note with the names in scope that would fit: the program's own, and similar names of the libraries."""
        own: list[str] = []
        shipped: list[str] = []
        for s in self.scope.visible():
            if s.kind in kinds and not (s.kind == "type" and isinstance(s.type, TypeVariable)):
                (shipped if s.span is not None and s.span.file.startswith("<") else own).append(s.name)
        close = difflib.get_close_matches(name, shipped, n=2, cutoff=0.6)
        return choices(name, own + close, what)
