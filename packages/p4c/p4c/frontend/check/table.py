"""Tables: keys, actions, entries and properties (specification, section 14.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from p4c.frontend.check.argument import bind
from p4c.frontend.check.context import CheckContext
from p4c.frontend.check.key_set import key_set_element
from p4c.frontend.check.scope import Callee, Symbol
from p4c.frontend.check.type_ref import SIZE_MAX, constant_number
from p4c.frontend.check.types import ANY, VOID, ApplicableType, Extern, Type, scalar
from p4c.frontend.diagnostics import SourceSpan, choices
from p4c.frontend.parse import ast


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
    symbol = Symbol("table", d.name, d, ApplicableType("table", d.name, d))
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
    t = cx.expression(key.expression)
    if key.match_kind not in cx.match_kinds:
        note = choices(key.match_kind, cx.match_kinds, "match kinds")
        cx.name_error(f"there is no match kind {key.match_kind}", key.span, note)
    if t != ANY and not scalar(t):
        cx.type_error(f"a key of table {d.name} cannot be of type {t}", key.span)


def _action_ref(cx: CheckContext, ref: ast.ActionRef, complete: bool) -> None:
    """An action with its arguments: in an action list those for directed parameters, elsewhere (`complete`) all."""
    symbol = cx.find(ref.name, ref.span, ("action",), "action")
    if symbol is None:
        return
    ref.target = symbol
    ref.bound = [None] * len(symbol.parameters)
    if not ref.arguments:
        wanted = ", ".join(p.name for p in symbol.parameters if not p.direction)
        if complete and wanted:
            cx.type_error(f"action {ref.name} needs arguments here: {wanted}", ref.span)
        return
    call = ast.CallExpression(ref.span, ast.Name(ref.span, ref.name), [], ref.arguments)
    callee = Callee("action", symbol.name, symbol, parameters=symbol.parameters, returns=VOID)
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
        key_set_element(cx, element, wanted if isinstance(wanted, Type) else ANY)
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
        cx.diagnostics.error("target", f"BMv2 tables have no property {p.name}", p.span, note)
        return
    t = cx.expression(p.value)
    if t == ANY:
        return
    wanted: tuple[str, ...] = {
        "implementation": ("action_profile", "action_selector"),
        "counters": ("direct_counter",),
        "meters": ("direct_meter",),
    }.get(p.name, ())
    if wanted and not (isinstance(t, Extern) and t.name in wanted):
        cx.type_error(f"{p.name} of table {d.name} must be a {' or '.join(wanted)}, not {t}", p.span)
    if p.name == "size":
        constant_number(cx, p.value, f"the size of table {d.name}", 0, SIZE_MAX)
    if p.name in ("support_timeout", "largest_priority_wins") and not isinstance(p.value.value, bool):
        cx.type_error(f"{p.name} must be true or false", p.span)
    if p.name == "priority_delta":
        constant_number(cx, p.value, "priority_delta", 1)
