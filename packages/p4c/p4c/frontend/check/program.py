"""The whole program, declaration after declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from p4c.frontend.check import call, declaration, fold, member, operator, statement
from p4c.frontend.check import types as ty
from p4c.frontend.check.argument import bind, parameter_infos
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.conversion import converted
from p4c.frontend.check.scope import Callee, Symbol
from p4c.frontend.check.statement import declare_variable
from p4c.frontend.check.type_ref import SIZE_MAX, constant_number, type_of
from p4c.frontend.diagnostics import Diagnostics, SourceSpan, article, brief, choices
from p4c.frontend.parse import ast


# Tables: keys, actions, entries and properties (specification, section 14.2).
def alike(a: ast.Expression, b: ast.Expression) -> bool:
    """Whether the two, which are checked, were written the same."""
    if type(a) is not type(b):
        return False
    match a, b:
        case (ast.Name(), ast.Name()):
            return a.name == b.name
        case (ast.CastExpression(), ast.CastExpression()):
            return a.type == b.type and alike(a.operand, b.operand)
        case (
            ast.MemberExpression()
            | ast.IndexExpression()
            | ast.SliceExpression()
            | ast.UnaryExpression()
            | ast.BinaryExpression(),
            _,
        ):
            pairs = [(getattr(a, part.name), getattr(b, part.name)) for part in fields(a) if part.init]
            return all(
                alike(x, y) if isinstance(x, ast.Expression) else x == y for x, y in pairs if type(x) is not SourceSpan
            )
    return a.value is not None and a.value == b.value and a.type == b.type


_PROPERTIES = """
    key actions default_action entries size implementation counters meters support_timeout
    largest_priority_wins priority_delta
"""
TABLE_PROPERTIES = _PROPERTIES.split()


def check_table(cx: CheckContext, d: ast.TableDecl) -> None:
    symbol = Symbol("table", d.name, d, ty.ApplicableType("table", d.name, d))
    for key in d.keys:
        _key(cx, d, key)
    listed: dict[str, ast.ActionRef] = {}
    for ref in d.actions:
        _action_ref(cx, ref, complete=False)
        if ref.name in listed:
            cx.name_error(f"table {d.name} lists action {ref.name} twice", ref.span)
        listed.setdefault(ref.name, ref)
    if d.default is not None:
        if d.default.name not in listed and d.default.name != "NoAction":
            note = choices(d.default.name, listed, "actions of the table")
            message = f"the default action {d.default.name} is not among the actions of table {d.name}"
            cx.type_error(message, d.default.span, note)
        _action_ref(cx, d.default, complete=True)
        _same_bound(cx, d.default, listed)
        if any(a.name == "tableonly" for ref in d.actions if ref.name == d.default.name for a in ref.annotations):
            cx.type_error(f"action {d.default.name} is marked @tableonly and cannot be the default", d.default.span)
    for entry in d.entries or []:
        _entry(cx, d, entry, listed)
    for p in d.properties.values():
        _property(cx, d, p)
    _priorities(cx, d)
    cx.declare(symbol, d.span)


def _priorities(cx: CheckContext, d: ast.TableDecl) -> None:
    """Which entries may and must have a priority, and that those worked out are none below 0 (as in p4c)."""
    entries = d.entries or []
    first = next((e for e in entries if e.priority is not None), None)
    if first is None or first.priority is None:
        return
    if d.entries_const:
        cx.type_error("const entries have no priority: of those that fit, the first wins", first.priority.span)
    elif all(k.match_kind in ("exact", "lpm") for k in d.keys):
        message = f"entries of table {d.name} have no priority, since its keys are exact or lpm"
        cx.type_error(message, first.priority.span)
    elif entries[0].priority is None:
        message = f"the first entry of table {d.name} must have a priority, since a later one has"
        cx.type_error(message, entries[0].span, f"the later one is on line {first.priority.span.line}")
    else:
        wins, step = (d.properties.get(name) for name in ("largest_priority_wins", "priority_delta"))
        falls = wins is None or wins.value.value is not False
        delta = step.value.value if step is not None else 1
        priority = 0
        for e in entries:
            given = None if e.priority is None else e.priority.value
            priority = given if isinstance(given, int) else priority - delta if falls and isinstance(delta, int) else 0
            if priority < 0:
                note = "give it one, or make priority_delta smaller"
                cx.type_error(f"this entry's priority would be {priority}: it must be at least 0", e.span, note)
                return


def _key(cx: CheckContext, d: ast.TableDecl, key: ast.KeyElement) -> None:
    cx.apply_allowed = True  # a key is computed where the table is applied
    t = cx.expression(key.expression)
    cx.apply_allowed = False
    if key.match_kind not in cx.match_kinds:
        note = choices(key.match_kind, cx.match_kinds, "match kinds")
        cx.name_error(f"there is no match kind {key.match_kind}", key.span, note)
    if t != ty.ANY and not ty.scalar(t):
        cx.type_error(f"a key of table {d.name} cannot be of type {t}", key.span)


def _action_ref(cx: CheckContext, ref: ast.ActionRef, complete: bool) -> None:
    """An action with its arguments: in an action list those for directed parameters, elsewhere (`complete`) all."""
    symbol = cx.find(ref.name, ref.span, ("action",), "action")
    if symbol is None:
        return
    ref.target = symbol
    symbol.used = True
    ref.bound = [None] * len(symbol.parameters)
    if not ref.arguments:
        wanted = ", ".join(p.name for p in symbol.parameters if not p.direction)
        if complete and wanted:
            cx.type_error(f"action {ref.name} needs arguments here: {wanted}", ref.span)
        return
    call = ast.CallExpression(ref.span, ast.Name(ref.span, ref.name), [], ref.arguments)
    callee = Callee("action", symbol.name, symbol, parameters=symbol.parameters, returns=ty.VOID)
    cx.action_arguments_needed = complete
    bind(cx, call, callee)
    cx.action_arguments_needed = True
    ref.bound = callee.arguments


def _same_bound(cx: CheckContext, ref: ast.ActionRef, listed: Mapping[str, ast.ActionRef]) -> None:
    """Arguments for directed parameters are bound in the action list; elsewhere they can only be repeated."""
    declared = listed.get(ref.name)
    if declared is None or ref.target is None:
        return
    for info, here, there in zip(ref.target.parameters, ref.bound, declared.bound, strict=False):
        if info.direction and here is not None and not (there is not None and alike(here, there)):
            message = f"parameter {info.name} of {ref.name} is bound to something else in the table's action list"
            cx.type_error(message, here.span)


def _entry(cx: CheckContext, d: ast.TableDecl, entry: ast.EntryElement, listed: Mapping[str, ast.ActionRef]) -> None:
    if len(entry.keys) != len(d.keys):
        cx.type_error(f"table {d.name} has {len(d.keys)} keys, this entry {len(entry.keys)}", entry.span)
        return
    for element, key in zip(entry.keys, d.keys, strict=True):
        kind = key.match_kind
        wanted = key.expression.type
        key_set_element(cx, element, wanted if isinstance(wanted, ty.Type) else ty.ANY)
        op = element.op if isinstance(element, ast.BinaryExpression) else ""
        if op == "&&&" and kind not in ("ternary", "lpm"):
            cx.type_error(f"a mask cannot be used for a key of match kind {kind}", element.span)
        if op == ".." and kind != "range":
            cx.type_error(f"a range cannot be used for a key of match kind {kind}", element.span)
        if isinstance(element, ast.Default) and kind == "exact":
            cx.type_error("a wildcard cannot be used for a key of match kind exact", element.span)
    if entry.action.name not in listed:
        note = choices(entry.action.name, listed, "actions of the table")
        cx.type_error(f"{entry.action.name} is not an action of table {d.name}", entry.action.span, note)
        return
    _action_ref(cx, entry.action, complete=True)
    _same_bound(cx, entry.action, listed)
    if any(a.name == "defaultonly" for a in listed[entry.action.name].annotations):
        cx.type_error(f"{entry.action.name} is marked @defaultonly: it has no entries", entry.action.span)
    if entry.priority is not None:
        constant_number(cx, entry.priority, "an entry's priority", 0)


def _property(cx: CheckContext, d: ast.TableDecl, p: ast.Property) -> None:
    if p.name not in TABLE_PROPERTIES:
        note = choices(p.name, TABLE_PROPERTIES, "properties")
        cx.diagnostics.warning("lint", f"BMv2 tables have no property {p.name}: it has no effect", p.span, note)
        return
    t = cx.expression(p.value)
    if t == ty.ANY:
        return
    wanted: tuple[str, ...] = {
        "implementation": ("action_profile", "action_selector"),
        "counters": ("direct_counter",),
        "meters": ("direct_meter",),
    }.get(p.name, ())
    if wanted and not (isinstance(t, ty.Extern) and t.name in wanted):
        cx.type_error(f"{p.name} of table {d.name} must be a {' or '.join(wanted)}, not {t}", p.span)
    if p.name == "size":
        constant_number(cx, p.value, f"the size of table {d.name}", 0, SIZE_MAX)
    if p.name in ("support_timeout", "largest_priority_wins") and not isinstance(p.value.value, bool):
        cx.type_error(f"{p.name} must be true or false", p.span)
    if p.name == "priority_delta":
        constant_number(cx, p.value, "priority_delta", 1)


# Expressions without operators: literals, names, lists and structs.
_TEXT_MAX = 40  # of a literal in a message


def _number(cx: CheckContext, e: ast.Number) -> ty.Type:
    if e.width is None:
        e.value = e.number
        return ty.INT
    if e.width == 0:
        return cx.type_error("a literal of width 0 is not supported", e.span)
    t = ty.Bits(e.width, e.signed)
    e.value = fold.fit(e.number, t)
    if e.number >= 1 << e.width:
        text = e.text if len(e.text) <= _TEXT_MAX else brief(e.number)
        cx.diagnostics.warning("types", f"{text} does not fit {t}: it becomes {brief(e.value)}", e.span)
    return t


def _boolean(cx: CheckContext, e: ast.Boolean) -> ty.Type:
    e.value = e.truth
    return ty.BOOL


def _string(cx: CheckContext, e: ast.String) -> ty.Type:
    e.value = e.text
    return ty.STRING


def _default(cx: CheckContext, _e: ast.Default) -> ty.Type:
    return ty.ANY


def _name(cx: CheckContext, e: ast.Name) -> ty.Type:
    symbol = cx.scope.lookup(e.name)
    if symbol is None:
        note = cx.names_like(e.name, ("variable", "parameter", "const", "instance", "table"), "names in scope")
        cx.name_error(f"there is nothing named {e.name} here", e.span, note)
        return ty.ANY
    e.target = symbol
    if symbol.kind == "type":
        return ty.Meta(symbol.type)
    if symbol.kind in ("action", "function", "state", "value_set"):
        return cx.type_error(f"{e.name} is {article(symbol.kind)} and has no value", e.span)
    e.value = symbol.value if symbol.kind == "const" else None
    return symbol.type


def _typeexpression(cx: CheckContext, e: ast.TypeExpression) -> ty.Type:
    return ty.Meta(type_of(cx, e.ref))


def _listexpression(cx: CheckContext, e: ast.ListExpression) -> ty.Type:
    return ty.Tuple(tuple(cx.expression(i) for i in e.items))


def _invalidheader(_cx: CheckContext, _e: ast.InvalidHeader) -> ty.Type:
    return ty.INVALID


def _structexpression(cx: CheckContext, e: ast.StructExpression) -> ty.Type:
    fields: dict[str, ty.FieldType] = {}
    for name, item in e.items:
        if name in fields:
            cx.type_error(f"the field {name} is given twice", item.span)
        fields[name] = ty.FieldType(name, cx.expression(item), [])
    return ty.CompositeType("", "struct", fields, anonymous=True)


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
    """Complain of a parser that no packet leaves, and of states that no packet comes to."""
    following = {state.name: _following(state.transition) for state in states}
    seen: set[str] = set()
    waiting = ["start"]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += following.get(name, [])
    for state in states:
        if state.name not in seen and "start" in following:
            message = f"no packet comes to state {state.name}: no state that start leads to goes there"
            cx.diagnostics.warning("lint", message, state.span)
    if not seen <= following.keys():
        return  # accept, reject, or a state that was complained of
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
    symbol = Symbol(kind, d.name, d, ty.ApplicableType(kind, d.name, d))
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
        if ty.width(t) is None and t != ty.ANY:
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
    if not diagnostics.errors:
        _warn_unused(cx)
    return cx


def _warn_unused(cx: CheckContext) -> None:
    for symbol in cx.declared.values():
        if symbol.kind in ("action", "table") and not symbol.used and symbol.span is not None:
            lacks = "no table lists it and nothing calls it" if symbol.kind == "action" else "it is never applied"
            if not symbol.span.file.startswith("<"):
                cx.diagnostics.warning("lint", f"{symbol.kind} {symbol.name} is not used: {lacks}", symbol.span)


def key_set_element(cx: CheckContext, key: ast.Expression, wanted: ty.Type) -> None:
    """A value, mask, range or wildcard for a key of type `wanted`."""
    if isinstance(key, ast.Default):
        return
    if isinstance(key, ast.BinaryExpression) and key.op in ("&&&", ".."):
        # Masks and bounds are numbers, also where the key is an enum.
        wanted = ty.strip(wanted) if isinstance(wanted, ty.Enum) else wanted
        for side in (key.left, key.right):
            converted(cx, side, wanted, "the key")
            _need_constant(cx, side)
        key.type = wanted
        return
    converted(cx, key, wanted, "the key")
    _need_constant(cx, key)


def _need_constant(cx: CheckContext, e: ast.Expression) -> None:
    if e.value is None and e.type != ty.ANY:
        cx.type_error("a key must be known at compile time", e.span)
