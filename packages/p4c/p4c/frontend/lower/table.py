"""Tables: their keys, their actions, and the counters and meters that belong to them."""

from __future__ import annotations

from itertools import count

from p4c.entries import ActionCall, Entry, Exact, Lpm, Match, Range, Ternary
from p4c.frontend.check.scope import Callee, Symbol
from p4c.frontend.check.types import Bits, Extern, strip, width
from p4c.frontend.declared import (
    DeclaredAction,
    DeclaredCounter,
    DeclaredKey,
    DeclaredMeter,
    DeclaredProfile,
    DeclaredTable,
)
from p4c.frontend.flow import Apply, Flow, flatten
from p4c.frontend.lower.assignment import assign_scalar
from p4c.frontend.lower.context import LowerContext, RefusalError, control_plane_name, range_of
from p4c.frontend.lower.inline import copied, find_action, inlined
from p4c.frontend.lower.object import extern_object
from p4c.frontend.lower.storage import bits_of, scalar
from p4c.frontend.lower.values import ActionValue, Bindings, ExternValue, TableValue, Value
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.actions import Action, ActionParameter
from p4c.model.expressions import Binary, Const, FieldRef, Local, Unary, ValidBit
from p4c.model.pipelines import InitialEntry


# Entries that a program gives its tables, with BMv2's priorities.
def entries_of(cx: LowerContext, value: TableValue, entries: list[ast.EntryElement]) -> tuple[InitialEntry, ...]:
    """Entries with BMv2's priorities, of which the smallest wins; among P4's own the largest does."""
    d = value.declaration
    cx.count_parts(len(entries), d.span)
    made = [_entry(cx, value, e) for e in entries]
    ranks = _const_ranks(entries) if d.entries_const else _ranks(cx, d, entries)
    top = max(ranks, default=0) + 1
    loose = any(k.match_kind in ("ternary", "range", "optional") for k in d.keys)
    return tuple(
        InitialEntry(Entry(matches, call, top - rank if loose else 0), rank, cx.diagnostics.source(e.span))
        for (matches, call), rank, e in zip(made, ranks, entries, strict=True)
    )


def _const_ranks(entries: list[ast.EntryElement]) -> list[int]:
    ranks = []
    for position, e in enumerate(entries):
        given = next((a for a in e.annotations if a.name == "priority" and a.expressions), None)
        number = given.expressions[0] if given is not None else None
        ranks.append(number.number if isinstance(number, ast.Number) else position + 1)
    return ranks


def _ranks(cx: LowerContext, d: ast.TableDecl, entries: list[ast.EntryElement]) -> list[int]:
    message = "BMv2 holds these entries for constant, as if written const entries; the embedded switch lets them change"
    cx.diagnostics.warning("target", message, d.span)
    wins, step = d.properties.get("largest_priority_wins"), d.properties.get("priority_delta")
    largest = wins is None or bool(wins.value.value)
    delta = int(step.value.value) if step is not None else 1
    priorities: list[int] = []
    for e in entries:
        if e.priority is not None:
            priorities.append(int(e.priority.value))
        elif priorities:
            priorities.append(priorities[-1] + (-delta if largest else delta))
        else:
            priorities.append(len(entries) * delta if largest else 1)
    order = sorted(range(len(entries)), key=lambda i: -priorities[i] if largest else priorities[i])
    ranks = [0] * len(entries)
    for rank, i in enumerate(order):
        ranks[i] = rank + 1
    return ranks


def _entry(cx: LowerContext, value: TableValue, e: ast.EntryElement) -> tuple[tuple[Match, ...], ActionCall]:
    matches = []
    for element, key in zip(e.keys, value.declaration.keys, strict=True):
        if key.match_kind == "selector":
            continue
        t = strip(key.expression.type)
        bits = t.width if isinstance(t, Bits) else bits_of(t)
        matches.append(_match(cx, element, key.match_kind, bits))
    data = action_data(cx, e.action)
    return tuple(matches), ActionCall(value.actions[e.action.name].name, tuple(data))


def _match(cx: LowerContext, e: ast.Expression, match: str, bits: int) -> Match:
    full = (1 << bits) - 1

    def number(x: ast.Expression) -> int:
        return cx.number_of(x) & full

    wild = isinstance(e, ast.Default)
    if match == "exact":
        return Exact(number(e))
    if match == "range":
        if isinstance(e, ast.BinaryExpression) and e.op == "..":
            return Range(*range_of(cx, e, bits))
        return Range(0, full) if wild else Range(number(e), number(e))
    value, mask = (0, 0)
    if isinstance(e, ast.BinaryExpression) and e.op == "&&&":
        mask = number(e.right)
        value = number(e.left) & mask
    elif not wild:
        value, mask = number(e), full
    if match != "lpm":
        return Ternary(value, mask)
    length = mask.bit_count()
    if mask != full ^ ((1 << (bits - length)) - 1):
        raise RefusalError("the mask of an lpm key must be a prefix", e.span)
    return Lpm(value, length)


def action_data(cx: LowerContext, ref: ast.ActionRef) -> list[int]:
    """The action data that a default action or an entry gives."""
    numbers = []
    assert isinstance(ref.target, Symbol)
    for info, a in zip(ref.target.parameters, ref.bound, strict=False):
        if info.direction or a is None:
            continue
        value = cx.scalar_of(a)
        if value.number is None:
            raise RefusalError("action data must be known at compile time here", a.span)
        bits = value.type.width if isinstance(value.type, Bits) else 64
        numbers.append(value.number & ((1 << bits) - 1))
    return numbers


# Keys of tables, and the names that P4Runtime gives to them.
def add_key(cx: LowerContext, value: TableValue, table: DeclaredTable, key: ast.KeyElement) -> None:
    named = next((a for a in key.annotations if a.name == "name" and a.expressions), None)
    if named is not None and isinstance(named.expressions[0], ast.String):
        name = named.expressions[0].text
    else:
        name = key_name(key.expression)
        if not name:
            note = 'add @name("…") after its match kind'
            raise RefusalError("this key needs a name for the control plane", key.span, note)
    value_read, before = cx.isolated(key.expression)
    target, mask = _target(value_read, key) if not before else (None, None)
    if key.match_kind == "selector":
        if table.profile is None or table.profile.algorithm is None:
            message = f"this key of table {table.name} selects nothing: the table has no action_selector"
            cx.diagnostics.warning("target", message, key.span)
        if not isinstance(target, FieldRef) or mask is not None:
            target = _prepared(cx, value, value_read, key)
        table.all_keys.append(DeclaredKey(target, "selector", name, None, key.expression.type, [], key.annotations))
        return
    if target is None:
        target = _prepared(cx, value, value_read, key)
    annotations = [a for a in key.annotations if a.name != "name"]
    made = DeclaredKey(target, key.match_kind, name, mask, key.expression.type, annotations, key.annotations)
    table.all_keys.append(made)


def _target(value: Scalar, key: ast.KeyElement) -> tuple[FieldRef | ValidBit | None, int | None]:
    """The field that BMv2 can match as it is, and the mask over it; None where the key must be computed first."""
    match value.of:
        case FieldRef() as field:
            return field, None
        case Binary("&", FieldRef() as field, Const(mask)) if _is_mask(key.expression):
            return field, mask
        case Unary("d2b", ValidBit() as valid) if key.match_kind in ("exact", "ternary", "optional"):
            return valid, None
    return None, None


def _is_mask(e: ast.Expression) -> bool:
    """Whether the program itself masks the key: slices and casts are masks in the model as well."""
    return isinstance(e, ast.BinaryExpression) and e.op == "&"


def _prepared(cx: LowerContext, value: TableValue, target: Scalar, key: ast.KeyElement) -> FieldRef:
    place = scalar(cx, f"{value.name}.key", target.type)
    value.prepared.append((place, key.expression))
    assert isinstance(place.of, FieldRef)
    return place.of


def key_name(e: ast.Expression) -> str:
    """A key's name in P4Runtime: the expression as written, validity as `$valid$`; empty where there is none."""
    match e:
        case ast.Name():
            return e.name
        case ast.MemberExpression():
            base = key_name(e.base)
            return f"{base}.{e.name}" if base else ""
        case ast.CallExpression():
            if isinstance(e.callee, ast.MemberExpression) and e.callee.name == "isValid":
                base = key_name(e.callee.base)
                return f"{base}.$valid$" if base else ""
            return ""
        case ast.IndexExpression():
            base, index = key_name(e.base), key_name(e.index)
            return f"{base}[{index}]" if base and index else ""
        case ast.SliceExpression():
            parts = [key_name(x) for x in (e.base, e.high, e.low)]
            return f"{parts[0]}[{parts[1]}:{parts[2]}]" if all(parts) else ""
        case ast.BinaryExpression(op="&"):
            left, right = key_name(e.left), key_name(e.right)
            return f"{left} & {right}" if left and right else ""
        case ast.Number():
            return e.text if e.width is None else str(e.number)
    return ""


def apply_table(
    cx: LowerContext, call: ast.CallExpression, hit: list[Flow] | None = None, miss: list[Flow] | None = None
) -> Apply:
    callee: Callee = call.target
    assert isinstance(callee.base, ast.Name)
    value = cx.frame.lookup(callee.base.target)
    if not isinstance(value, TableValue):
        raise RefusalError(f"table {callee.name} cannot be applied here", call.span)
    if value.table is None:
        value.table = _table(cx, value)
    for place, expression in value.prepared:
        assign_scalar(cx, place, cx.scalar_of(expression), expression.span)
    applied = Apply(value.table, hit, miss, span=call.span)
    cx.out.append(applied)
    return applied


def _table(cx: LowerContext, value: TableValue) -> DeclaredTable:
    d = value.declaration
    assert cx.pipeline is not None
    cx.claim("table", value.name, d.span)
    actions = []
    for ref in d.actions:
        value.actions[ref.name] = _listed_action(cx, ref)
        actions.append((value.actions[ref.name], ref.annotations))
    default, default_arguments, default_const = _default_action(cx, value, actions)
    table = DeclaredTable(
        value.name, actions, default, default_arguments, default_const, d.entries_const, annotations=d.annotations
    )
    table.span = d.span
    _table_properties(cx, d, table)
    for key in d.keys:
        add_key(cx, value, table, key)
    if table.profile is not None and table.profile.algorithm is not None:
        _selector(table, table.profile)
    if d.entries is not None:
        table.entries = entries_of(cx, value, d.entries)
    cx.pipeline.tables.append(table)
    return table


def _default_action(
    cx: LowerContext, value: TableValue, actions: list[tuple[DeclaredAction, list[ast.Annotation]]]
) -> tuple[DeclaredAction, list[int], bool]:
    d = value.declaration
    if d.default is not None:
        definition = value.actions.get(d.default.name)
        if definition is None:
            definition = no_action(cx)
            actions.append((definition, []))
        return definition, action_data(cx, d.default), d.default_const
    nothing = no_action(cx)
    if all(a is not nothing for a, _ in actions):
        # As the language has it: a table without a default action does nothing at a miss.
        only = ast.Annotation(d.span, "defaultonly")
        actions.append((nothing, [only]))
    return nothing, [], False


def _listed_action(cx: LowerContext, ref: ast.ActionRef) -> DeclaredAction:
    assert isinstance(ref.target, Symbol)
    action = find_action(cx, ref.target)
    if any(a is not None for a in ref.bound):
        # Arguments bound here make it another action, of the same name.
        return _define_action(cx, action, ref.bound)
    if action.definition is None:
        action.definition = _define_action(cx, action, [None] * len(ref.target.parameters))
    return action.definition


def _define_action(cx: LowerContext, action: ActionValue, arguments: list[ast.Expression | None]) -> DeclaredAction:
    d = action.declaration
    definition = DeclaredAction(action.name, annotations=d.annotations, span=d.span)
    frame = Bindings(action.frame, action.name)
    back: list[tuple[Value, Value]] = []
    with cx.apart() as body:
        for info, argument in zip(action.symbol.parameters, arguments, strict=True):
            if info.direction and argument is not None:
                storage, place = copied(cx, argument, info, f"{action.name}.{info.name}")
                frame.bind(info.symbol, storage)
                if place is not None:
                    back.append((place, storage))
                continue
            if info.direction:
                raise RefusalError(
                    f"action {d.name} has parameter {info.name} with a direction: a table cannot give it a value",
                    d.span,
                )
            t = strip(info.type)
            index = len(definition.parameters)
            definition.parameters.append((info.name, info.type, info.declaration.annotations))
            frame.bind(info.symbol, Scalar(Local(index), t))
        inlined(cx, d.body, frame, back, d.span)
    parameters = tuple(ActionParameter(name, width(strip(t)) or 1) for name, t, _ in definition.parameters)
    steps = flatten(body, cx.diagnostics.source)
    definition.action = Action(action.name, len(cx.program.actions), parameters, steps)
    cx.program.actions.append(definition.action)
    cx.program.declared_actions.append(definition)
    return definition


def action_name(cx: LowerContext, label: ast.Name, call: ast.CallExpression) -> str:
    callee: Callee = call.target
    assert isinstance(callee.base, ast.Name)
    value = cx.frame.lookup(callee.base.target)
    assert isinstance(value, TableValue)
    return value.actions[label.name].name


def _selector(table: DeclaredTable, profile: DeclaredProfile) -> None:
    inputs = [k.target for k in table.all_keys if k.match == "selector" and isinstance(k.target, FieldRef)]
    if not inputs:
        raise RefusalError(f"table {table.name} uses a selector but has no key of match kind selector", table.span)
    if profile.inputs and profile.inputs != inputs:
        message = f"selector {profile.name} is used with other keys by another table: BMv2 has one list"
        raise RefusalError(message, table.span)
    profile.inputs = inputs


def _table_properties(cx: LowerContext, d: ast.TableDecl, table: DeclaredTable) -> None:
    for p in d.properties.values():
        if p.name == "size":
            table.size = int(p.value.value)
        elif p.name == "support_timeout":
            table.support_timeout = bool(p.value.value)
        elif p.name in ("implementation", "counters", "meters"):
            value = _made_in_place(cx, table, p) if isinstance(p.value, ast.CallExpression) else cx.value_of(p.value)
            assert isinstance(value, ExternValue)
            _attach(cx, table, value, p)


def _made_in_place(cx: LowerContext, table: DeclaredTable, p: ast.Property) -> Value:
    """`implementation = action_profile(…)`: the object takes its name from `@name` before the property."""
    made = p.value
    assert isinstance(made, ast.CallExpression)
    callee = made.target
    named = next((a for a in p.annotations if a.name == "name"), None)
    if not isinstance(callee, Callee) or not isinstance(callee.returns, Extern):
        raise RefusalError(f"{p.name} of table {table.name} must be an extern object", p.span)
    d = ast.Instance(p.span, "", ast.NamedTypeRef(p.span, callee.name), [], annotations=p.annotations)
    name = control_plane_name(d, cx.frame.prefix)
    if named is None:
        noun = "action_profile" if p.name == "implementation" else callee.name.removeprefix("direct_")
        name = next(f"{noun}_{n}" for n in count() if ("in place", f"{noun}_{n}") not in cx.claimed)
        cx.claim("in place", name, p.span)
        message = f"the {callee.name} of table {table.name} has no name: it is called {name}, as in p4c's JSON"
        cx.diagnostics.warning("target", f'{message}; write @name("…") before {p.name}', p.span)
    return extern_object(cx, d, callee.returns, callee, name)


def _attach(cx: LowerContext, table: DeclaredTable, value: ExternValue, p: ast.Property) -> None:
    assert cx.pipeline is not None
    if isinstance(value.object, DeclaredProfile):
        table.profile = value.object
        value.object.tables.append(table)
        if value.object not in cx.pipeline.profiles:
            cx.pipeline.profiles.append(value.object)
        return
    assert isinstance(value.object, DeclaredCounter | DeclaredMeter)
    if value.object.table is not None:
        raise RefusalError(
            f"{value.name} is attached to two tables, {value.object.table.name} and {table.name}", p.span
        )
    value.object.table = table
    if isinstance(value.object, DeclaredCounter):
        table.counter = value.object
    else:
        table.meter = value.object


def no_action(cx: LowerContext) -> DeclaredAction:
    symbol = cx.checked.scope.names["NoAction"]
    action = find_action(cx, symbol)
    assert isinstance(action, ActionValue)
    if action.definition is None:
        action.definition = _define_action(cx, action, [])
    return action.definition
