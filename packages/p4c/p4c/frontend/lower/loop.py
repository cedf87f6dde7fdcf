"""Loops. Where the rounds are told at compile time, or bounded, they are unrolled, and what the loop counts with is a
constant in each; else the loop becomes jumps within one action, the only loops of BMv2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from p4c.frontend.check.scope import Symbol
from p4c.frontend.check.types import BOOL, Bits
from p4c.frontend.flow import Apply, Branch, Flow, Leave, Region, Repeat, assigned, walk
from p4c.frontend.lower.assignment import assign, assign_scalar, evaluated, keep, saved
from p4c.frontend.lower.block import variable
from p4c.frontend.lower.context import Loop, LowerContext, RefusalError, Statements
from p4c.frontend.lower.operator import operation
from p4c.frontend.lower.storage import temporary
from p4c.frontend.lower.values import Bindings, Value
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar, constant
from p4c.model.expressions import Const, Unary

ROUNDS_MAX = 1024
_BOUND = (
    f"in a parser and with tables in it, a loop must have at most {ROUNDS_MAX} rounds, told at compile time: it counts"
    " from and by constants, and no other statement writes what it counts with"
)
_NOTE = "write for (bit<8> i = 0; i < 4; i = i + 1) or for (bit<8> i in 0..3)"


def _for(cx: LowerContext, s: ast.ForStatement) -> None:
    rounds = _rounds(cx, s)
    if not rounds:
        with _at_run_time(cx, s, s.initial) as loop:
            cx.out.append(Branch(cx.scalar_of(s.condition), [], [Leave()], s.condition.span))
            _round(cx, s, loop)
            for step in s.updates:
                cx.statement(step)
        return
    counted: dict[int, tuple[Symbol, Scalar, Value | None]] = {}  # with its storage outside the loop

    def clause(step: ast.Statement, body: list[Flow]) -> None:
        """Carry out an initial or update clause, what counts at once."""
        symbol, source = _clause(cx, step)
        target = None
        if symbol is not None and isinstance(step, ast.AssignmentStatement):
            target = counted[id(symbol)][2] if id(symbol) in counted else cx.frame.lookup(symbol)
        if symbol is not None and source is not None and any(symbol is fixed for fixed in s.fixed):
            value = cx.scalar_of(source)
            if value.number is not None:
                counted[id(symbol)] = (symbol, value, target)
                cx.frame.bind(symbol, value)
                if isinstance(target, Scalar):
                    body.append(assigned(target, value, step.span))
                return
        cx.statement(step)

    frame = Bindings(cx.frame, cx.frame.prefix)
    with cx.apart(frame) as made:
        for step in s.initial:
            clause(step, made)
        with _region(cx, s, made, at_most=rounds) as loop:
            while (condition := cx.scalar_of(s.condition)).number != 0 and not _always_false(cx, s.condition):
                if condition.number is None:
                    cx.out.append(Branch(condition, [], [Leave()], s.condition.span))
                _round(cx, s, loop)
                for step in s.updates:
                    clause(step, cx.out)
    cx.out.extend(made)


def _rounds(cx: LowerContext, s: ast.ForStatement) -> int:
    """One more than the most rounds of a loop to unroll: it counts from and by constants, and ends. 0: run it. Rounds
    that only a value known at run time ends are run in an action, and where those of all loops around are too many."""
    fixed = {id(symbol) for symbol in s.fixed}
    counted: dict[int, int] = {}

    def count(steps: list[ast.Statement]) -> bool:
        for step in steps:
            symbol, source = _clause(cx, step)
            if symbol is None:
                continue
            value = cx.scalar_of(source) if source is not None and id(symbol) in fixed else None
            if value is not None and value.number is not None:
                counted[id(symbol)] = value.number
                cx.frame.bind(symbol, value)
            elif id(symbol) in counted:
                return False
            else:
                cx.frame.bind(symbol, Scalar(Unary("~", Const(0)), symbol.type))  # a value known at run time only
        return bool(counted)

    seen: set[tuple[int, ...]] = set()
    around = math.prod(loop.rounds for loop in cx.loops)
    with cx.apart(Bindings(cx.frame, cx.frame.prefix)):
        good = count(s.initial)
        while good and len(seen) <= ROUNDS_MAX and (now := tuple(counted.values())) not in seen:
            seen.add(now)
            condition = cx.scalar_of(s.condition)
            if condition.number == 0 or _always_false(cx, s.condition):
                return len(seen)
            few = cx.block == "parser" or (not cx.in_action and around * len(seen) <= ROUNDS_MAX)
            good = (few or condition.number is not None) and count(s.updates)
    return 0


def _clause(cx: LowerContext, step: ast.Statement) -> tuple[Symbol | None, ast.Expression | None]:
    """The variable that a clause of a loop sets, and to what."""
    if isinstance(step, ast.DeclarationStatement) and isinstance(step.declaration, ast.Variable):
        return cx.symbol_of(step.declaration), step.declaration.initial
    if isinstance(step, ast.AssignmentStatement) and isinstance(step.target, ast.Name):
        return step.target.target, step.value
    return None, None


@contextmanager
def _at_run_time(cx: LowerContext, s: ast.LoopStatement, initial: list[ast.Statement]) -> Iterator[Loop]:
    """Repeat the statements that are emitted meanwhile until a Leave, as one action."""
    if cx.block == "parser":
        raise RefusalError(_BOUND, s.span, _NOTE)
    with cx.apart(Bindings(cx.frame, cx.frame.prefix)) as made:
        for step in initial:
            cx.statement(step)
        with _region(cx, s, made, whole=not cx.in_action) as loop:
            with cx.apart() as body:
                yield loop
            if any(isinstance(inner, Apply) for inner in walk(body)):
                raise RefusalError(_BOUND, s.span, _NOTE)
            cx.out.append(Repeat(body))
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
            _range_at_run_time(cx, s, first, last)
            return
        values = [constant(n, first.type) for n in range(first.number, last.number + 1)]
    with cx.apart(frame) as made:
        if symbol not in s.fixed:
            variable(cx, s.variable)
        place = frame.bindings.get(id(symbol))
        with _region(cx, s, made, at_most=len(values)) as loop:
            for value in values:
                if place is None:
                    cx.frame.bind(symbol, value)
                else:
                    assign(cx, place, value, s.span)
                _round(cx, s, loop)
    cx.out.extend(made)


def _range_at_run_time(cx: LowerContext, s: ast.ForInStatement, first: Scalar, last: Scalar) -> None:
    """The number of the round is not the variable, which the body may change."""
    number, end = temporary(cx, first.type), keep(cx, last, s.span)
    assign_scalar(cx, number, first, s.span)
    with _at_run_time(cx, s, []) as loop:
        cx.out.append(Branch(operation("<=", (number, end), BOOL, s.span), [], [Leave()], s.span))
        variable(cx, s.variable)
        assign(cx, cx.frame.bindings[id(cx.symbol_of(s.variable))], number, s.span)
        _round(cx, s, loop)
        cx.out.append(Branch(operation("==", (number, end), BOOL, s.span), [Leave()], [], s.span))
        next_number = operation("+", (number, constant(1, number.type)), number.type, s.span)
        assign_scalar(cx, number, next_number, s.span)


@contextmanager
def _region(
    cx: LowerContext, s: ast.LoopStatement, made: list[Flow], *, whole: bool = False, at_most: int = 1
) -> Iterator[Loop]:
    """The rounds' statements as one Region of `made`, and behind it a Leave for a return in the loop."""
    loop = Loop(s.continues, (cx.depth, cx.in_action), at_most)
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
    made.append(Region(rounds, whole, s.span))
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
