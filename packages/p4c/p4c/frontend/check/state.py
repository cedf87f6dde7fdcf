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
    for state in parser.states:
        with cx.nested():
            for s in state.statements:
                cx.statement(s)
            if state.transition is not None:
                _transition(cx, state.transition, [*names, "accept", "reject"])


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
