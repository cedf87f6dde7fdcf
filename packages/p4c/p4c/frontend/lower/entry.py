"""Entries that a program gives its tables, with BMv2's priorities."""

from __future__ import annotations

from p4c.entries import ActionCall, Entry, Exact, Lpm, Match, Range, Ternary
from p4c.frontend.check.scope import Symbol
from p4c.frontend.check.types import Bits, strip
from p4c.frontend.lower.context import LowerContext, RefusalError, range_of
from p4c.frontend.lower.storage import bits_of
from p4c.frontend.lower.values import TableValue
from p4c.frontend.parse import ast
from p4c.model.pipelines import InitialEntry


def entries_of(cx: LowerContext, value: TableValue, entries: list[ast.EntryElement]) -> tuple[InitialEntry, ...]:
    """Entries with BMv2's priorities, of which the smallest wins; among P4's own the largest does."""
    d = value.declaration
    cx.made(len(entries), d.span)
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
