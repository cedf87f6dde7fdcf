"""Declarations: every name bound, every type worked out, tables and blocks checked (chapters 7 to 15)."""

from __future__ import annotations

from . import ast
from .check_statement import StatementChecker
from .diagnostics import Diagnostics, choices
from .scope import Callee, Scope, Symbol
from .types import (
    ANY,
    BOOL,
    ERROR,
    VOID,
    Applicable,
    Bits,
    Composite,
    Enum,
    Extern,
    Field,
    NewType,
    Type,
    VarBits,
    Variable,
    strip,
    substitute,
    width,
)

TABLE_PROPERTIES = (
    "key",
    "actions",
    "default_action",
    "entries",
    "size",
    "implementation",
    "counters",
    "meters",
    "support_timeout",
    "largest_priority_wins",
    "priority_delta",
)


def check(program: ast.Program, diagnostics: Diagnostics) -> Checker:
    """Annotate the whole tree; complaints go to `diagnostics`."""
    checker = Checker(diagnostics)
    for declaration in program.declarations:
        checker.top_level(declaration)
    if "main" not in checker.scope.names and not diagnostics.errors:
        note = "end the program with: V1Switch(…) main;"
        diagnostics.error("names", "the program has no package instance named main", program.span, note)
    return checker


def always_returns(s: ast.Statement | None) -> bool:
    """Whether control never runs past the end of `s`."""
    match s:
        case ast.Return() | ast.Exit():
            return True
        case ast.Block():
            return any(always_returns(inner) for inner in s.statements)
        case ast.If():
            return always_returns(s.then) and always_returns(s.otherwise)
        case ast.Switch():
            bodies = [case.body for case in s.cases if case.body is not None]
            total = any(isinstance(label, ast.Default) for case in s.cases for label in case.labels)
            return total and all(always_returns(body) for body in bodies)
    return False


def _tagged(d: ast.Table, action: str, annotation: str) -> bool:
    return any(a.name == annotation for ref in d.actions if ref.name == action for a in ref.annotations)


class Checker(StatementChecker):
    def top_level(self, d: ast.Declaration) -> None:
        getattr(self, "_declare_" + type(d).__name__.lower())(d)

    # --- types -----------------------------------------------------------------------------------------------------

    def _declare_typedef(self, d: ast.Typedef) -> None:
        base = self.type_of(d.type)
        t = NewType(d.name, base, d.annotations) if d.fresh else base
        self.declare(Symbol("type", d.name, d, t), d.span)

    def _declare_composite(self, d: ast.Composite) -> None:
        if d.type_parameters:
            self.type_error(f"{d.kind} {d.name}: type parameters are supported for extern declarations only", d.span)
        made = Composite(d.name, d.kind, {}, d.annotations)
        varbits = 0
        for f in d.fields:
            t = self.type_of(f.type)
            if f.name in made.fields:
                self.name_error(f"{d.kind} {d.name} has two fields named {f.name}", f.span)
            if d.kind == "header" and t != ANY and not self._fits_header(t):
                self.type_error(f"a header cannot have a field of type {t}", f.span)
            if d.kind == "header_union" and t != ANY and not (isinstance(t, Composite) and t.kind == "header"):
                self.type_error(f"a header union has only headers, not {t}", f.span)
            varbits += isinstance(t, VarBits)
            made.fields[f.name] = Field(f.name, t, f.annotations)
        if varbits > 1:
            self.type_error(f"header {d.name} has {varbits} varbit fields: BMv2 allows one", d.span)
        self.declare(Symbol("type", d.name, d, made), d.span)

    def _fits_header(self, t: Type) -> bool:
        plain = strip(t)
        if isinstance(plain, Composite) and plain.kind == "struct":
            return all(self._fits_header(f.type) for f in plain.fields.values())
        return isinstance(plain, Bits | VarBits) or plain == BOOL

    def _declare_enumdecl(self, d: ast.EnumDecl) -> None:
        underlying = None
        if d.underlying is not None:
            t = self.type_of(d.underlying)
            underlying = t if isinstance(t, Bits) else None
            if underlying is None and t != ANY:
                self.type_error(f"an enum's values are bit<> or int<>, not {t}", d.underlying.span)
        made = Enum(d.name, underlying)
        for position, (name, value, span) in enumerate(d.members):
            number: int | None = position
            if underlying is not None:
                if value is None:
                    self.type_error(f"member {name} needs a value, since enum {d.name} has an underlying type", span)
                else:
                    self.value_of(value, underlying, f"member {name}")
                    number = value.value if isinstance(value.value, int) else None
                    if number is None and value.type != ANY:
                        self.type_error(f"the value of member {name} is not known at compile time", value.span)
            elif value is not None:
                self.type_error(f"member {name} has a value, but enum {d.name} has no underlying type", span)
            if name in made.values:
                self.name_error(f"enum {d.name} has two members named {name}", span)
            made.values[name] = number or 0
        self.declare(Symbol("type", d.name, d, made), d.span)

    def _declare_errordecl(self, d: ast.ErrorDecl) -> None:
        for name, span in d.members:
            if name in self.errors:
                self.name_error(f"error.{name} is declared twice", span)
            self.errors.setdefault(name, len(self.errors))

    def _declare_matchkinddecl(self, d: ast.MatchKindDecl) -> None:
        for name, span in d.members:
            if name in self.match_kinds:
                self.name_error(f"the match kind {name} is declared twice", span)
            self.match_kinds.append(name)

    # --- callables -------------------------------------------------------------------------------------------------

    def _declare_externdecl(self, d: ast.ExternDecl) -> None:
        self.declare(Symbol("type", d.name, d, Extern(d, d.name)), d.span)

    def _declare_prototype(self, d: ast.Prototype) -> None:
        symbol = Symbol("function", d.name, d)
        symbol.parameters = self.parameter_infos(d.parameters, d.type_parameters)
        assert d.returns is not None
        returns = d.returns
        generic = isinstance(returns, ast.NamedType) and returns.name in d.type_parameters
        symbol.type = (
            Variable(returns.name) if generic and isinstance(returns, ast.NamedType) else self.type_of(returns)
        )
        self.declare(symbol, d.span)

    def _declare_function(self, d: ast.Function) -> None:
        if d.type_parameters:
            self.type_error(f"function {d.name}: type parameters are supported for extern functions only", d.span)
            return
        symbol = Symbol("function", d.name, d, self.type_of(d.returns))
        self._body(symbol, d.parameters, d.body, symbol.type, actions=False)
        if symbol.type != VOID and not always_returns(d.body):
            self.type_error(f"function {d.name} does not return a value on every path", d.span)
        self.declare(symbol, d.span)

    def _declare_action(self, d: ast.Action) -> None:
        symbol = Symbol("action", d.name, d)
        self._body(symbol, d.parameters, d.body, VOID, actions=True)
        seen_data = False
        for info in symbol.parameters:
            if info.direction and seen_data:
                message = f"parameter {info.name} of action {d.name} has a direction: those come before action data"
                self.type_error(message, info.declaration.span)
            seen_data = seen_data or not info.direction
            plain = strip(info.type)
            if (
                not info.direction
                and info.type != ANY
                and not (isinstance(plain, Bits | Enum) or plain in (BOOL, ERROR))
            ):
                self.type_error(f"action data cannot be of type {info.type}", info.declaration.span)
        self.declare(symbol, d.span)

    def _body(
        self, symbol: Symbol, parameters: list[ast.Parameter], body: ast.Block, returns: Type, actions: bool
    ) -> None:
        symbol.parameters = self.parameter_infos(parameters)
        self.scope = Scope(self.scope)
        for info in symbol.parameters:
            self.declare(info.symbol, info.declaration.span)
        outer = self.returns, self.action_calls_allowed, self.apply_allowed
        self.returns, self.action_calls_allowed, self.apply_allowed = returns, actions, False
        self.statement(body)
        self.returns, self.action_calls_allowed, self.apply_allowed = outer
        assert self.scope.parent is not None
        self.scope = self.scope.parent

    # --- instances -------------------------------------------------------------------------------------------------

    def _declare_constant(self, d: ast.Constant) -> None:
        self.constant(d)

    def _declare_variable(self, d: ast.Variable) -> None:
        self.type_error(f"{d.name}: variables stand in controls, parsers, actions and functions", d.span)

    def _declare_instance(self, d: ast.Instance) -> None:
        t = self.type_of(d.type)
        symbol = Symbol("instance", d.name, d, t)
        if isinstance(t, Extern | Applicable):
            call = ast.Call(d.span, ast.Name(d.span, d.name), [], d.arguments)
            callee = Callee("constructor", t.name, symbol, returns=t)
            bound = self.bind_constructor(call, callee, t)
            if isinstance(t, Extern) and not t.arguments and t.declaration.type_parameters:
                made = tuple(bound.get(n, ANY) for n in t.declaration.type_parameters)
                if ANY in made:
                    self.type_error(f"{t.name} needs type arguments: {t.name}<…>(…)", d.span)
                symbol.type = Extern(t.declaration, t.name, made)
            symbol.value = callee
            if isinstance(t, Applicable) and t.kind == "package":
                self._package(d, callee, bound)
        elif t != ANY:
            self.type_error(f"{t} has no instances: leave out the arguments to declare a variable", d.span)
        self.declare(symbol, d.span)

    def _package(self, d: ast.Instance, callee: Callee, bound: dict[str, Type]) -> None:
        for info, argument in zip(callee.parameters, callee.arguments, strict=True):
            if argument is None or not isinstance(argument.type, Applicable):
                if argument is not None and argument.type != ANY:
                    self.type_error(f"{info.name} must be an instance such as {info.type}()", argument.span)
                continue
            wanted = substitute(info.type, bound)
            if isinstance(wanted, Applicable):
                problem = self.block_fits(wanted, argument.type, bound)
                if problem:
                    self.type_error(problem, argument.span)

    # --- controls and parsers --------------------------------------------------------------------------------------

    def coerce(self, e: ast.Expression, to: Type, what: str = "") -> bool:
        # Blocks are compared by block_fits, which can say what is wrong.
        if isinstance(to, Applicable) and isinstance(e.type, Applicable):
            return True
        return super().coerce(e, to, what)

    def _declare_package(self, d: ast.Package) -> None:
        self.declare(Symbol("package", d.name, d, Applicable("package", d.name, d)), d.span)

    def _declare_control(self, d: ast.Control) -> None:
        symbol = Symbol("control", d.name, d, Applicable("control", d.name, d))
        if d.body is not None:
            if d.type_parameters:
                self.type_error(f"control {d.name}: type parameters are supported for declarations only", d.span)
                return
            self._open(d, symbol)
            for local in d.locals:
                self._local(local)
            self.apply_allowed = True
            self.statement(d.body)
            self.apply_allowed = False
            self._close()
        self.declare(symbol, d.span)

    def _declare_parser(self, d: ast.Parser) -> None:
        symbol = Symbol("parser", d.name, d, Applicable("parser", d.name, d))
        if d.states is not None:
            if d.type_parameters:
                self.type_error(f"parser {d.name}: type parameters are supported for declarations only", d.span)
                return
            self._open(d, symbol)
            self.in_parser, self.action_calls_allowed = True, False
            for local in d.locals:
                self._local(local)
            self.apply_allowed = True
            self.states(d)
            self.apply_allowed = False
            self.in_parser, self.action_calls_allowed = False, True
            self._close()
        self.declare(symbol, d.span)

    def _open(self, d: ast.Control | ast.Parser, symbol: Symbol) -> None:
        self.scope = Scope(self.scope)
        symbol.scope = self.scope
        self.blocks[id(d)] = symbol
        symbol.parameters = self.parameter_infos(d.parameters)
        constructor = self.parameter_infos(d.constructor, blocks=True)
        symbol.overloads = [i.symbol for i in constructor]
        for info in [*symbol.parameters, *constructor]:
            self.declare(info.symbol, info.declaration.span)

    def _close(self) -> None:
        assert self.scope.parent is not None
        self.scope = self.scope.parent

    def _local(self, d: ast.Declaration) -> None:
        if isinstance(d, ast.Table):
            self._table(d)
        elif isinstance(d, ast.Variable):
            self.variable(d)
        elif isinstance(d, ast.ValueSet):
            t = self.type_of(d.type)
            size = self.constant_number(d.size, "the size of a value set", 1)
            if width(t) is None and t != ANY:
                self.type_error(f"a value set cannot hold {t}", d.span)
            self.declare(Symbol("value_set", d.name, d, t, size), d.span)
        else:
            self.top_level(d)

    # --- tables ----------------------------------------------------------------------------------------------------

    def _table(self, d: ast.Table) -> None:
        symbol = Symbol("table", d.name, d, Applicable("table", d.name, d))
        for key in d.keys:
            self._key(d, key)
        names: set[str] = set()
        for ref in d.actions:
            self._action_ref(ref, complete=False)
            if ref.name in names:
                self.name_error(f"table {d.name} lists action {ref.name} twice", ref.span)
            names.add(ref.name)
        if d.default is not None:
            if d.default.name not in names and d.default.name != "NoAction":
                note = choices(d.default.name, names, "actions of the table")
                message = f"the default action {d.default.name} is not among the actions of table {d.name}"
                self.type_error(message, d.default.span, note)
            self._action_ref(d.default, complete=True)
            self._same_bound(d, d.default)
            if any(a.name == "tableonly" for ref in d.actions if ref.name == d.default.name for a in ref.annotations):
                self.type_error(
                    f"action {d.default.name} is marked @tableonly and cannot be the default", d.default.span
                )
        for entry in d.entries or []:
            self._entry(d, entry, names)
        for p in d.properties.values():
            self._property(d, p)
        self.declare(symbol, d.span)

    def _key(self, d: ast.Table, key: ast.KeyElement) -> None:
        t = self.expression(key.expression)
        if key.match_kind not in self.match_kinds:
            note = choices(key.match_kind, self.match_kinds, "match kinds")
            self.name_error(f"there is no match kind {key.match_kind}", key.span, note)
        plain = strip(t)
        if t != ANY and not (isinstance(plain, Bits | Enum) or plain in (BOOL, ERROR)):
            self.type_error(f"a key of table {d.name} cannot be of type {t}", key.span)

    def _action_ref(self, ref: ast.ActionRef, complete: bool) -> None:
        """An action with its arguments: those for directed parameters in a list, all where it is `complete`."""
        symbol = self.find(ref.name, ref.span, ("action",), "action")
        if symbol is None:
            return
        ref.target = symbol
        ref.bound = [None] * len(symbol.parameters)
        if not ref.arguments:
            wanted = ", ".join(p.name for p in symbol.parameters if not p.direction)
            if complete and wanted:
                self.type_error(f"action {ref.name} needs arguments here: {wanted}", ref.span)
            return
        call = ast.Call(ref.span, ast.Name(ref.span, ref.name), [], ref.arguments)
        callee = Callee("action", symbol.name, symbol, parameters=symbol.parameters, returns=VOID)
        self.action_arguments_needed = complete
        self._bind(call, callee)
        self.action_arguments_needed = True
        ref.bound = callee.arguments

    def _same_bound(self, d: ast.Table, ref: ast.ActionRef) -> None:
        """Arguments for directed parameters are bound in the action list; elsewhere they can only be repeated."""
        listed = next((a for a in d.actions if a.name == ref.name), None)
        if listed is None or ref.target is None:
            return
        for info, here, there in zip(ref.target.parameters, ref.bound, listed.bound, strict=False):
            if info.direction and here is not None and not (there is not None and ast.alike(here, there)):
                message = f"parameter {info.name} of {ref.name} is bound to something else in the table's action list"
                self.type_error(message, here.span)

    def _entry(self, d: ast.Table, entry: ast.Entry, names: set[str]) -> None:
        if len(entry.keys) != len(d.keys):
            self.type_error(f"table {d.name} has {len(d.keys)} keys, this entry {len(entry.keys)}", entry.span)
            return
        for element, key in zip(entry.keys, d.keys, strict=True):
            kind = key.match_kind
            wanted = key.expression.type
            self.key_set_element(element, wanted if isinstance(wanted, Type) else ANY)
            op = element.op if isinstance(element, ast.Binary) else ""
            if op == "&&&" and kind not in ("ternary", "lpm"):
                self.type_error(f"a mask cannot be used for a key of match kind {kind}", element.span)
            if op == ".." and kind != "range":
                self.type_error(f"a range cannot be used for a key of match kind {kind}", element.span)
            if isinstance(element, ast.Default) and kind == "exact":
                self.type_error("a wildcard cannot be used for a key of match kind exact", element.span)
        if entry.action.name not in names:
            note = choices(entry.action.name, names, "actions of the table")
            self.type_error(f"{entry.action.name} is not an action of table {d.name}", entry.action.span, note)
            return
        self._action_ref(entry.action, complete=True)
        self._same_bound(d, entry.action)
        if _tagged(d, entry.action.name, "defaultonly"):
            self.type_error(f"{entry.action.name} is marked @defaultonly: it has no entries", entry.action.span)
        if entry.priority is not None:
            self.constant_number(entry.priority, "an entry's priority", 0)

    def _property(self, d: ast.Table, p: ast.Property) -> None:
        if p.name not in TABLE_PROPERTIES:
            note = choices(p.name, TABLE_PROPERTIES, "properties")
            self.diagnostics.error("target", f"BMv2 tables have no property {p.name}", p.span, note)
            return
        t = self.expression(p.value)
        if t == ANY:
            return
        wanted: tuple[str, ...] = {
            "implementation": ("action_profile", "action_selector"),
            "counters": ("direct_counter",),
            "meters": ("direct_meter",),
        }.get(p.name, ())
        if wanted and not (isinstance(t, Extern) and t.name in wanted):
            self.type_error(f"{p.name} of table {d.name} must be a {' or '.join(wanted)}, not {t}", p.span)
        if p.name == "size" and (isinstance(p.value.value, bool) or not isinstance(p.value.value, int)):
            self.type_error(f"the size of table {d.name} must be a number known at compile time", p.span)
        if p.name in ("support_timeout", "largest_priority_wins") and not isinstance(p.value.value, bool):
            self.type_error(f"{p.name} must be true or false", p.span)
        if p.name == "priority_delta":
            self.constant_number(p.value, "priority_delta", 1)
