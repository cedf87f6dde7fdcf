"""Calls: what is called, whether the arguments fit, what comes back (specification, section 8.20 and chapter 14)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import ast
from .check_expression import HEADER_METHODS, SIZE_METHODS, STACK_METHODS, ExpressionChecker
from .diagnostics import choices, count
from .scope import Callee, ParameterInfo, Symbol
from .types import (
    ANY,
    APPLY_RESULT,
    BOOL,
    INT,
    VOID,
    Applicable,
    Bits,
    Composite,
    Extern,
    Meta,
    Stack,
    Tuple,
    Type,
    Variable,
    same,
    substitute,
    width,
)


def _arguments(parameters: Iterable[Sequence[object]], noun: str = "argument") -> str:
    """How many arguments each of several declarations takes."""
    numbers = sorted({len(p) for p in parameters})
    return " or ".join([*map(str, numbers[:-1]), count(numbers[-1], noun)]) if numbers else f"no {noun}s"


class CallChecker(ExpressionChecker):
    action_calls_allowed = True
    apply_allowed = False  # only in the body of a control or a parser

    def _call(self, e: ast.Call) -> Type:
        callee = self._callee(e)
        if callee is None:
            for argument in e.arguments:
                self.expression(argument.expression)
            return ANY
        e.target = callee
        if callee.kind == "size":
            e.value = self._size(e, callee)
            return INT
        if callee.name == "static_assert":
            self._static_assert(e, callee)
        return callee.returns

    def _static_assert(self, e: ast.Call, callee: Callee) -> None:
        condition = callee.arguments[0] if callee.arguments else None
        if condition is None or condition.type == ANY:
            return
        e.value = condition.value
        if e.value is None:
            self.type_error("static_assert needs a condition known at compile time", condition.span)
        elif e.value is False:
            message = callee.arguments[1].value if len(callee.arguments) > 1 and callee.arguments[1] else None
            self.type_error(str(message or "static assertion failed"), e.span)

    # --- what is called --------------------------------------------------------------------------------------------

    def _callee(self, e: ast.Call) -> Callee | None:
        target = e.callee
        if isinstance(target, ast.Name):
            return self._named(e, target)
        if isinstance(target, ast.TypeExpression):
            self.type_error(f"{self.type_of(target.ref)} cannot be called", e.span)
            return None
        if not isinstance(target, ast.Member):
            self.type_error("this cannot be called", e.span)
            return None
        base = self.expression(target.base)
        if base == ANY:
            return None
        if isinstance(base, Meta) and isinstance(base.type, Applicable):
            base = base.type
        return self._method(e, target, base)

    def _named(self, e: ast.Call, target: ast.Name) -> Callee | None:
        symbol = self.scope.lookup(target.name)
        if symbol is None:
            note = self.names_like(target.name, ("action", "function"), "actions and functions in scope")
            self.name_error(f"there is no action or function named {target.name}", e.span, note)
            return None
        target.target = symbol
        target.type = ANY
        if symbol.kind == "action":
            if not self.action_calls_allowed:
                self.type_error("actions cannot be called from parsers or functions", e.span)
            callee = Callee("action", symbol.name, symbol, parameters=symbol.parameters, returns=VOID)
            self._bind(e, callee)
            return callee
        if symbol.kind == "function":
            return self._overloaded(e, symbol)
        if symbol.kind in ("control", "parser", "package") or isinstance(symbol.type, Extern):
            return self._constructor(e, symbol)
        if symbol.kind == "table":
            self.type_error(f"a table is applied, not called: {symbol.name}.apply()", e.span)
            return None
        self.type_error(f"{symbol.name} is a {symbol.kind} and cannot be called", e.span)
        return None

    def _overloaded(self, e: ast.Call, symbol: Symbol) -> Callee | None:
        candidates = [symbol, *symbol.overloads]
        fitting = [c for c in candidates if self._accepts(c.parameters, len(e.arguments))]
        if not fitting:
            wanted = _arguments(c.parameters for c in candidates)
            self.type_error(f"{symbol.name} takes {wanted}, not {len(e.arguments)}", e.span)
            return None
        found = fitting[0]
        declaration = found.declaration
        assert isinstance(declaration, ast.Prototype | ast.Function)
        kind = "extern_function" if isinstance(declaration, ast.Prototype) else "function"
        callee = Callee(kind, symbol.name, found, parameters=found.parameters)
        bound = self._bind(e, callee, declaration.type_parameters)
        callee.returns = substitute(found.type, bound)
        callee.type_arguments = [bound.get(p, ANY) for p in declaration.type_parameters]
        return callee

    @staticmethod
    def _accepts(parameters: list[ParameterInfo], count: int) -> bool:
        required = sum(1 for p in parameters if p.declaration.default is None)
        return required <= count <= len(parameters)

    def _constructor(self, e: ast.Call, symbol: Symbol) -> Callee | None:
        found = symbol.type
        assert isinstance(found, Extern | Applicable)
        arguments = tuple(self.type_of(a) for a in e.type_arguments)
        made: Extern | Applicable
        if isinstance(found, Extern):
            made = Extern(found.declaration, found.name, arguments)
        else:
            made = Applicable(found.kind, found.name, found.declaration, arguments)
        callee = Callee("constructor", symbol.name, symbol, returns=made)
        self.bind_constructor(e, callee, made)
        return callee

    def bind_constructor(self, e: ast.Call, callee: Callee, made: Type) -> dict[str, Type]:
        """Check constructor arguments; returns the type arguments that were worked out."""
        if isinstance(made, Extern):
            constructors = [m for m in made.declaration.methods if m.returns is None]
            found = next((c for c in constructors if len(c.parameters) == len(e.arguments)), None)
            if found is None:
                wanted = _arguments((c.parameters for c in constructors), "constructor argument")
                self.type_error(f"{made.name} takes {wanted}, not {len(e.arguments)}", e.span)
                return {}
            names = made.declaration.type_parameters
            callee.parameters = self.parameter_infos(found.parameters, names)
            return self._bind(e, callee, names, dict(zip(names, made.arguments, strict=False)))
        assert isinstance(made, Applicable)
        declaration = made.declaration
        if isinstance(declaration, ast.Package):
            callee.parameters = self.parameter_infos(declaration.parameters, declaration.type_parameters, blocks=True)
            names = declaration.type_parameters
            return self._bind(e, callee, names, dict(zip(names, made.arguments, strict=False)))
        assert isinstance(declaration, ast.Control | ast.Parser)
        callee.parameters = self.parameter_infos(declaration.constructor, blocks=True)
        self._bind(e, callee)
        return {}

    def parameter_infos(
        self, parameters: list[ast.Parameter], generics: list[str] | None = None, blocks: bool = False
    ) -> list[ParameterInfo]:
        """Parameters with their types; `generics` are names that stand for types yet unknown.

        Only where `blocks`, in packages and constructors, can parameters be parsers and controls.
        """
        outer = self.scope
        if generics:
            self.scope = type(outer)(outer)
            for name in generics:
                self.scope.names[name] = Symbol("type", name, None, Variable(name))
        infos = []
        for p in parameters:
            t = self.type_of(p.type)
            if isinstance(t, Applicable) and not blocks:
                t = self.type_error(f"parameter {p.name} cannot be of type {t}", p.span)
            symbol = Symbol("parameter", p.name, p, t, direction=p.direction, span=p.span)
            infos.append(ParameterInfo(p.name, p.direction, t, p, symbol))
        self.scope = outer
        return infos

    def _method(self, e: ast.Call, target: ast.Member, base: Type) -> Callee | None:
        name = target.name
        if name in SIZE_METHODS:
            return Callee("size", name, base=target.base, returns=INT)
        if isinstance(base, Composite) and base.kind in ("header", "header_union"):
            valid: Sequence[str] = HEADER_METHODS if base.kind == "header" else ("isValid",)
            if name in valid:
                if name != "isValid":
                    self.need_left_value(target.base, f"the header of {name}()")
                return Callee("header", name, base=target.base, returns=BOOL if name == "isValid" else VOID)
            self.type_error(f"{base} has no method {name}", e.span, choices(name, valid, "methods"))
            return None
        if isinstance(base, Stack):
            if name not in STACK_METHODS:
                self.type_error(f"a header stack has no method {name}", e.span, choices(name, STACK_METHODS, "methods"))
                return None
            self.need_left_value(target.base, f"the stack of {name}()")
            if len(e.arguments) != 1:
                self.type_error(f"{name} takes 1 argument, not {len(e.arguments)}", e.span)
                return None
            count = self.constant_number(e.arguments[0].expression, f"the argument of {name}")
            return None if count is None else Callee("stack", name, base=target.base, returns=VOID)
        if isinstance(base, Extern):
            return self._extern_method(e, target, base)
        if isinstance(base, Applicable) and name == "apply":
            return self._apply(e, target, base)
        valid = ["apply"] if isinstance(base, Applicable) else []
        self.type_error(f"{base} has no method {name}", e.span, choices(name, valid, "methods"))
        return None

    def _extern_method(self, e: ast.Call, target: ast.Member, base: Extern) -> Callee | None:
        methods = [m for m in base.declaration.methods if m.returns is not None]
        named = [m for m in methods if m.name == target.name]
        if not named:
            note = choices(target.name, [m.name for m in methods], "methods")
            self.type_error(f"{base.name} has no method {target.name}", e.span, note)
            return None
        found = next((m for m in named if len(m.parameters) == len(e.arguments)), None)
        if found is None:
            wanted = _arguments(m.parameters for m in named)
            self.type_error(f"{base.name}.{target.name} takes {wanted}, not {len(e.arguments)}", e.span)
            return None
        generics = [*base.declaration.type_parameters, *found.type_parameters]
        callee = Callee("extern_method", f"{base.name}.{target.name}", base=target.base)
        callee.parameters = self.parameter_infos(found.parameters, generics)
        known = dict(zip(base.declaration.type_parameters, base.arguments, strict=False))
        given = [self.type_of(a) for a in e.type_arguments]
        known.update(zip(found.type_parameters, given, strict=False))
        bound = self._bind(e, callee, generics, known)
        callee.type_arguments = [bound.get(p, ANY) for p in found.type_parameters]
        assert found.returns is not None
        returns = found.returns
        if isinstance(returns, ast.NamedType) and returns.name in generics:
            if returns.name not in bound:
                self.type_error(f"{target.name} needs a type argument: {target.name}<…>()", e.span)
            callee.returns = bound.get(returns.name, ANY)
        else:
            callee.returns = self.type_of(returns)
        return callee

    def _apply(self, e: ast.Call, target: ast.Member, base: Applicable) -> Callee | None:
        declaration = base.declaration
        if not self.apply_allowed:
            self.type_error(f"{base} can be applied in an apply block only, not in an action or a table", e.span)
        elif self.in_parser != (base.kind == "parser"):
            self.type_error(f"{base} cannot be applied in a {'parser' if self.in_parser else 'control'}", e.span)
        if base.kind == "table":
            callee = Callee("table", base.name, base=target.base, returns=APPLY_RESULT)
            if e.arguments:
                self.type_error("a table's apply() takes no arguments", e.span)
            return callee
        if isinstance(declaration, ast.Control | ast.Parser):
            callee = Callee(base.kind, base.name, base=target.base, returns=VOID)
            callee.symbol = self.blocks.get(id(declaration))
            callee.parameters = self.parameter_infos(declaration.parameters)
            self._bind(e, callee)
            return callee
        self.type_error(f"{base} cannot be applied", e.span)
        return None

    def _size(self, e: ast.Call, callee: Callee) -> int | None:
        assert callee.base is not None
        t = callee.base.type.type if isinstance(callee.base.type, Meta) else callee.base.type
        bits = width(t)
        if bits is None:
            self.type_error(f"the size of {t} is not fixed", e.span)
            return None
        return (bits + 7) // 8 if callee.name.endswith("Bytes") else bits

    # --- arguments -------------------------------------------------------------------------------------------------

    def _bind(
        self, e: ast.Call, callee: Callee, generics: list[str] | None = None, known: dict[str, Type] | None = None
    ) -> dict[str, Type]:
        """Match arguments with parameters, work out type arguments and convert; fills `callee.arguments`."""
        bound = dict(known or {})
        if e.type_arguments and generics and not bound:
            given = [self.type_of(a) for a in e.type_arguments]
            if len(given) != len(generics):
                self.type_error(
                    f"{callee.name} takes {count(len(generics), 'type argument')}, not {len(given)}", e.span
                )
            bound.update((n, t) for n, t in zip(generics, given, strict=False) if t != ANY)
        ordered = self._order(e, callee)
        for info, argument in zip(callee.parameters, ordered, strict=True):
            if argument is None:
                continue
            if isinstance(argument, ast.Default):
                argument.type = substitute(info.type, bound)
                if info.direction != "out":
                    self.type_error("_ can stand only for an out parameter", argument.span)
                continue
            t = self.expression(argument)
            self._unify(info.type, t, bound)
            to = substitute(info.type, bound)
            self.coerce(argument, to, f"parameter {info.name} of {callee.name}")
            if info.direction in ("out", "inout"):
                self.need_left_value(argument, f"the argument for {info.direction} parameter {info.name}")
        callee.arguments = ordered
        return bound

    def _order(self, e: ast.Call, callee: Callee) -> list[ast.Expression | None]:
        names = [p.name for p in callee.parameters]
        slots: list[ast.Expression | None] = [None] * len(names)
        for position, argument in enumerate(e.arguments):
            if argument.name is not None:
                if argument.name not in names:
                    note = choices(argument.name, names, "parameters")
                    self.type_error(f"{callee.name} has no parameter {argument.name}", argument.span, note)
                    continue
                position = names.index(argument.name)
            if position >= len(slots):
                self.type_error(f"{callee.name} takes {count(len(names), 'argument')}, not {len(e.arguments)}", e.span)
                break
            if slots[position] is not None:
                self.type_error(f"parameter {names[position]} is given twice", argument.span)
            slots[position] = argument.expression
        for index, info in enumerate(callee.parameters):
            if slots[index] is None and info.declaration.default is not None:
                slots[index] = info.declaration.default
            elif slots[index] is None and (self.action_arguments_needed or info.direction or callee.kind != "action"):
                self.type_error(f"{callee.name} needs an argument for parameter {info.name}", e.span)
        return slots

    action_arguments_needed = True  # not in a table's action list, where the control plane gives action data

    def _unify(self, wanted: Type, given: Type, bound: dict[str, Type]) -> None:
        """Bind the type parameters in `wanted` so that it becomes `given`."""
        if isinstance(wanted, Variable):
            known = bound.get(wanted.name)
            if known is None or (known == INT and isinstance(given, Bits)):
                bound[wanted.name] = given
        elif isinstance(wanted, Tuple) and isinstance(given, Tuple):
            for w, g in zip(wanted.items, given.items, strict=False):
                self._unify(w, g, bound)
        elif isinstance(wanted, Applicable) and isinstance(given, Applicable):
            self._unify_block(wanted, given, bound)

    def _unify_block(self, wanted: Applicable, given: Applicable, bound: dict[str, Type]) -> None:
        """`Parser<H, M>` against a parser: its parameters' types give H and M."""
        pattern, actual = wanted.declaration, given.declaration
        if not isinstance(pattern, ast.Control | ast.Parser) or not isinstance(actual, ast.Control | ast.Parser):
            return
        infos = self.parameter_infos(pattern.parameters, pattern.type_parameters)
        found = self.parameter_infos(actual.parameters)
        local: dict[str, Type] = {}
        for name, argument in zip(pattern.type_parameters, wanted.arguments, strict=False):
            if isinstance(argument, Variable) and argument.name in bound:
                local[name] = bound[argument.name]
        for w, g in zip(infos, found, strict=False):
            self._unify(w.type, g.type, local)
        for name, argument in zip(pattern.type_parameters, wanted.arguments, strict=False):
            if isinstance(argument, Variable) and name in local:
                bound.setdefault(argument.name, local[name])

    def block_fits(self, wanted: Applicable, given: Applicable, bound: dict[str, Type]) -> str:
        """Why a parser or control cannot stand where the package wants one; empty if it can."""
        pattern, actual = wanted.declaration, given.declaration
        if wanted.kind != given.kind:
            return f"a {wanted.kind} is needed here, not {given}"
        if not isinstance(pattern, ast.Control | ast.Parser) or not isinstance(actual, ast.Control | ast.Parser):
            return ""  # another architecture than v1model, which lowering refuses
        if len(pattern.parameters) != len(actual.parameters):
            return f"{pattern.name} has {len(pattern.parameters)} parameters, {actual.name} {len(actual.parameters)}"
        local = {
            name: substitute(argument, bound)
            for name, argument in zip(pattern.type_parameters, wanted.arguments, strict=False)
        }
        infos = self.parameter_infos(pattern.parameters, pattern.type_parameters)
        for w, g in zip(infos, self.parameter_infos(actual.parameters), strict=True):
            t = substitute(w.type, local)
            if not same(t, g.type):
                return f"parameter {g.name} of {actual.name} must be of type {t}, not {g.type}"
            if w.direction != g.direction:
                return f"parameter {g.name} of {actual.name} must be {w.direction or 'without direction'}"
        return ""
