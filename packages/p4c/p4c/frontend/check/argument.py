"""Arguments against parameters: order, conversion, type arguments worked out (specification, chapter 14)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from p4c.frontend.check.context import CheckContext
from p4c.frontend.check.conversion import coerce
from p4c.frontend.check.left_value import need_left_value
from p4c.frontend.check.scope import Callee, ParameterInfo, Symbol
from p4c.frontend.check.type_ref import type_of
from p4c.frontend.check.types import ANY, INT, ApplicableType, Bits, Extern, Tuple, Type, TypeVariable, same, substitute
from p4c.frontend.diagnostics import choices, count
from p4c.frontend.parse import ast


def bind_constructor(cx: CheckContext, e: ast.CallExpression, callee: Callee, made: Type) -> dict[str, Type]:
    """Check constructor arguments; returns the type arguments found."""
    if isinstance(made, Extern):
        constructors = [m for m in made.declaration.methods if m.returns is None]
        constructor = next((c for c in constructors if len(c.parameters) == len(e.arguments)), None)
        if constructor is None:
            wanted = wanted_arguments((c.parameters for c in constructors), "constructor argument")
            cx.type_error(f"{made.name} takes {wanted}, not {len(e.arguments)}", e.span)
            return {}
        names = made.declaration.type_parameters
        callee.parameters = parameter_infos(cx, constructor.parameters, names)
        return bind(cx, e, callee, names, dict(zip(names, made.arguments, strict=False)))
    assert isinstance(made, ApplicableType)
    declaration = made.declaration
    if isinstance(declaration, ast.Package):
        callee.parameters = parameter_infos(cx, declaration.parameters, declaration.type_parameters, blocks=True)
        names = declaration.type_parameters
        return bind(cx, e, callee, names, dict(zip(names, made.arguments, strict=False)))
    assert isinstance(declaration, ast.Applicable)
    callee.parameters = parameter_infos(cx, declaration.constructor, blocks=True)
    bind(cx, e, callee)
    blocks_fit(cx, callee, {})
    return {}


def parameter_infos(
    cx: CheckContext, parameters: list[ast.ParameterDecl], generics: list[str] | None = None, blocks: bool = False
) -> list[ParameterInfo]:
    """Parameters with their types; `generics` are names of types yet unknown.

    Only where `blocks`, in packages and constructors, can parameters be parsers and controls.
    """
    outer = cx.scope
    if generics:
        cx.scope = type(outer)(outer)
        for name in generics:
            cx.scope.names[name] = Symbol("type", name, None, TypeVariable(name))
    infos = []
    for p in parameters:
        t = type_of(cx, p.type)
        if isinstance(t, ApplicableType) and not blocks:
            t = cx.type_error(f"parameter {p.name} cannot be of type {t}", p.span)
        if t == INT and p.direction:
            note = "an int has no width, so its value must be known at compile time"
            t = cx.type_error(f"parameter {p.name} of type int must have no direction", p.span, note)
        symbol = Symbol("parameter", p.name, p, t, direction=p.direction, span=p.span)
        infos.append(ParameterInfo(p.name, p.direction, t, p, symbol))
    cx.scope = outer
    return infos


def bind(
    cx: CheckContext,
    e: ast.CallExpression,
    callee: Callee,
    generics: list[str] | None = None,
    known: dict[str, Type] | None = None,
) -> dict[str, Type]:
    """Match arguments with parameters, work out type arguments and convert; fills `callee.arguments`."""
    bound = dict(known or {})
    if e.type_arguments and generics and not bound:
        given = [type_of(cx, a) for a in e.type_arguments]
        if len(given) != len(generics):
            cx.type_error(f"{callee.name} takes {count(len(generics), 'type argument')}, not {len(given)}", e.span)
        bound.update((n, t) for n, t in zip(generics, given, strict=False) if t != ANY)
    ordered = _order(cx, e, callee)
    for info, argument in zip(callee.parameters, ordered, strict=True):
        if argument is None:
            continue
        if isinstance(argument, ast.Default):
            argument.type = substitute(info.type, bound)
            if info.direction != "out":
                cx.type_error("_ can stand only for an out parameter", argument.span)
            continue
        t = cx.expression(argument)
        _unify(cx, info.type, t, bound)
        to = substitute(info.type, bound)
        coerce(cx, argument, to, f"parameter {info.name} of {callee.name}")
        if info.direction in ("out", "inout"):
            need_left_value(cx, argument, f"the argument for {info.direction} parameter {info.name}")
    callee.arguments = ordered
    return bound


def _order(cx: CheckContext, e: ast.CallExpression, callee: Callee) -> list[ast.Expression | None]:
    names = [p.name for p in callee.parameters]
    slots: list[ast.Expression | None] = [None] * len(names)
    for position, argument in enumerate(e.arguments):
        if argument.name is not None:
            if argument.name not in names:
                note = choices(argument.name, names, "parameters")
                cx.type_error(f"{callee.name} has no parameter {argument.name}", argument.span, note)
                continue
            position = names.index(argument.name)
        if position >= len(slots):
            cx.type_error(f"{callee.name} takes {count(len(names), 'argument')}, not {len(e.arguments)}", e.span)
            break
        if slots[position] is not None:
            cx.type_error(f"parameter {names[position]} is given twice", argument.span)
        slots[position] = argument.expression
    for index, info in enumerate(callee.parameters):
        if slots[index] is None and info.declaration.default is not None:
            slots[index] = info.declaration.default
        elif slots[index] is None and (cx.action_arguments_needed or info.direction or callee.kind != "action"):
            cx.type_error(f"{callee.name} needs an argument for parameter {info.name}", e.span)
    return slots


def _unify(cx: CheckContext, wanted: Type, given: Type, bound: dict[str, Type]) -> None:
    """Bind the type parameters in `wanted` so that `wanted` becomes `given`."""
    if isinstance(wanted, TypeVariable):
        known = bound.get(wanted.name)
        if known is None or (known == INT and isinstance(given, Bits)):
            bound[wanted.name] = given
    elif isinstance(wanted, Tuple) and isinstance(given, Tuple):
        for w, g in zip(wanted.items, given.items, strict=False):
            _unify(cx, w, g, bound)
    elif isinstance(wanted, ApplicableType) and isinstance(given, ApplicableType):
        _unify_block(cx, wanted, given, bound)


def _unify_block(cx: CheckContext, wanted: ApplicableType, given: ApplicableType, bound: dict[str, Type]) -> None:
    """`Parser<H, M>` against a parser: its parameters' types give H and M."""
    pattern, actual = wanted.declaration, given.declaration
    if not isinstance(pattern, ast.Applicable) or not isinstance(actual, ast.Applicable):
        return
    infos = parameter_infos(cx, pattern.parameters, pattern.type_parameters)
    given_infos = parameter_infos(cx, actual.parameters)
    local: dict[str, Type] = {}
    for name, argument in zip(pattern.type_parameters, wanted.arguments, strict=False):
        if isinstance(argument, TypeVariable) and argument.name in bound:
            local[name] = bound[argument.name]
    for w, g in zip(infos, given_infos, strict=False):
        _unify(cx, w.type, g.type, local)
    for name, argument in zip(pattern.type_parameters, wanted.arguments, strict=False):
        if isinstance(argument, TypeVariable) and name in local:
            bound.setdefault(argument.name, local[name])


def blocks_fit(cx: CheckContext, callee: Callee, bound: dict[str, Type]) -> None:
    """Complain of parsers and controls given to a constructor or package that do not fit its parameters."""
    for info, argument in zip(callee.parameters, callee.arguments, strict=True):
        wanted = substitute(info.type, bound)
        if argument is not None and isinstance(wanted, ApplicableType) and isinstance(argument.type, ApplicableType):
            problem = _block_fits(cx, wanted, argument.type, bound)
            if problem:
                cx.type_error(problem, argument.span)


def _block_fits(cx: CheckContext, wanted: ApplicableType, given: ApplicableType, bound: dict[str, Type]) -> str:
    """The reason why a parser or control does not fit the package's parameter; empty if the block fits."""
    pattern, actual = wanted.declaration, given.declaration
    if wanted.kind != given.kind:
        return f"a {wanted.kind} is needed here, not {given}"
    if not isinstance(pattern, ast.Applicable) or not isinstance(actual, ast.Applicable):
        return ""  # another architecture than v1model, which lowering refuses
    if len(pattern.parameters) != len(actual.parameters):
        return f"{pattern.name} has {len(pattern.parameters)} parameters, {actual.name} {len(actual.parameters)}"
    local = {
        name: substitute(argument, bound)
        for name, argument in zip(pattern.type_parameters, wanted.arguments, strict=False)
    }
    infos = parameter_infos(cx, pattern.parameters, pattern.type_parameters)
    for w, g in zip(infos, parameter_infos(cx, actual.parameters), strict=True):
        t = substitute(w.type, local)
        if not same(t, g.type):
            return f"parameter {g.name} of {actual.name} must be of type {t}, not {g.type}"
        if w.direction != g.direction:
            return f"parameter {g.name} of {actual.name} must be {w.direction or 'without direction'}"
    return ""


def wanted_arguments(parameters: Iterable[Sequence[object]], noun: str = "argument") -> str:
    """How many arguments each of several declarations takes."""
    numbers = sorted({len(p) for p in parameters})
    return " or ".join([*map(str, numbers[:-1]), count(numbers[-1], noun)]) if numbers else f"no {noun}s"
