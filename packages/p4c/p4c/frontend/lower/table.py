"""Tables: their keys, their actions, and the counters and meters that belong to them."""

from __future__ import annotations

from itertools import count

from p4c.frontend.check.scope import Callee, Symbol
from p4c.frontend.check.types import Extern, strip, width
from p4c.frontend.declared import DeclaredAction, DeclaredCounter, DeclaredMeter, DeclaredProfile, DeclaredTable
from p4c.frontend.flow import Apply, Flow, flatten
from p4c.frontend.lower.assignment import assign_scalar
from p4c.frontend.lower.context import LowerContext, RefusalError, control_plane_name
from p4c.frontend.lower.entry import action_data, entries_of
from p4c.frontend.lower.inline import copied, find_action, inlined
from p4c.frontend.lower.key import add_key
from p4c.frontend.lower.object import extern_object
from p4c.frontend.lower.values import ActionValue, Bindings, ExternValue, TableValue, Value
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.actions import Action, ActionParameter
from p4c.model.expressions import FieldRef, Local


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
            if table.support_timeout:
                message = "the embedded switch refuses entries with an idle timeout; BMv2 takes them"
                cx.diagnostics.warning("target", message, p.span)
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
