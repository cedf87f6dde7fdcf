"""States of the parser being made: operations appended, control flow spread over more states."""

from __future__ import annotations

from switch.frontend import ir
from switch.frontend.check.types import BOOL
from switch.frontend.diagnostics import NOWHERE, Span
from switch.frontend.lower.context import Context, RefusalError
from switch.frontend.lower.storage import temporary

_OWN_OPS = frozenset(["extract", "extract_VL", "advance", "verify"])
DEAD = "\0dead"


def new_state(cx: Context, name: str) -> ir.ParserState:
    unique, count = name, 0
    while unique in cx.states:
        count += 1
        unique = f"{name}_{count}"
    made = ir.ParserState(unique)
    cx.states[unique] = made
    return made


def go(cx: Context, target: str | None) -> None:
    """End the present state."""
    if not cx.state.transitions:
        cx.state.transitions.append(ir.ParserTransition("default", None, None, 0, target))


def drain(cx: Context) -> None:
    made, cx.out = cx.out, []
    _place(cx, made, None)


def _place(cx: Context, statements: list[ir.Stmt], leave: str | None) -> None:
    """Append statements to the present state, opening new ones where control flow forks."""
    for s in statements:
        if isinstance(s, ir.Primitive):
            add_operation(cx, s)
        elif isinstance(s, ir.Branch):
            _fork(cx, s, leave)
        elif isinstance(s, ir.Region):
            join = new_state(cx, f"{cx.state.name}_after")
            _place(cx, s.body, join.name)
            go(cx, join.name)
            cx.state = join
        elif isinstance(s, ir.Leave) and leave is not None:
            go(cx, leave)
            cx.state = ir.ParserState(DEAD)
        else:
            raise RefusalError("this statement cannot be used in a parser", NOWHERE)


def _fork(cx: Context, s: ir.Branch, leave: str | None) -> None:
    condition = temporary(cx, BOOL)
    add_operation(cx, ir.Primitive("assign", (condition, s.condition), s.span))
    base = cx.state.name
    then, otherwise, join = (new_state(cx, f"{base}_{w}") for w in ("true", "false", "join"))
    cx.state.key = [condition]
    cx.state.transitions = [
        ir.ParserTransition("hexstr", 1, None, 1, then.name),
        ir.ParserTransition("default", None, None, 0, otherwise.name),
    ]
    for state, body in ((then, s.then), (otherwise, s.otherwise)):
        cx.state = state
        _place(cx, body, leave)
        go(cx, join.name)
    cx.state = join


def add_operation(cx: Context, p: ir.Primitive) -> None:
    for parameter in p.parameters:
        _check_readable(cx, parameter, p.span)
    if p.op in _OWN_OPS:
        cx.state.ops.append(ir.ParserOp(p.op, p.parameters))
    elif p.op == "assign" and isinstance(p.parameters[0], ir.FieldRef) and len(p.parameters) == 2:
        cx.state.ops.append(ir.ParserOp("set", p.parameters))
    else:
        cx.state.ops.append(ir.ParserOp("primitive", (), p))


def _check_readable(cx: Context, e: ir.Expr, span: Span) -> None:
    match e:
        case ir.LastField() if e.member:
            raise RefusalError(f"BMv2 reads {e} only as a whole key of a select", span)
        case ir.Operation(operands=parts) | ir.Vector(items=parts):
            for part in parts:
                _check_readable(cx, part, span)
        case ir.SliceOf():
            _check_readable(cx, e.base, span)
