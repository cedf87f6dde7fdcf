"""Calls: the callee, and the type of the result (specification, section 8.20)."""

from collections.abc import Sequence

from p4c.frontend.check import types as ty
from p4c.frontend.check.argument import bind, bind_constructor, parameter_infos, wanted_arguments
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.left_value import need_left_value
from p4c.frontend.check.member import HEADER_METHODS, SIZE_METHODS, STACK_METHODS
from p4c.frontend.check.scope import Callee, ParameterInfo, Symbol
from p4c.frontend.check.type_ref import constant_number, type_of
from p4c.frontend.diagnostics import choices
from p4c.frontend.parse import ast


def _call(cx: CheckContext, e: ast.CallExpression) -> ty.Type:
    callee = _callee(cx, e)
    if callee is None:
        for argument in e.arguments:
            cx.expression(argument.expression)
        return ty.ANY
    e.target = callee
    cx.calls += callee.kind in ("action", "control", "parser", "table")
    if callee.kind == "size":
        e.value = _size(cx, e, callee)
        return ty.INT
    if callee.name == "static_assert":
        _static_assert(cx, e, callee)
    return callee.returns


def _static_assert(cx: CheckContext, e: ast.CallExpression, callee: Callee) -> None:
    condition = callee.arguments[0] if callee.arguments else None
    if condition is None or condition.type == ty.ANY:
        return
    e.value = condition.value
    if e.value is None:
        cx.type_error("static_assert needs a condition known at compile time", condition.span)
    elif e.value is False:
        message = callee.arguments[1].value if len(callee.arguments) > 1 and callee.arguments[1] else None
        cx.type_error(str(message or "static assertion failed"), e.span)


def _callee(cx: CheckContext, e: ast.CallExpression) -> Callee | None:
    target = e.callee
    if isinstance(target, ast.Name):
        return _named(cx, e, target)
    if isinstance(target, ast.TypeExpression):
        cx.type_error(f"{type_of(cx, target.ref)} cannot be called", e.span)
        return None
    if not isinstance(target, ast.MemberExpression):
        cx.type_error("this cannot be called", e.span)
        return None
    base = cx.expression(target.base)
    if base == ty.ANY:
        return None
    if isinstance(base, ty.Meta) and isinstance(base.type, ty.ApplicableType):
        base = base.type
    return _method(cx, e, target, base)


def _named(cx: CheckContext, e: ast.CallExpression, target: ast.Name) -> Callee | None:
    symbol = cx.scope.lookup(target.name)
    if symbol is None:
        note = cx.names_like(target.name, ("action", "function"), "actions and functions in scope")
        cx.name_error(f"there is no action or function named {target.name}", e.span, note)
        return None
    target.target = symbol
    target.type = ty.ANY
    if symbol.kind == "action":
        if not cx.action_calls_allowed:
            cx.type_error("actions cannot be called from parsers or functions", e.span)
        symbol.used = True
        callee = Callee("action", symbol.name, symbol, parameters=symbol.parameters, returns=ty.VOID)
        bind(cx, e, callee)
        return callee
    if symbol.kind == "function":
        return _overloaded(cx, e, symbol)
    if symbol.kind in ("control", "parser", "package") or isinstance(symbol.type, ty.Extern):
        return _constructor(cx, e, symbol)
    if symbol.kind == "table":
        cx.type_error(f"a table is applied, not called: {symbol.name}.apply()", e.span)
        return None
    cx.type_error(f"{symbol.name} is a {symbol.kind} and cannot be called", e.span)
    return None


def _overloaded(cx: CheckContext, e: ast.CallExpression, symbol: Symbol) -> Callee | None:
    candidates = [symbol, *symbol.overloads]
    fitting = [c for c in candidates if _accepts(c.parameters, len(e.arguments))]
    if not fitting:
        wanted = wanted_arguments(c.parameters for c in candidates)
        cx.type_error(f"{symbol.name} takes {wanted}, not {len(e.arguments)}", e.span)
        return None
    chosen = fitting[0]
    declaration = chosen.declaration
    assert isinstance(declaration, ast.Prototype | ast.Function)
    kind = "extern_function" if isinstance(declaration, ast.Prototype) else "function"
    _deprecated(cx, e, declaration)
    callee = Callee(kind, symbol.name, chosen, parameters=chosen.parameters)
    bound = bind(cx, e, callee, declaration.type_parameters)
    callee.returns = ty.substitute(chosen.type, bound)
    callee.type_arguments = [bound.get(p, ty.ANY) for p in declaration.type_parameters]
    return callee


def _deprecated(cx: CheckContext, e: ast.CallExpression, declaration: ast.Declaration) -> None:
    tag = declaration.annotation("deprecated")
    if tag is not None and tag.expressions and isinstance(tag.expressions[0], ast.String):
        note = tag.expressions[0].text
        cx.diagnostics.warning("types", f"{declaration.name} is deprecated: {note}", e.span)


def _accepts(parameters: list[ParameterInfo], count: int) -> bool:
    required = sum(1 for p in parameters if p.declaration.default is None)
    return required <= count <= len(parameters)


def _constructor(cx: CheckContext, e: ast.CallExpression, symbol: Symbol) -> Callee | None:
    target_type = symbol.type
    assert isinstance(target_type, ty.Extern | ty.ApplicableType)
    arguments = tuple(type_of(cx, a) for a in e.type_arguments)
    made: ty.Extern | ty.ApplicableType
    if isinstance(target_type, ty.Extern):
        made = ty.Extern(target_type.declaration, target_type.name, arguments)
    else:
        made = ty.ApplicableType(target_type.kind, target_type.name, target_type.declaration, arguments)
    callee = Callee("constructor", symbol.name, symbol, returns=made)
    bind_constructor(cx, e, callee, made)
    return callee


def _method(cx: CheckContext, e: ast.CallExpression, target: ast.MemberExpression, base: ty.Type) -> Callee | None:
    name = target.name
    if name in SIZE_METHODS:
        return Callee("size", name, base=target.base, returns=ty.INT)
    if isinstance(base, ty.CompositeType) and base.kind in ("header", "header_union"):
        valid: Sequence[str] = HEADER_METHODS if base.kind == "header" else ("isValid",)
        if name in valid:
            if name != "isValid":
                need_left_value(cx, target.base, f"the header of {name}()")
            return Callee("header", name, base=target.base, returns=ty.BOOL if name == "isValid" else ty.VOID)
        cx.type_error(f"{base} has no method {name}", e.span, choices(name, valid, "methods"))
        return None
    if isinstance(base, ty.StackType):
        if name not in STACK_METHODS:
            cx.type_error(f"a header stack has no method {name}", e.span, choices(name, STACK_METHODS, "methods"))
            return None
        need_left_value(cx, target.base, f"the stack of {name}()")
        if len(e.arguments) != 1:
            cx.type_error(f"{name} takes 1 argument, not {len(e.arguments)}", e.span)
            return None
        count = constant_number(cx, e.arguments[0].expression, f"the argument of {name}")
        return None if count is None else Callee("stack", name, base=target.base, returns=ty.VOID)
    if isinstance(base, ty.Extern):
        return _extern_method(cx, e, target, base)
    if isinstance(base, ty.ApplicableType) and name == "apply":
        return _apply(cx, e, target, base)
    valid = ["apply"] if isinstance(base, ty.ApplicableType) else []
    cx.type_error(f"{base} has no method {name}", e.span, choices(name, valid, "methods"))
    return None


def _extern_method(
    cx: CheckContext, e: ast.CallExpression, target: ast.MemberExpression, base: ty.Extern
) -> Callee | None:
    methods = [m for m in base.declaration.methods if m.returns is not None]
    named = [m for m in methods if m.name == target.name]
    if not named:
        note = choices(target.name, [m.name for m in methods], "methods")
        cx.type_error(f"{base.name} has no method {target.name}", e.span, note)
        return None
    method = next((m for m in named if len(m.parameters) == len(e.arguments)), None)
    if method is None:
        wanted = wanted_arguments(m.parameters for m in named)
        cx.type_error(f"{base.name}.{target.name} takes {wanted}, not {len(e.arguments)}", e.span)
        return None
    generics = [*base.declaration.type_parameters, *method.type_parameters]
    callee = Callee("extern_method", f"{base.name}.{target.name}", base=target.base)
    callee.parameters = parameter_infos(cx, method.parameters, generics)
    known = dict(zip(base.declaration.type_parameters, base.arguments, strict=False))
    given = [type_of(cx, a) for a in e.type_arguments]
    known.update(zip(method.type_parameters, given, strict=False))
    bound = bind(cx, e, callee, generics, known)
    callee.type_arguments = [bound.get(p, ty.ANY) for p in method.type_parameters]
    assert method.returns is not None
    returns = method.returns
    if isinstance(returns, ast.NamedTypeRef) and returns.name in generics:
        if returns.name not in bound:
            cx.type_error(f"{target.name} needs a type argument: {target.name}<…>()", e.span)
        callee.returns = bound.get(returns.name, ty.ANY)
    else:
        callee.returns = type_of(cx, returns)
    return callee


def _apply(
    cx: CheckContext, e: ast.CallExpression, target: ast.MemberExpression, base: ty.ApplicableType
) -> Callee | None:
    declaration = base.declaration
    if not cx.apply_allowed:
        cx.type_error(f"{base} can be applied in an apply block only, not in an action or a table", e.span)
    elif cx.in_parser != (base.kind == "parser"):
        cx.type_error(f"{base} cannot be applied in a {'parser' if cx.in_parser else 'control'}", e.span)
    if base.kind == "table":
        callee = Callee("table", base.name, base=target.base, returns=ty.APPLY_RESULT)
        cx.declared[id(declaration)].used = True
        if e.arguments:
            cx.type_error("a table's apply() takes no arguments", e.span)
        return callee
    if isinstance(declaration, ast.Applicable):
        symbol = target.base.target if isinstance(target.base, ast.Name) else None
        given = symbol is not None and symbol.kind == "parameter"  # of the constructor: an instance with a body
        if id(declaration) not in cx.blocks and not given:
            cx.type_error(f"{base} has no body and cannot be applied", e.span)
            return None
        callee = Callee(base.kind, base.name, base=target.base, returns=ty.VOID)
        callee.symbol = cx.blocks.get(id(declaration))
        callee.parameters = parameter_infos(cx, declaration.parameters)
        bind(cx, e, callee)
        return callee
    cx.type_error(f"{base} cannot be applied", e.span)
    return None


def _size(cx: CheckContext, e: ast.CallExpression, callee: Callee) -> int | None:
    assert callee.base is not None
    t = callee.base.type.type if isinstance(callee.base.type, ty.Meta) else callee.base.type
    bits = ty.width(t)
    if bits is None:
        cx.type_error(f"the size of {t} is not fixed", e.span)
        return None
    return (bits + 7) // 8 if callee.name.endswith("Bytes") else bits


EXPRESSIONS: Handlers = {ast.CallExpression: _call}
