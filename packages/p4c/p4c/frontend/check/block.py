"""Controls and parsers with their declarations (specification, chapters 13 and 14)."""

from __future__ import annotations

from p4c.frontend.check.argument import parameter_infos
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.scope import Symbol
from p4c.frontend.check.state import check_states
from p4c.frontend.check.statement import declare_variable
from p4c.frontend.check.table import check_table
from p4c.frontend.check.type_ref import SIZE_MAX, constant_number, type_of
from p4c.frontend.check.types import ANY, ApplicableType, width
from p4c.frontend.parse import ast


def _applicable(cx: CheckContext, d: ast.ControlDecl | ast.ParserDecl) -> None:
    kind = "parser" if isinstance(d, ast.ParserDecl) else "control"
    symbol = Symbol(kind, d.name, d, ApplicableType(kind, d.name, d))
    body = d.states if isinstance(d, ast.ParserDecl) else d.body
    if body is not None:
        if d.type_parameters:
            cx.type_error(f"{kind} {d.name}: type parameters are supported for declarations only", d.span)
            return
        with cx.nested():
            cx.in_parser, cx.action_calls_allowed = kind == "parser", kind == "control"
            _open(cx, d, symbol)
            cx.apply_allowed = True
            if isinstance(d, ast.ParserDecl):
                check_states(cx, d)
            elif d.body is not None:
                cx.statement(d.body)
            cx.apply_allowed, cx.in_parser, cx.action_calls_allowed = False, False, True
    cx.declare(symbol, d.span)


def _open(cx: CheckContext, d: ast.Applicable, symbol: Symbol) -> None:
    """Declare a block's parameters and its local declarations."""
    cx.blocks[id(d)] = symbol
    symbol.parameters = parameter_infos(cx, d.parameters)
    constructor = parameter_infos(cx, d.constructor, blocks=True)
    symbol.overloads = [i.symbol for i in constructor]
    for info in [*symbol.parameters, *constructor]:
        cx.declare(info.symbol, info.declaration.span)
    for local in d.locals:
        _local(cx, local)


def _local(cx: CheckContext, d: ast.Declaration) -> None:
    if isinstance(d, ast.TableDecl):
        check_table(cx, d)
    elif isinstance(d, ast.Variable):
        declare_variable(cx, d)
    elif isinstance(d, ast.ValueSetDecl):
        t = type_of(cx, d.type)
        size = constant_number(cx, d.size, "the size of a value set", 1, SIZE_MAX)
        if width(t) is None and t != ANY:
            cx.type_error(f"a value set cannot hold {t}", d.span)
        cx.declare(Symbol("value_set", d.name, d, t, size), d.span)
    else:
        cx.declaration(d)


DECLARATIONS: Handlers = {ast.ControlDecl: _applicable, ast.ParserDecl: _applicable}
