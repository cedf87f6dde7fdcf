"""Transitions of parser states: selects as values and masks, and keys that fit no case."""

from __future__ import annotations

import itertools
import math

from p4c.frontend.check.scope import Symbol
from p4c.frontend.declared import DeclaredValueSet
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import assigned
from p4c.frontend.lower.context import LowerContext, RefusalError, control_plane_name, range_of
from p4c.frontend.lower.states.state import DEAD, add_operation, drain, end, go, key_part, new_state
from p4c.frontend.lower.storage import temporary
from p4c.frontend.parse import ast
from p4c.model.expressions import Bool, Const, FieldRef, LastField
from p4c.model.parsers import KeyPart, LastUnionField, Transition, Verify

_CASE_MAX = 4096  # transitions of one case


def transition(cx: LowerContext, s: ast.StateDecl, targets: dict[str, str | None]) -> None:
    cx.made(1, s.span)
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
        if not isinstance(key.of, FieldRef | LastField | LastUnionField):
            kept = temporary(cx, key.type)
            add_operation(cx, assigned(kept, key, e.span))
            key = kept
        keys.append(key_part(key))
    transitions: list[Transition] = []
    for case in t.cases:
        if case.state == "reject":
            _warn_reject(cx, case.span, "transition to reject")
        made = _case(cx, case, keys, targets[case.state])
        if made is None:
            if transitions:
                end(cx, keys, transitions, targets[case.state])
            else:
                go(cx, targets[case.state])
            return
        cx.made(len(made), case.span)
        transitions.extend(made)
    end(cx, keys, transitions, _no_match(cx))


def _warn_reject(cx: LowerContext, span: SourceSpan, what: str) -> None:
    cx.diagnostics.warning("target", f"{what}: BMv2 ends parsing and goes on with the packet", span)


def _no_match(cx: LowerContext) -> str:
    """The state behind a select that fits no case (specification, section 13.6)."""
    if not cx.no_match:
        state = new_state(cx, "noMatch")
        state.operations.append(Verify(Bool(False), Const(cx.checked.errors["NoMatch"])))
        state.ended = True
        cx.no_match = state.name
    return cx.no_match


def _case(cx: LowerContext, case: ast.SelectCase, key: list[KeyPart], target: str | None) -> list[Transition] | None:
    """The transitions of one case; None where it takes everything."""
    keys = case.keys
    if len(keys) == 1 and isinstance(keys[0], ast.Name) and keys[0].target is not None:
        symbol = keys[0].target
        if symbol.kind == "value_set":
            return [Transition((), (), target, _value_set(cx, symbol))]
    if len(keys) == 1 and isinstance(keys[0], ast.Default):
        return None
    choices = [_value_and_masks(cx, k, part.width_bits) for k, part in zip(keys, key, strict=True)]
    if math.prod(map(len, choices)) > _CASE_MAX:
        message = f"the ranges of a case must become at most {_CASE_MAX} values with masks"
        raise RefusalError(message, case.span, "write fewer or simpler ranges, or compare in an if")
    made = []
    for combination in itertools.product(*choices):
        if not any(mask for _, mask in combination):
            return None
        values, masks = tuple(v & m for v, m in combination), tuple(m for _, m in combination)
        made.append(Transition(values, masks, target))
    return made


def _value_set(cx: LowerContext, symbol: Symbol) -> str:
    declaration = symbol.declaration
    assert isinstance(declaration, ast.ValueSetDecl)
    name = control_plane_name(declaration, cx.frame.prefix)
    if all(v.name != name for v in cx.program.value_sets):
        cx.program.value_sets.append(DeclaredValueSet(name, symbol.value, symbol.type, declaration.annotations))
    return name


def _value_and_masks(cx: LowerContext, e: ast.Expression, bits: int) -> list[tuple[int, int]]:
    """A key set element as (value, mask) pairs: one, or for a range as many prefixes as it takes."""
    full = (1 << bits) - 1
    if isinstance(e, ast.Default):
        return [(0, 0)]
    if isinstance(e, ast.BinaryExpression) and e.op == "&&&":
        return [(cx.number_of(e.left) & full, cx.number_of(e.right) & full)]
    if isinstance(e, ast.BinaryExpression) and e.op == "..":
        low, high = range_of(cx, e, bits)
        return _prefixes(low, high, bits)
    return [(cx.number_of(e) & full, full)]


def _prefixes(low: int, high: int, bits: int) -> list[tuple[int, int]]:
    """The least set of prefixes that covers low..high, or the first ones where a case cannot have that many."""
    found: list[tuple[int, int]] = []
    while low <= high and len(found) <= _CASE_MAX:
        size = low & -low if low else 1 << bits
        while low + size - 1 > high:
            size >>= 1
        found.append((low, ((1 << bits) - 1) & ~(size - 1)))
        low += size
    return found
