"""Parser states and their transitions (specification, chapter 13)."""

from __future__ import annotations

from p4c.frontend.check.context import CheckContext
from p4c.frontend.check.key_set import key_set_element
from p4c.frontend.check.scope import Symbol
from p4c.frontend.diagnostics import SourceSpan, choices
from p4c.frontend.parse import ast


def check_states(cx: CheckContext, parser: ast.ParserDecl) -> None:
    assert parser.states is not None
    names = [s.name for s in parser.states]
    for state in parser.states:
        if state.name in ("accept", "reject"):
            cx.name_error(f"the state {state.name} is built in", state.span)
        else:
            cx.declare(Symbol("state", state.name, state), state.span)
    if "start" not in names:
        cx.name_error(f"parser {parser.name} has no state start", parser.span, choices("start", names, "states"))
    _need_an_end(cx, parser, parser.states)
    for state in parser.states:
        with cx.nested():
            for s in state.statements:
                cx.statement(s)
            if state.transition is not None:
                _transition(cx, state.transition, [*names, "accept", "reject"])


def _need_an_end(cx: CheckContext, parser: ast.ParserDecl, states: list[ast.StateDecl]) -> None:
    """Complain of a parser that no packet leaves."""
    following = {state.name: _following(state.transition) for state in states}
    seen: set[str] = set()
    waiting = ["start"]
    while waiting:
        name = waiting.pop()
        if name not in following:
            return  # accept, reject, or a state that was complained of
        if name not in seen:
            seen.add(name)
            waiting += following[name]
    message = f"no packet leaves parser {parser.name}: no state that start leads to goes to accept or reject"
    cx.type_error(message, parser.span, "write: transition accept;")


def _following(t: ast.TransitionStatement | None) -> list[str]:
    """The states that may follow; a packet that fits no case of a select is rejected."""
    if t is None:
        return ["reject"]
    if t.state is not None:
        return [t.state]
    every = any(len(case.keys) == 1 and isinstance(case.keys[0], ast.Default) for case in t.cases)
    return [case.state for case in t.cases] + ([] if every else ["reject"])


def _transition(cx: CheckContext, t: ast.TransitionStatement, names: list[str]) -> None:
    if t.state is not None:
        _target(cx, t.state, t.span, names)
        return
    types = [cx.expression(k) for k in t.select]
    for case in t.cases:
        _target(cx, case.state, case.span, names)
        if len(case.keys) == 1 and isinstance(case.keys[0], ast.Default):
            continue
        if len(case.keys) == 1 and isinstance(case.keys[0], ast.Name):
            symbol = cx.scope.lookup(case.keys[0].name)
            if symbol is not None and symbol.kind == "value_set":
                case.keys[0].target = symbol
                continue
        if len(case.keys) != len(types):
            cx.type_error(f"the select has {len(types)} keys, this case {len(case.keys)}", case.span)
            continue
        for key, wanted in zip(case.keys, types, strict=True):
            key_set_element(cx, key, wanted)


def _target(cx: CheckContext, name: str, span: SourceSpan, names: list[str]) -> None:
    if name not in names:
        cx.name_error(f"there is no state named {name}", span, choices(name, names, "states"))
