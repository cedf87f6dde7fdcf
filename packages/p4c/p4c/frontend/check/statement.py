"""Statements (specification, chapter 12)."""

from __future__ import annotations

from p4c.frontend.check import types as ty
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.conversion import converted
from p4c.frontend.check.left_value import need_left_value
from p4c.frontend.check.scope import Symbol
from p4c.frontend.check.type_ref import type_of
from p4c.frontend.diagnostics import choices
from p4c.frontend.parse import ast


def _block(cx: CheckContext, s: ast.BlockStatement) -> None:
    with cx.nested():
        for inner in s.statements:
            cx.statement(inner)


def _empty(cx: CheckContext, _s: ast.EmptyStatement) -> None:
    pass


def _exit(cx: CheckContext, s: ast.ExitStatement) -> None:
    if cx.in_parser:
        cx.type_error("exit has no meaning in a parser", s.span)


def _return(cx: CheckContext, s: ast.ReturnStatement) -> None:
    if s.value is None:
        if cx.returns != ty.VOID:
            cx.type_error(f"return needs a value of type {cx.returns}", s.span)
    elif cx.returns == ty.VOID:
        cx.type_error("only functions return a value", s.span)
    else:
        converted(cx, s.value, cx.returns, "return")


def _assignment(cx: CheckContext, s: ast.AssignmentStatement) -> None:
    left = cx.expression(s.target)
    need_left_value(cx, s.target, "the left side of an assignment")
    if s.op != "=":
        s.value = ast.BinaryExpression(s.span, s.op[:-1], s.target, s.value)
    if isinstance(left, ty.Extern | ty.ApplicableType | ty.Meta):
        cx.type_error(f"{left} cannot be assigned", s.span)
        return
    converted(cx, s.value, left, "the assignment")


def _callstatement(cx: CheckContext, s: ast.CallStatement) -> None:
    cx.expression(s.call)


def _if(cx: CheckContext, s: ast.IfStatement) -> None:
    t = cx.expression(s.condition)
    if t not in (ty.BOOL, ty.ANY):
        cx.type_error(f"the condition of an if must be a bool, not {t}", s.condition.span)
    for branch in (s.then, s.otherwise):
        if branch is not None:
            _block(cx, ast.BlockStatement(branch.span, [branch]))


def _for(cx: CheckContext, s: ast.ForStatement) -> None:
    with cx.nested():
        for clause in s.initial:
            cx.statement(clause)
        t = cx.expression(s.condition)
        if t not in (ty.BOOL, ty.ANY):
            cx.type_error(f"the condition of a loop must be a bool, not {t}", s.condition.span)
        inside = [d.declaration.name for d in s.initial if isinstance(d, ast.DeclarationStatement)]
        names = {
            *inside,
            *(
                a.target.name
                for a in s.initial
                if isinstance(a, ast.AssignmentStatement) and isinstance(a.target, ast.Name)
            ),
        }
        symbols = [symbol for name in sorted(names) if (symbol := cx.scope.lookup(name)) is not None]
        before, calls = [symbol.written for symbol in symbols], cx.calls
        _loop_body(cx, s)
        s.fixed = [
            symbol
            for symbol, count in zip(symbols, before, strict=True)
            if symbol.written == count and (symbol.name in inside or cx.calls == calls)
        ]
        for clause in s.updates:
            cx.statement(clause)


def _loop_body(cx: CheckContext, s: ast.LoopStatement) -> None:
    cx.loops.append(s)
    _block(cx, ast.BlockStatement(s.body.span, [s.body]))
    cx.loops.pop()


def _for_in(cx: CheckContext, s: ast.ForInStatement) -> None:
    t = type_of(cx, s.variable.type)
    if isinstance(s.first, ast.ListExpression) and s.last is None:
        for item in s.first.items:
            converted(cx, item, t, "a value of the list")
        s.first.type = t
    elif s.last is None:
        cx.expression(s.first)
        cx.type_error("a loop goes over a range or a list: 1..6 or (list<bit<8>>){1, 2}", s.first.span)
    else:
        for end in (s.first, s.last):
            converted(cx, end, t, "an end of the range")
    with cx.nested():
        symbol = cx.declare(Symbol("variable", s.variable.name, s.variable, t), s.variable.span)
        _loop_body(cx, s)
        s.fixed = [] if symbol.written else [symbol]


def _break(cx: CheckContext, s: ast.BreakStatement | ast.ContinueStatement) -> None:
    word = "break" if isinstance(s, ast.BreakStatement) else "continue"
    if not cx.loops:
        cx.type_error(f"{word} needs a loop around it", s.span)
    elif word == "continue":
        cx.loops[-1].continues = True


def _switch(cx: CheckContext, s: ast.SwitchStatement) -> None:
    t = cx.expression(s.subject)
    for case, following in zip(s.cases, s.cases[1:], strict=False):
        if any(isinstance(label, ast.Default) for label in case.labels):
            cx.type_error("the default of a switch comes last", following.span)
    if t == ty.ACTION_RUN:
        _switch_on_action(cx, s)
        return
    if cx.in_parser:
        cx.type_error("switch is not allowed in a parser: use select", s.span)
    if t == ty.INT or isinstance(t, ty.CompositeType | ty.StackType):
        cx.type_error(f"a switch needs a value with a width, not {t}", s.subject.span)
        t = ty.ANY
    for case in s.cases:
        for label in case.labels:
            if not isinstance(label, ast.Default):
                converted(cx, label, t, "the label")
                if label.value is None and label.type != ty.ANY:
                    cx.type_error("a switch label must be known at compile time", label.span)
        if case.body is not None:
            _block(cx, case.body)


def _switch_on_action(cx: CheckContext, s: ast.SwitchStatement) -> None:
    table = _table_of(s.subject.base) if isinstance(s.subject, ast.MemberExpression) else None
    if table is None:
        cx.type_error("a switch on action_run needs table.apply().action_run itself as its subject", s.subject.span)
        return
    names = [a.name for a in table.actions]
    seen: set[str] = set()
    for case in s.cases:
        for label in case.labels:
            if isinstance(label, ast.Default):
                continue
            if not isinstance(label, ast.Name):
                cx.type_error("a label must be the name of one of the table's actions", label.span)
            elif label.name not in names:
                note = choices(label.name, names, "actions of the table")
                cx.type_error(f"table {table.name} has no action {label.name}", label.span, note)
            elif label.name in seen:
                cx.type_error(f"the label {label.name} stands here twice", label.span)
            else:
                seen.add(label.name)
        if case.body is not None:
            _block(cx, case.body)


def _table_of(call: ast.Expression) -> ast.TableDecl | None:
    if isinstance(call, ast.CallExpression) and call.target is not None and call.target.base is not None:
        t = call.target.base.type
        if isinstance(t, ty.ApplicableType) and isinstance(t.declaration, ast.TableDecl):
            return t.declaration
    return None


def _declare(cx: CheckContext, s: ast.DeclarationStatement) -> None:
    d = s.declaration
    if isinstance(d, ast.Constant):
        declare_constant(cx, d)
    elif isinstance(d, ast.Variable):
        declare_variable(cx, d)
    else:
        cx.type_error("instances stand before the apply block, not in it", d.span)


def declare_constant(cx: CheckContext, d: ast.Constant) -> None:
    t = type_of(cx, d.type)
    converted(cx, d.initial, t, f"constant {d.name}")
    if d.initial.type != ty.ANY and not _is_constant(cx, d.initial):
        cx.type_error(f"the value of constant {d.name} is not known at compile time", d.initial.span)
    symbol = cx.declare(Symbol("const", d.name, d, t, d.initial.value), d.span)
    if t == ty.INT and d.initial.value is None:
        symbol.type = ty.ANY


def _is_constant(cx: CheckContext, e: ast.Expression) -> bool:
    if isinstance(e, ast.ListExpression):
        return all(_is_constant(cx, i) for i in e.items)
    if isinstance(e, ast.StructExpression):
        return all(_is_constant(cx, i) for _, i in e.items)
    return e.value is not None


def declare_variable(cx: CheckContext, d: ast.Variable) -> None:
    t = type_of(cx, d.type)
    if t in (ty.INT, ty.VOID) or isinstance(t, ty.Extern | ty.ApplicableType):
        cx.type_error(f"a variable cannot be of type {t}", d.span)
        t = ty.ANY
    if d.initial is not None:
        converted(cx, d.initial, t, f"variable {d.name}")
    cx.declare(Symbol("variable", d.name, d, t), d.span)


def always_returns(s: ast.Statement | None) -> bool:
    """Whether control never runs past the end of `s`."""
    match s:
        case ast.ReturnStatement() | ast.ExitStatement():
            return True
        case ast.BlockStatement():
            return any(always_returns(inner) for inner in s.statements)
        case ast.IfStatement():
            return always_returns(s.then) and always_returns(s.otherwise)
        case ast.SwitchStatement():
            bodies = [case.body for case in s.cases if case.body is not None]
            total = any(isinstance(label, ast.Default) for case in s.cases for label in case.labels)
            return total and all(always_returns(body) for body in bodies)
    return False


STATEMENTS: Handlers = {
    ast.BlockStatement: _block,
    ast.EmptyStatement: _empty,
    ast.ExitStatement: _exit,
    ast.ReturnStatement: _return,
    ast.AssignmentStatement: _assignment,
    ast.CallStatement: _callstatement,
    ast.IfStatement: _if,
    ast.SwitchStatement: _switch,
    ast.ForStatement: _for,
    ast.ForInStatement: _for_in,
    ast.BreakStatement: _break,
    ast.ContinueStatement: _break,
    ast.DeclarationStatement: _declare,
}
