"""Parsers: the package's own, and nested parsers in its states."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields

from p4c.frontend.check.scope import Callee, Symbol
from p4c.frontend.check.types import BOOL, ApplicableType
from p4c.frontend.declared import DeclaredValueSet
from p4c.frontend.diagnostics import NOWHERE, SourceSpan
from p4c.frontend.draft import DraftState
from p4c.frontend.flow import Branch, Flow, Leave, ParserStep, Region, Step, assigned
from p4c.frontend.lower.assignment import assign, stored
from p4c.frontend.lower.binding import bind_block
from p4c.frontend.lower.block import block_value, make_locals
from p4c.frontend.lower.context import LowerContext, RefusalError, control_plane_name, range_of
from p4c.frontend.lower.storage import temporary
from p4c.frontend.lower.values import BlockValue
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.actions import Primitive, Vector
from p4c.model.expressions import Bool, Const, Expression, FieldRef, LastField
from p4c.model.parsers import Call, KeyPart, LastUnionField, Operation, Set, State, Transition, Verify

# States of the parser being made: operations appended, control flow spread over more states.
DEAD = "\0dead"


def new_state(cx: LowerContext, name: str) -> DraftState:
    unique, count = name, cx.state_counts.get(name, 0)
    while unique in cx.states:
        count += 1
        unique = f"{name}_{count}"
    made = DraftState(unique)
    cx.states[unique] = made
    cx.state_counts[name] = count
    return made


def new_part(cx: LowerContext, word: str) -> DraftState:
    """A state for more of the present one, named after the program's state however many there are."""
    origin = cx.state.origin or cx.state.name
    made = new_state(cx, f"{origin}_{word}")
    made.origin = origin
    return made


def go(cx: LowerContext, target: str | None) -> None:
    """End the present state, unless it has ended."""
    if not cx.state.ended:
        end(cx, [], [], target)


def end(cx: LowerContext, key: list[KeyPart], transitions: list[Transition], default: str | None) -> None:
    cx.state.key, cx.state.transitions, cx.state.default, cx.state.ended = key, transitions, default, True


def drain(cx: LowerContext) -> None:
    made, cx.out = cx.out, []
    _place(cx, made, None)


def _place(cx: LowerContext, statements: list[Flow], leave: str | None) -> None:
    """Append statements to the present state, opening new ones where control flow forks."""
    for s in statements:
        if isinstance(s, Step | ParserStep):
            add_operation(cx, s)
        elif isinstance(s, Branch):
            _fork(cx, s, leave)
        elif isinstance(s, Region):
            join = new_part(cx, "after")
            _place(cx, s.body, join.name)
            go(cx, join.name)
            cx.state = join
        elif isinstance(s, Leave) and leave is not None:
            go(cx, leave)
            cx.state = DraftState(DEAD)
        else:
            raise RefusalError("this statement cannot be used in a parser", NOWHERE)


def _fork(cx: LowerContext, s: Branch, leave: str | None) -> None:
    condition = temporary(cx, BOOL)
    add_operation(cx, assigned(condition, s.condition, s.span))
    then, otherwise, join = (new_part(cx, word) for word in ("true", "false", "join"))
    end(cx, [key_part(condition)], [Transition((1,), (1,), then.name)], otherwise.name)
    for state, body in ((then, s.then), (otherwise, s.otherwise)):
        cx.state = state
        _place(cx, body, leave)
        go(cx, join.name)
    cx.state = join


def key_part(key: Scalar) -> KeyPart:
    assert isinstance(key.of, FieldRef | LastField | LastUnionField)
    return KeyPart(key.of, key.of.field.width_bits)


def add_operation(cx: LowerContext, s: Step | ParserStep) -> None:
    """Append to the present state."""
    if isinstance(s, ParserStep):
        made = s.operation
    elif s.op == "assign" and isinstance(s.args[0], FieldRef):
        assert isinstance(s.args[1], Expression)
        made = Set(s.args[0], s.args[1])
    else:
        made = Call(Primitive(s.op, s.args, cx.diagnostics.source(s.span)))
    _check_readable(made, s.span)
    cx.state.operations.append(made)
    cx.program.places[id(made)] = s.span


def _check_readable(part: object, span: SourceSpan) -> None:
    """BMv2 reads a field of the last union of a stack only as a whole key of a select."""
    if isinstance(part, LastUnionField):
        raise RefusalError(f"BMv2 reads {part} only as a whole key of a select", span)
    if isinstance(part, tuple):
        for item in part:
            _check_readable(item, span)
    elif isinstance(part, Expression):
        for inner in part.parts:
            _check_readable(inner, span)
    elif isinstance(part, Operation | Primitive | Vector):
        for f in fields(part):
            _check_readable(getattr(part, f.name), span)


# Transitions of parser states: selects as values and masks, and keys that fit no case.
_CASE_MAX = 4096  # transitions of one case
_TRIED_BITS = 8  # of a key whose values are all tried


def transition(cx: LowerContext, s: ast.StateDecl, targets: dict[str, str | None]) -> None:
    cx.count_parts(1, s.span)
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
        if not isinstance(key.of, FieldRef | LastField | LastUnionField):
            key = stored(cx, key, e.span)
        drain(cx)
        keys.append(key_part(key))
    cx.state.span = t.span
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
        cx.count_parts(len(made), case.span)
        transitions.extend(made)
    end(cx, keys, transitions, _no_match(cx))
    if not _every_value(keys, transitions):
        message = "this select has no default: packets that fit no case leave the parser with error.NoMatch"
        cx.diagnostics.warning("lint", message, t.span, "write, for example: default: accept;")


def _every_value(key: list[KeyPart], transitions: list[Transition]) -> bool:
    """Whether the cases take all values of a short key; False where they are too many to try."""
    widths = [part.width_bits for part in key]
    if sum(widths) > _TRIED_BITS or any(t.value_set is not None for t in transitions):
        return False
    return all(
        any(all(v & m == value for v, m, value in zip(values, t.masks, t.values, strict=True)) for t in transitions)
        for values in itertools.product(*(range(1 << bits) for bits in widths))
    )


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
    prefixes: list[tuple[int, int]] = []
    while low <= high and len(prefixes) <= _CASE_MAX:
        size = low & -low if low else 1 << bits
        while low + size - 1 > high:
            size >>= 1
        prefixes.append((low, ((1 << bits) - 1) & ~(size - 1)))
        low += size
    return prefixes


def lower_parser(cx: LowerContext, block: BlockValue) -> None:
    """The whole top-level parser into `program.states`, reachable states only."""
    cx.block = "parser"
    cx.states, cx.state_counts, cx.no_match = {}, {}, ""
    cx.frame = block.frame
    cx.state = new_state(cx, "start")
    make_locals(cx, block)
    drain(cx)
    # Variables set up by the parser itself are set once, also if the program comes back to its start state.
    separate = bool(cx.state.operations)
    names = _state_names(cx, block, "" if not separate else None)
    if separate:
        go(cx, names["start"])
    _parser_states(cx, block, names, None)
    cx.program.states = _reachable(cx, "start")


def _state_names(cx: LowerContext, block: BlockValue, prefix: str | None) -> dict[str, str]:
    """Names in the output for the states of one parser; `prefix` None avoids names already taken."""
    assert isinstance(block.declaration, ast.ParserDecl)
    assert block.declaration.states is not None
    names = {}
    for s in block.declaration.states:
        wanted = f"{prefix}.{s.name}" if prefix else s.name
        if s.name == "start" and prefix == "":
            names[s.name] = "start"
        else:
            names[s.name] = new_state(cx, wanted).name
    return names


def _parser_states(cx: LowerContext, block: BlockValue, names: dict[str, str], accept: str | None) -> None:
    assert isinstance(block.declaration, ast.ParserDecl)
    targets: dict[str, str | None] = {**names, "accept": accept, "reject": None}
    for s in block.declaration.states or []:
        cx.state = cx.states[names[s.name]]
        for statement in s.statements:
            cx.statement(statement)
            with cx.refusals():
                drain(cx)
        with cx.refusals():
            transition(cx, s, targets)


def _reachable(cx: LowerContext, first: str) -> tuple[State, ...]:
    seen: set[str] = set()
    waiting = [first]
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            seen.add(name)
            targets = [t.next_state for t in cx.states[name].transitions]
            waiting.extend(target for target in (*targets, cx.states[name].default) if target is not None)
    states = [s for n, s in cx.states.items() if n in seen]
    made = tuple(
        State(s.name, index, tuple(s.operations), tuple(s.key), tuple(s.transitions), s.default)
        for index, s in enumerate(states)
    )
    cx.program.places.update((id(m.key), s.span) for m, s in zip(made, states, strict=True) if m.key)
    return made


def apply_parser(cx: LowerContext, e: ast.CallExpression, callee: Callee) -> None:
    """A nested parser: its states under its name, its accept the rest of this state."""
    assert callee.base is not None
    base = callee.base
    instance = cx.frame.lookup(base.target) if isinstance(base, ast.Name) and base.target is not None else None
    if isinstance(instance, BlockValue):
        block = instance
    else:
        assert callee.symbol is not None
        assert isinstance(callee.symbol.type, ApplicableType)
        name = f"{cx.frame.prefix}.{callee.symbol.name}"
        block = block_value(cx, callee.symbol.type, Callee("constructor", callee.name), name, e.span)
    back = bind_block(cx, block, e, callee)
    cx.deeper(e.span)
    outer = cx.frame
    drain(cx)
    cx.frame = block.frame
    make_locals(cx, block)
    drain(cx)
    join = new_part(cx, "after")
    names = _state_names(cx, block, block.name)
    go(cx, names["start"])
    _parser_states(cx, block, names, join.name)
    cx.frame, cx.state = outer, join
    cx.depth -= 1
    for place, storage in back:
        assign(cx, place, storage, e.span)
    drain(cx)
