"""Transitions of parser states: selects as values and masks, and keys that fit no case."""

from __future__ import annotations

import itertools

from switch.frontend import ir
from switch.frontend.check.scope import Symbol
from switch.frontend.check.types import BOOL, ERROR, Type, strip
from switch.frontend.diagnostics import Span
from switch.frontend.lower.context import Context, RefusalError, control_plane_name
from switch.frontend.lower.state import DEAD, add_operation, drain, go, new_state
from switch.frontend.lower.storage import bits_of, temporary
from switch.frontend.parse import ast

_NO_MATCH = "noMatch"


def transition(cx: Context, s: ast.State, targets: dict[str, str | None]) -> None:
    t = s.transition
    if cx.state.name == DEAD:
        return
    if t is None:
        _warn_reject(cx, s.span, f"state {s.name} has no transition, which means reject")
        go(cx, None)
        return
    if t.state is not None:
        if t.state == "reject":
            _warn_reject(cx, t.span, "transition to reject")
        go(cx, targets[t.state])
        return
    keys = []
    for e in t.select:
        key = cx.scalar_of(e)
        drain(cx)
        if not isinstance(key, ir.FieldRef | ir.LastField):
            kept = temporary(cx, key.type)
            add_operation(cx, ir.Primitive("assign", (kept, key), e.span))
            key = kept
        keys.append(key)
    widths = [bits_of(strip(e.type)) for e in t.select if isinstance(e.type, Type)]
    transitions: list[ir.ParserTransition] = []
    for case in t.cases:
        if case.state == "reject":
            _warn_reject(cx, case.span, "transition to reject")
        transitions.extend(_case(cx, case, widths, targets[case.state]))
        if transitions[-1].kind == "default":
            break
    if transitions and transitions[0].kind == "default":
        go(cx, transitions[0].target)
        return
    if not transitions or transitions[-1].kind != "default":
        transitions.append(ir.ParserTransition("default", None, None, 0, _no_match(cx)))
    cx.state.key = list(keys)
    cx.state.transitions = transitions


def _warn_reject(cx: Context, span: Span, what: str) -> None:
    cx.diagnostics.warning("target", f"{what}: BMv2 ends parsing and goes on with the packet", span)


def _no_match(cx: Context) -> str:
    """The state behind a select that fits no case (specification, section 13.6)."""
    if _NO_MATCH not in cx.states:
        state = new_state(cx, _NO_MATCH)
        error = ir.Const(cx.checked.errors["NoMatch"], ERROR)
        state.ops.append(ir.ParserOp("verify", (ir.Const(0, BOOL), error)))
        state.transitions.append(ir.ParserTransition("default", None, None, 0, None))
    return _NO_MATCH


def _case(cx: Context, case: ast.SelectCase, widths: list[int], target: str | None) -> list[ir.ParserTransition]:
    keys = case.keys
    if len(keys) == 1 and isinstance(keys[0], ast.Name) and keys[0].target is not None:
        symbol = keys[0].target
        if symbol.kind == "value_set":
            name = _value_set(cx, symbol)
            total = sum((w + 7) // 8 for w in widths)
            return [ir.ParserTransition("parse_vset", name, None, total, target)]
    if len(keys) == 1 and isinstance(keys[0], ast.Default):
        return [ir.ParserTransition("default", None, None, 0, target)]
    choices: list[list[tuple[int, int]]] = [_value_and_masks(cx, k, w) for k, w in zip(keys, widths, strict=True)]
    made = []
    for combination in itertools.product(*choices):
        value = mask = exact = total = 0
        for (v, m), w in zip(combination, widths, strict=True):
            padded = (w + 7) // 8 * 8
            value, mask, exact = ((value << padded) | (v & m), (mask << padded) | m, (exact << padded) | ((1 << w) - 1))
            total += padded // 8
        if mask == 0:
            made.append(ir.ParserTransition("default", None, None, 0, target))
        else:
            made.append(ir.ParserTransition("hexstr", value, None if mask == exact else mask, total, target))
    return made


def _value_set(cx: Context, symbol: Symbol) -> str:
    declaration = symbol.declaration
    assert isinstance(declaration, ast.ValueSet)
    name = control_plane_name(declaration, cx.frame.prefix)
    if all(v.name != name for v in cx.program.value_sets):
        cx.program.value_sets.append(ir.ValueSetDef(name, symbol.value, symbol.type, declaration.annotations))
    return name


def _value_and_masks(cx: Context, e: ast.Expression, bits: int) -> list[tuple[int, int]]:
    """A key set element as (value, mask) pairs: one, or for a range as many prefixes as it takes."""
    full = (1 << bits) - 1
    if isinstance(e, ast.Default):
        return [(0, 0)]
    if isinstance(e, ast.Binary) and e.op == "&&&":
        return [(cx.number_of(e.left) & full, cx.number_of(e.right) & full)]
    if isinstance(e, ast.Binary) and e.op == "..":
        low, high = cx.number_of(e.left) & full, cx.number_of(e.right) & full
        if low > high:
            raise RefusalError(f"the range {low}..{high} is empty", e.span)
        return _prefixes(low, high, bits)
    return [(cx.number_of(e) & full, full)]


def _prefixes(low: int, high: int, bits: int) -> list[tuple[int, int]]:
    """The least set of prefixes that covers low..high."""
    found = []
    while low <= high:
        size = low & -low if low else 1 << bits
        while low + size - 1 > high:
            size >>= 1
        found.append((low, ((1 << bits) - 1) & ~(size - 1)))
        low += size
    return found
