"""Parsers: the package's own, and nested parsers in its states."""

from __future__ import annotations

from p4c.frontend.check.scope import Callee
from p4c.frontend.check.types import ApplicableType
from p4c.frontend.lower.assignment import assign
from p4c.frontend.lower.binding import bind_block
from p4c.frontend.lower.block import block_value, make_locals
from p4c.frontend.lower.context import LowerContext
from p4c.frontend.lower.states.state import drain, go, new_part, new_state
from p4c.frontend.lower.states.transition import transition
from p4c.frontend.lower.values import BlockValue
from p4c.frontend.parse import ast
from p4c.model.parsers import State


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
    found = [s for n, s in cx.states.items() if n in seen]
    return tuple(
        State(s.name, index, tuple(s.operations), tuple(s.key), tuple(s.transitions), s.default)
        for index, s in enumerate(found)
    )


def apply_parser(cx: LowerContext, e: ast.CallExpression, callee: Callee) -> None:
    """A nested parser: its states under its name, its accept the rest of this state."""
    assert callee.base is not None
    base = callee.base
    found = cx.frame.lookup(base.target) if isinstance(base, ast.Name) and base.target is not None else None
    if isinstance(found, BlockValue):
        block = found
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
