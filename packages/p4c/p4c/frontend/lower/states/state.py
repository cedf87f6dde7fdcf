"""States of the parser being made: operations appended, control flow spread over more states."""

from __future__ import annotations

from dataclasses import fields

from p4c.frontend.check.types import BOOL
from p4c.frontend.diagnostics import NOWHERE, SourceSpan
from p4c.frontend.draft import DraftState
from p4c.frontend.flow import Branch, Flow, Leave, ParserStep, Region, Step, assigned
from p4c.frontend.lower.context import LowerContext, RefusalError
from p4c.frontend.lower.storage import temporary
from p4c.frontend.scalar import Scalar
from p4c.model.actions import Primitive, Vector
from p4c.model.expressions import Expression, FieldRef, LastField
from p4c.model.parsers import Call, KeyPart, LastUnionField, Operation, Set, Transition

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
