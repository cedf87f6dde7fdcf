"""Loops, unrolled: BMv2 has none. What a loop counts with is a constant in each round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from p4c.frontend.check.scope import Symbol
from p4c.frontend.check.types import BOOL, Bits
from p4c.frontend.flow import Branch, Flow, Leave, Region, assigned
from p4c.frontend.lower.assignment import assign, assign_scalar, evaluated, saved
from p4c.frontend.lower.block import variable
from p4c.frontend.lower.context import Loop, LowerContext, RefusalError, Statements
from p4c.frontend.lower.storage import temporary
from p4c.frontend.lower.values import Bindings, Value
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar, constant

ROUNDS_MAX = 1024
_BOUND = (
    f"a loop must have at most {ROUNDS_MAX} rounds, told at compile time: it counts from and by constants, and no other"
    " statement writes what it counts with"
)
_NOTE = "write for (bit<8> i = 0; i < 4; i = i + 1) or for (bit<8> i in 0..3)"


def _for(cx: LowerContext, s: ast.ForStatement) -> None:
    counted: dict[int, tuple[Symbol, Scalar, Value | None]] = {}  # with its storage outside the loop

    def clause(step: ast.Statement, body: list[Flow]) -> None:
        """Carry out an initial or update clause, what counts at once."""
        symbol = target = None
        if isinstance(step, ast.DeclarationStatement) and isinstance(step.declaration, ast.Variable):
            symbol, source = cx.symbol_of(step.declaration), step.declaration.initial
        elif isinstance(step, ast.AssignmentStatement) and isinstance(step.target, ast.Name):
            symbol, source = step.target.target, step.value
            target = counted[id(symbol)][2] if id(symbol) in counted else cx.frame.lookup(symbol)
        if symbol is not None and source is not None and any(symbol is fixed for fixed in s.fixed):
            value = cx.scalar_of(source)
            if value.number is not None:
                counted[id(symbol)] = (symbol, value, target)
                cx.frame.bind(symbol, value)
                if isinstance(target, Scalar):
                    body.append(assigned(target, value, step.span))
                return
        if id(symbol) in counted:
            raise RefusalError(_BOUND, s.span, _NOTE)
        cx.statement(step)

    frame = Bindings(cx.frame, cx.frame.prefix)
    with cx.apart(frame) as made:
        for step in s.initial:
            clause(step, made)
        with _region(cx, s, made) as loop:
            seen: set[tuple[int, ...]] = set()
            while (condition := cx.scalar_of(s.condition)).number != 0 and not _always_false(cx, s.condition):
                now = tuple(v.number or 0 for _, v, _ in counted.values())
                if not counted or now in seen or len(seen) >= ROUNDS_MAX:
                    raise RefusalError(_BOUND, s.span, _NOTE)
                seen.add(now)
                if condition.number is None:
                    cx.out.append(Branch(condition, [], [Leave()], s.condition.span))
                _round(cx, s, loop)
                for step in s.updates:
                    clause(step, cx.out)
    cx.out.extend(made)


def _always_false(cx: LowerContext, e: ast.Expression) -> bool:
    """Whether a loop's comparison cannot hold: i < x where i is the largest of its type, i > x where i is 0."""
    if not isinstance(e, ast.BinaryExpression) or e.op not in ("<", ">"):
        return False
    small, large = (e.left, e.right) if e.op == "<" else (e.right, e.left)
    for side, last in ((small, -1), (large, 0)):
        if isinstance(side, ast.Name):
            value = cx.scalar_of(side)
            t = value.type
            if isinstance(t, Bits) and not t.signed and value.number == last % (1 << t.width):
                return True
    return False


def _for_in(cx: LowerContext, s: ast.ForInStatement) -> None:
    symbol = cx.symbol_of(s.variable)
    frame = Bindings(cx.frame, cx.frame.prefix)
    values: list[Value]
    if s.last is None:
        assert isinstance(s.first, ast.ListExpression)
        values = evaluated(cx, *((item, False) for item in s.first.items))
        # the body may change what they are made of
        values = [saved(cx, v, s.span) for v in values] if len(values) > 1 else values
    else:
        first, last = cx.scalar_of(s.first), cx.scalar_of(s.last)
        if first.number is None or last.number is None or last.number - first.number >= ROUNDS_MAX:
            raise RefusalError(_BOUND, s.span, _NOTE)
        values = [constant(n, first.type) for n in range(first.number, last.number + 1)]
    with cx.apart(frame) as made:
        if symbol not in s.fixed:
            variable(cx, s.variable)
        place = frame.bindings.get(id(symbol))
        with _region(cx, s, made) as loop:
            for value in values:
                if place is None:
                    cx.frame.bind(symbol, value)
                else:
                    assign(cx, place, value, s.span)
                _round(cx, s, loop)
    cx.out.extend(made)


@contextmanager
def _region(cx: LowerContext, s: ast.LoopStatement, made: list[Flow]) -> Iterator[Loop]:
    """The rounds' statements as one Region of `made`, and behind it a Leave for a return in the loop."""
    loop = Loop(s.continues, (cx.depth, cx.in_action))
    cx.loops.append(loop)
    start = len(made)
    try:
        with cx.apart() as rounds:
            yield loop
    finally:
        cx.loops.pop()
    for flag in (loop.broken, loop.returned):
        if flag is not None:
            made.insert(start, assigned(flag, constant(0, BOOL), s.span))
    made.append(Region(rounds, span=s.span))
    if loop.returned is not None:
        made.append(Branch(loop.returned, [Leave()], [], s.span))
        if cx.in_loop:  # which then is left as well
            cx.loops[-1].returned = loop.returned


def _round(cx: LowerContext, s: ast.LoopStatement, loop: Loop) -> None:
    cx.count_parts(1, s.span)
    if not loop.continues:
        cx.statement(s.body)
        return
    cx.out.append(Region(cx.body(s.body), span=s.span))
    for flag in (loop.broken, loop.returned):
        if flag is not None:
            cx.out.append(Branch(flag, [Leave()], [], s.span))


def _break(cx: LowerContext, s: ast.BreakStatement) -> None:
    loop = cx.loops[-1]
    if loop.continues:
        loop.broken = loop.broken or temporary(cx, BOOL)
        assign_scalar(cx, loop.broken, constant(1, BOOL), s.span)
    cx.out.append(Leave())


def _continue(cx: LowerContext, _s: ast.ContinueStatement) -> None:
    cx.out.append(Leave())


STATEMENTS: Statements = {
    ast.ForStatement: _for,
    ast.ForInStatement: _for_in,
    ast.BreakStatement: _break,
    ast.ContinueStatement: _continue,
}
