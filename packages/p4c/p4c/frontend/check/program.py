"""The whole program, declaration after declaration."""

from __future__ import annotations

from p4c.frontend.check import call, declaration, fold, member, operator, statement
from p4c.frontend.check.argument import parameter_infos
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.key_set import key_set_element
from p4c.frontend.check.scope import Symbol
from p4c.frontend.check.statement import declare_variable
from p4c.frontend.check.table import check_table
from p4c.frontend.check.type_ref import SIZE_MAX, constant_number, type_of
from p4c.frontend.check.types import (
    ANY,
    BOOL,
    INT,
    INVALID,
    STRING,
    ApplicableType,
    Bits,
    CompositeType,
    FieldType,
    Meta,
    Tuple,
    Type,
    width,
)
from p4c.frontend.diagnostics import Diagnostics, SourceSpan, article, choices, shown
from p4c.frontend.parse import ast

# Expressions without operators: literals, names, lists and structs.
_TEXT_MAX = 40  # of a literal in a message


def _number(cx: CheckContext, e: ast.Number) -> Type:
    if e.width is None:
        e.value = e.number
        return INT
    if e.width == 0:
        return cx.type_error("a literal of width 0 is not supported", e.span)
    t = Bits(e.width, e.signed)
    e.value = fold.fit(e.number, t)
    if e.number >= 1 << e.width:
        text = e.text if len(e.text) <= _TEXT_MAX else shown(e.number)
        cx.diagnostics.warning("types", f"{text} does not fit {t}: it becomes {shown(e.value)}", e.span)
    return t


def _boolean(cx: CheckContext, e: ast.Boolean) -> Type:
    e.value = e.truth
    return BOOL


def _string(cx: CheckContext, e: ast.String) -> Type:
    e.value = e.text
    return STRING


def _default(cx: CheckContext, _e: ast.Default) -> Type:
    return ANY


def _name(cx: CheckContext, e: ast.Name) -> Type:
    symbol = cx.scope.lookup(e.name)
    if symbol is None:
        note = cx.names_like(e.name, ("variable", "parameter", "const", "instance", "table"), "names in scope")
        cx.name_error(f"there is nothing named {e.name} here", e.span, note)
        return ANY
    e.target = symbol
    if symbol.kind == "type":
        return Meta(symbol.type)
    if symbol.kind in ("action", "function", "state", "value_set"):
        return cx.type_error(f"{e.name} is {article(symbol.kind)} and has no value", e.span)
    e.value = symbol.value if symbol.kind == "const" else None
    return symbol.type


def _typeexpression(cx: CheckContext, e: ast.TypeExpression) -> Type:
    return Meta(type_of(cx, e.ref))


def _listexpression(cx: CheckContext, e: ast.ListExpression) -> Type:
    return Tuple(tuple(cx.expression(i) for i in e.items))


def _invalidheader(_cx: CheckContext, _e: ast.InvalidHeader) -> Type:
    return INVALID


def _structexpression(cx: CheckContext, e: ast.StructExpression) -> Type:
    fields: dict[str, FieldType] = {}
    for name, item in e.items:
        if name in fields:
            cx.type_error(f"the field {name} is given twice", item.span)
        fields[name] = FieldType(name, cx.expression(item), [])
    return CompositeType("", "struct", fields, anonymous=True)


EXPRESSIONS: Handlers = {
    ast.Number: _number,
    ast.Boolean: _boolean,
    ast.String: _string,
    ast.Default: _default,
    ast.Name: _name,
    ast.TypeExpression: _typeexpression,
    ast.ListExpression: _listexpression,
    ast.StructExpression: _structexpression,
    ast.InvalidHeader: _invalidheader,
}


# Parser states and their transitions (specification, chapter 13).
def check_states(cx: CheckContext, parser: ast.ParserDecl) -> None:
    assert parser.states is not None
    names = [s.name for s in parser.states]
    for state in parser.states:
        if state.name in ("accept", "reject"):
            cx.name_error(f"the state {state.name} is built in", state.span)
        else:
            cx.declare(Symbol("state", state.name, state), state.span)
    if "start" not in names:
        cx.name_error(f"parser {parser.name} has no state start", parser.span, choices("start", names, "states"))
    _need_an_end(cx, parser, parser.states)
    for state in parser.states:
        with cx.nested():
            for s in state.statements:
                cx.statement(s)
            if state.transition is not None:
                _transition(cx, state.transition, [*names, "accept", "reject"])


def _need_an_end(cx: CheckContext, parser: ast.ParserDecl, states: list[ast.StateDecl]) -> None:
    """Complain of a parser that no packet leaves."""
    following = {state.name: _following(state.transition) for state in states}
    seen: set[str] = set()
    waiting = ["start"]
    while waiting:
        name = waiting.pop()
        if name not in following:
            return  # accept, reject, or a state that was complained of
        if name not in seen:
            seen.add(name)
            waiting += following[name]
    message = f"no packet leaves parser {parser.name}: no state that start leads to goes to accept or reject"
    cx.type_error(message, parser.span, "write: transition accept;")


def _following(t: ast.TransitionStatement | None) -> list[str]:
    """The states that may follow; a packet that fits no case of a select is rejected."""
    if t is None:
        return ["reject"]
    if t.state is not None:
        return [t.state]
    every = any(len(case.keys) == 1 and isinstance(case.keys[0], ast.Default) for case in t.cases)
    return [case.state for case in t.cases] + ([] if every else ["reject"])


def _transition(cx: CheckContext, t: ast.TransitionStatement, names: list[str]) -> None:
    if t.state is not None:
        _target(cx, t.state, t.span, names)
        return
    types = [cx.expression(k) for k in t.select]
    for case in t.cases:
        _target(cx, case.state, case.span, names)
        if len(case.keys) == 1 and isinstance(case.keys[0], ast.Default):
            continue
        if len(case.keys) == 1 and isinstance(case.keys[0], ast.Name):
            symbol = cx.scope.lookup(case.keys[0].name)
            if symbol is not None and symbol.kind == "value_set":
                case.keys[0].target = symbol
                continue
        if len(case.keys) != len(types):
            cx.type_error(f"the select has {len(types)} keys, this case {len(case.keys)}", case.span)
            continue
        for key, wanted in zip(case.keys, types, strict=True):
            key_set_element(cx, key, wanted)


def _target(cx: CheckContext, name: str, span: SourceSpan, names: list[str]) -> None:
    if name not in names:
        cx.name_error(f"there is no state named {name}", span, choices(name, names, "states"))


# Controls and parsers with their declarations (specification, chapters 13 and 14).
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


_EXPRESSIONS = EXPRESSIONS | operator.EXPRESSIONS | member.EXPRESSIONS | call.EXPRESSIONS
_DECLARATIONS = declaration.DECLARATIONS | DECLARATIONS


_VERSIONS = 20180101, 20200408  # of v1model, that p4c knows


def check(program: ast.P4Program, diagnostics: Diagnostics) -> CheckContext:
    """Annotate the whole tree; complaints go to `diagnostics`."""
    cx = CheckContext(diagnostics, _EXPRESSIONS, statement.STATEMENTS, _DECLARATIONS)
    for d in program.declarations:
        cx.declaration(d)
    version = cx.scope.names.get("__v1model_version")
    if version is not None and isinstance(version.declaration, ast.Constant):
        first, last = _VERSIONS
        if not isinstance(version.value, int) or not first <= version.value <= last:
            message = f"V1MODEL_VERSION must be between {first} and {last}"
            cx.type_error(message, version.declaration.initial.span)
    if "main" not in cx.scope.names and not diagnostics.errors:
        note = "end the program with: V1Switch(…) main;"
        diagnostics.error("names", "the program has no package instance named main", program.span, note)
    return cx
