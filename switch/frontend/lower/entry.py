"""Entries that a program gives its tables, with BMv2's priorities."""

from __future__ import annotations

from switch.frontend import ir
from switch.frontend.check.scope import Symbol
from switch.frontend.check.types import Bits, strip
from switch.frontend.lower.context import Context, RefusalError
from switch.frontend.lower.storage import bits_of
from switch.frontend.lower.values import TableValue
from switch.frontend.parse import ast


def entries_of(cx: Context, value: TableValue, entries: list[ast.Entry]) -> list[ir.TableEntry]:
    """Entries with BMv2's priorities, of which the smallest wins; among P4's own the largest does."""
    d = value.declaration
    made = [_entry(cx, value, e) for e in entries]
    if d.entries_const:
        for position, (entry, e) in enumerate(zip(made, entries, strict=True)):
            given = next((a for a in e.annotations if a.name == "priority" and a.expressions), None)
            number = given.expressions[0] if given is not None else None
            entry.priority = number.number if isinstance(number, ast.Number) else position + 1
        return made
    cx.diagnostics.warning("target", "BMv2 holds these entries for constant, as if written const entries", d.span)
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
    order = sorted(range(len(made)), key=lambda i: -priorities[i] if largest else priorities[i])
    for rank, i in enumerate(order):
        made[i].priority = rank + 1
    return made


def _entry(cx: Context, value: TableValue, e: ast.Entry) -> ir.TableEntry:
    d = value.declaration
    keys = []
    for element, key in zip(e.keys, d.keys, strict=True):
        if key.match_kind == "selector":
            continue
        t = strip(key.expression.type)
        bits = t.width if isinstance(t, Bits) else bits_of(t)
        keys.append(_key_value(cx, element, key.match_kind, bits))
    action, data = value.actions[e.action.name], action_data(cx, e.action)
    return ir.TableEntry(keys, action, data, 0, annotations=e.annotations, span=e.span)


def _key_value(cx: Context, e: ast.Expression, match: str, bits: int) -> ir.KeyValue:
    full = (1 << bits) - 1

    def number(x: ast.Expression) -> int:
        return cx.number_of(x) & full

    wild = isinstance(e, ast.Default)
    if isinstance(e, ast.Binary) and e.op == "&&&":
        first, mask = number(e.left), number(e.right)
        if match == "lpm":
            length = bin(mask).count("1")
            if mask != full ^ ((1 << (bits - length)) - 1):
                raise RefusalError("the mask of an lpm key must be a prefix", e.span)
            return ir.KeyValue(match, first & mask, length)
        return ir.KeyValue(match, first & mask, mask)
    if isinstance(e, ast.Binary) and e.op == "..":
        return ir.KeyValue(match, number(e.left), number(e.right))
    if match == "range":
        return ir.KeyValue(match, 0, full) if wild else ir.KeyValue(match, number(e), number(e))
    if match == "lpm":
        return ir.KeyValue(match, 0, 0) if wild else ir.KeyValue(match, number(e), bits)
    return ir.KeyValue(match, 0, 0) if wild else ir.KeyValue(match, number(e), full)


def action_data(cx: Context, ref: ast.ActionRef) -> list[int]:
    """The action data that a default action or an entry gives."""
    numbers = []
    assert isinstance(ref.target, Symbol)
    for info, a in zip(ref.target.parameters, ref.bound, strict=False):
        if info.direction or a is None:
            continue
        value = cx.scalar_of(a)
        if not isinstance(value, ir.Const):
            raise RefusalError("action data must be known at compile time here", a.span)
        bits = value.type.width if isinstance(value.type, Bits) else 64
        numbers.append(value.value & ((1 << bits) - 1))
    return numbers
