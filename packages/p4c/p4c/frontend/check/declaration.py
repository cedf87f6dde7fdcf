"""Declarations of types, functions, actions and instances (specification, chapters 7, 10 and 11)."""

from __future__ import annotations

import re

from p4c.frontend.check import types as ty
from p4c.frontend.check.argument import bind_constructor, blocks_fit, parameter_infos
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.conversion import converted
from p4c.frontend.check.scope import Callee, Scope, Symbol
from p4c.frontend.check.statement import always_returns, declare_constant
from p4c.frontend.check.type_ref import bounded, type_of
from p4c.frontend.parse import ast

_NAME_MAX = 60  # of a generic type with its arguments: written once more at each level, it doubles
_TRANSLATION = r'"[^"]*" , (bit < \w+ >|string|\d\w*)( ,)?'


def _typedef(cx: CheckContext, d: ast.Typedef) -> None:
    base = type_of(cx, d.type)
    t = ty.NewType(d.name, base, d.annotations) if d.fresh else base
    for a in d.annotations:
        if a.name == "p4runtime_translation" and not re.fullmatch(_TRANSLATION, a.source):
            message = '@p4runtime_translation takes a URI and then bit<W>, string or a number of bits: ("…", bit<32>)'
            cx.type_error(message, a.span)
    cx.declare(Symbol("type", d.name, d, t), d.span)


def _composite(cx: CheckContext, d: ast.Composite) -> None:
    if d.type_parameters:
        made: ty.Type = ty.GenericType(d.name, d.type_parameters, _Instances(cx, d))
    else:
        made = _composite_type(cx, d, d.name)
    cx.declare(Symbol("type", d.name, d, made), d.span)


class _Instances:
    """The types that a generic struct, header or union is with type arguments."""

    def __init__(self, cx: CheckContext, d: ast.Composite) -> None:
        self._cx, self._declaration, self._scope = cx, d, cx.scope
        self._made: dict[tuple[ty.Type, ...], ty.Type] = {}

    def __call__(self, arguments: tuple[ty.Type, ...]) -> ty.Type:
        if arguments not in self._made:
            cx, d = self._cx, self._declaration
            outer, cx.scope = cx.scope, Scope(self._scope)
            for name, t in zip([*d.type_parameters, d.name], [*arguments, ty.ANY], strict=True):
                cx.scope.names[name] = Symbol("type", name, None, t)
            name = f"{d.name}<{', '.join(map(str, arguments))}>"
            name = name if len(name) <= _NAME_MAX else f"{d.name}<{len(self._made)}>"
            self._made[arguments] = _composite_type(cx, d, name)
            cx.scope = outer
        return self._made[arguments]


def _composite_type(cx: CheckContext, d: ast.Composite, name: str) -> ty.Type:
    fields: dict[str, ty.FieldType] = {}
    varbits = size = 0
    for f in d.fields:
        t = type_of(cx, f.type)
        if f.name in fields:
            cx.name_error(f"{d.kind} {d.name} has two fields named {f.name}", f.span)
        if d.kind == "header" and t != ty.ANY and not _fits_header(cx, t):
            cx.type_error(f"a header cannot have a field of type {t}", f.span)
        if d.kind == "header_union" and t != ty.ANY and not (isinstance(t, ty.CompositeType) and t.kind == "header"):
            cx.type_error(f"a header union has only headers, not {t}", f.span)
        varbits += isinstance(t, ty.VarBits)
        fields[f.name] = ty.FieldType(f.name, t, f.annotations)
        size += ty.parts(t)
    if varbits > 1:
        cx.type_error(f"header {d.name} has {varbits} varbit fields: BMv2 allows one", d.span)
    return bounded(cx, ty.CompositeType(name, d.kind, fields, d.annotations, size=size), d.span)


def _fits_header(cx: CheckContext, t: ty.Type) -> bool:
    plain = ty.strip(t)
    if isinstance(plain, ty.CompositeType) and plain.kind == "struct":
        return all(_fits_header(cx, f.type) for f in plain.fields.values())
    return isinstance(plain, ty.Bits | ty.VarBits) or plain == ty.BOOL


def _enumdecl(cx: CheckContext, d: ast.EnumDecl) -> None:
    underlying = None
    if d.underlying is not None:
        t = type_of(cx, d.underlying)
        underlying = t if isinstance(t, ty.Bits) else None
        if underlying is None and t != ty.ANY:
            cx.type_error(f"an enum's values are bit<> or int<>, not {t}", d.underlying.span)
    made = ty.Enum(d.name, underlying)
    for position, (name, value, span) in enumerate(d.members):
        number: int | None = position
        if underlying is not None:
            if value is None:
                cx.type_error(f"member {name} needs a value, since enum {d.name} has an underlying type", span)
            else:
                converted(cx, value, underlying, f"member {name}")
                number = value.value if isinstance(value.value, int) else None
                if number is None and value.type != ty.ANY:
                    cx.type_error(f"the value of member {name} is not known at compile time", value.span)
        elif value is not None:
            cx.type_error(f"member {name} has a value, but enum {d.name} has no underlying type", span)
        if name in made.values:
            cx.name_error(f"enum {d.name} has two members named {name}", span)
        made.values[name] = number or 0
    cx.declare(Symbol("type", d.name, d, made), d.span)


def _errordecl(cx: CheckContext, d: ast.ErrorDecl) -> None:
    for name, span in d.members:
        if name in cx.errors:
            cx.name_error(f"error.{name} is declared twice", span)
        cx.errors.setdefault(name, len(cx.errors))


def _matchkinddecl(cx: CheckContext, d: ast.MatchKindDecl) -> None:
    for name, span in d.members:
        if name in cx.match_kinds:
            cx.name_error(f"the match kind {name} is declared twice", span)
        cx.match_kinds.append(name)


def _externdecl(cx: CheckContext, d: ast.ExternDecl) -> None:
    cx.declare(Symbol("type", d.name, d, ty.Extern(d, d.name)), d.span)


def _prototype(cx: CheckContext, d: ast.Prototype) -> None:
    symbol = Symbol("function", d.name, d)
    symbol.parameters = parameter_infos(cx, d.parameters, d.type_parameters)
    assert d.returns is not None
    returns = d.returns
    generic = isinstance(returns, ast.NamedTypeRef) and returns.name in d.type_parameters
    symbol.type = (
        ty.TypeVariable(returns.name) if generic and isinstance(returns, ast.NamedTypeRef) else type_of(cx, returns)
    )
    cx.declare(symbol, d.span)


def _function(cx: CheckContext, d: ast.Function) -> None:
    if d.type_parameters:
        cx.type_error(f"function {d.name}: type parameters are supported for extern functions only", d.span)
        return
    symbol = Symbol("function", d.name, d, type_of(cx, d.returns))
    _body(cx, symbol, d.parameters, d.body, symbol.type, actions=False)
    if symbol.type != ty.VOID and not always_returns(d.body):
        cx.type_error(f"function {d.name} does not return a value on every path", d.span)
    cx.declare(symbol, d.span)


def _action(cx: CheckContext, d: ast.ActionDecl) -> None:
    symbol = Symbol("action", d.name, d)
    _body(cx, symbol, d.parameters, d.body, ty.VOID, actions=True)
    seen_data = False
    for info in symbol.parameters:
        if info.direction and seen_data:
            message = f"parameter {info.name} of action {d.name} has a direction: those come before action data"
            cx.type_error(message, info.declaration.span)
        seen_data = seen_data or not info.direction
        if not info.direction and info.type != ty.ANY and not ty.scalar(info.type):
            cx.type_error(f"action data cannot be of type {info.type}", info.declaration.span)
    cx.declare(symbol, d.span)


def _body(
    cx: CheckContext,
    symbol: Symbol,
    parameters: list[ast.ParameterDecl],
    body: ast.BlockStatement,
    returns: ty.Type,
    actions: bool,
) -> None:
    symbol.parameters = parameter_infos(cx, parameters)
    with cx.nested():
        for info in symbol.parameters:
            cx.declare(info.symbol, info.declaration.span)
        outer = cx.returns, cx.action_calls_allowed, cx.apply_allowed
        cx.returns, cx.action_calls_allowed, cx.apply_allowed = returns, actions, False
        cx.statement(body)
        cx.returns, cx.action_calls_allowed, cx.apply_allowed = outer


def _variable(cx: CheckContext, d: ast.Variable) -> None:
    cx.type_error(f"{d.name}: variables stand in controls, parsers, actions and functions", d.span)


def _instance(cx: CheckContext, d: ast.Instance) -> None:
    t = type_of(cx, d.type)
    symbol = Symbol("instance", d.name, d, t)
    if isinstance(t, ty.ApplicableType) and t.kind in ("control", "parser") and cx.scope.parent is None:
        note = f"declare it in the {t.kind} that applies it, or write {t.name}() as an argument of V1Switch"
        cx.type_error(f"{d.name}: a {t.kind} cannot be instantiated at the top level", d.span, note)
    elif isinstance(t, ty.Extern | ty.ApplicableType):
        call = ast.CallExpression(d.span, ast.Name(d.span, d.name), [], d.arguments)
        callee = Callee("constructor", t.name, symbol, returns=t)
        bound = bind_constructor(cx, call, callee, t)
        if isinstance(t, ty.Extern) and not t.arguments and t.declaration.type_parameters:
            made = tuple(bound.get(n, ty.ANY) for n in t.declaration.type_parameters)
            if ty.ANY in made:
                cx.type_error(f"{t.name} needs type arguments: {t.name}<…>(…)", d.span)
            symbol.type = ty.Extern(t.declaration, t.name, made)
        symbol.value = callee
        if isinstance(t, ty.ApplicableType) and t.kind == "package":
            blocks_fit(cx, callee, bound)
    elif t != ty.ANY:
        cx.type_error(f"{t} has no instances: leave out the arguments to declare a variable", d.span)
    cx.declare(symbol, d.span)


def _package(cx: CheckContext, d: ast.Package) -> None:
    cx.declare(Symbol("package", d.name, d, ty.ApplicableType("package", d.name, d)), d.span)


DECLARATIONS: Handlers = {
    ast.Typedef: _typedef,
    ast.Composite: _composite,
    ast.EnumDecl: _enumdecl,
    ast.ErrorDecl: _errordecl,
    ast.MatchKindDecl: _matchkinddecl,
    ast.ExternDecl: _externdecl,
    ast.Prototype: _prototype,
    ast.Function: _function,
    ast.ActionDecl: _action,
    ast.Constant: declare_constant,
    ast.Variable: _variable,
    ast.Instance: _instance,
    ast.Package: _package,
}
