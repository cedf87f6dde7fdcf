"""Statements (specification, chapter 12), and the declarations that may stand among them."""

from collections.abc import Callable

from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.parse import ast
from p4c.frontend.parse.annotation import read_annotations
from p4c.frontend.parse.cursor import RESERVED, SOFT, Cursor, SyntaxFailureError
from p4c.frontend.parse.expression import read_arguments, read_expression, read_postfix, read_primary, read_type
from p4c.frontend.parse.tokens import Token

_ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "&=", "|=", "^="])
_TYPE_STARTS = frozenset(["bit", "int", "varbit", "bool", "error", "string", "tuple", "list"]) | SOFT


def read_block(p: Cursor) -> ast.BlockStatement:
    annotations = read_annotations(p)
    opening = p.expect("{")
    statements: list[ast.Statement] = []
    p.each(lambda: statements.append(read_statement(p)), "}")
    p.expect("}", "at the end of a block")
    return ast.BlockStatement(opening.span, statements, annotations)


def read_statement(p: Cursor) -> ast.Statement:
    token = p.token
    if p.on("@"):
        start = p.at
        read_annotations(p)
        if p.on("{"):
            p.go(start)
            return read_block(p)
        # Annotations of local declarations tell nothing that is used here.
    if p.on("{"):
        return read_block(p)
    if p.accept(";"):
        return ast.EmptyStatement(token.span)
    if p.on("if"):
        return _if(p)
    if p.on("return"):
        p.take()
        value = None if p.on(";") else read_expression(p)
        p.expect(";", "after return")
        return ast.ReturnStatement(token.span, value)
    if p.on("exit"):
        p.take()
        p.expect(";", "after exit")
        return ast.ExitStatement(token.span)
    if p.on("switch"):
        return _switch(p)
    if p.on("const"):
        return ast.DeclarationStatement(token.span, read_constant(p))
    if p.on("for") and p.peek().text == "(":
        return _for(p)
    if p.on("break", "continue") and p.peek().text == ";":
        word = p.take().text
        p.take()
        return (ast.BreakStatement if word == "break" else ast.ContinueStatement)(token.span)
    declaration = read_local_declaration(p)
    if declaration is not None:
        return ast.DeclarationStatement(token.span, declaration)
    return _assignment_or_call(p)


def _if(p: Cursor) -> ast.Statement:
    token = p.expect("if")
    p.expect("(", "after if")
    condition = read_expression(p)
    p.expect(")", "after the condition")
    then = read_statement(p)
    otherwise = read_statement(p) if p.accept("else") else None
    return ast.IfStatement(token.span, condition, then, otherwise)


def _for(p: Cursor) -> ast.Statement:
    token = p.take()
    p.expect("(")
    try:
        make = _for_head(p)
    except SyntaxFailureError:
        depth = 1  # behind the head, whose semicolons end no statement
        while depth and not p.on("{", "}") and p.token.kind != "end":
            text = p.take().text
            depth += (text == "(") - (text == ")")
        raise
    return make(token.span, read_statement(p))


def _for_head(p: Cursor) -> Callable[[SourceSpan, ast.Statement], ast.Statement]:
    """The head of a loop up to its `)`, as what makes the loop of its place and body."""
    read_annotations(p)
    if p.token.kind == "id" and p.peek().text == "in":
        raise p.fail("the variable of a loop over a range or list is declared in it: for (bit<8> i in 1..6)")
    over = p.attempt(_typed_in)
    if over is not None:
        ref, word = over
        first = read_expression(p)
        last = read_expression(p) if p.accept("..") else None
        p.expect(")", "after what the loop goes over")
        # (list<bit<8>>){1, 2} has values of the variable's type
        values = (
            first.operand if isinstance(first, ast.CastExpression) and isinstance(first.to, ast.TupleTypeRef) else first
        )
        variable = ast.Variable(word.span, word.text, ref, None)
        return lambda span, body: ast.ForInStatement(span, body, variable, values, last)
    initial = _clauses(p, ";")
    condition = read_expression(p)
    p.expect(";", "after the loop's condition")
    updates = _clauses(p, ")")
    return lambda span, body: ast.ForStatement(span, body, initial, condition, updates)


def _typed_in(p: Cursor) -> tuple[ast.TypeRef, Token] | None:
    ref = read_type(p)
    word = p.name()
    return (ref, word) if p.accept("in") else None


def _clauses(p: Cursor, end: str) -> list[ast.Statement]:
    return p.listed(lambda: _clause(p), end, "in the head of a loop")


def _clause(p: Cursor) -> ast.Statement:
    at = p.token
    head = p.attempt(_head)
    if head is None or head[1] is not None:
        return _assignment_or_call(p, None)
    ref, _, word = head
    p.expect("=", "after a loop's variable")
    return ast.DeclarationStatement(at.span, ast.Variable(word.span, word.text, ref, read_expression(p)))


def _switch(p: Cursor) -> ast.Statement:
    token = p.expect("switch")
    p.expect("(", "after switch")
    subject = read_expression(p)
    p.expect(")")
    p.expect("{")
    cases: list[ast.SwitchCase] = []
    while not p.on("}"):
        at = p.token
        label: ast.Expression = ast.Default(p.take().span) if p.on("default") else read_expression(p)
        p.expect(":", "after a switch label")
        body = read_block(p) if p.on("{") else None
        cases.append(ast.SwitchCase(at.span, [label], body))
    p.expect("}")
    return ast.SwitchStatement(token.span, subject, cases)


def _assignment_or_call(p: Cursor, end: str | None = ";") -> ast.Statement:
    """With `end` behind it, if there is one."""
    token = p.token
    # `|+|=`, `|-|=` and the shifts are two tokens.
    target = read_postfix(p, read_primary(p))
    if isinstance(target, ast.CallExpression) and (end is None or p.accept(end)):
        return ast.CallStatement(token.span, target)
    op = p.token
    joined = op.text in ("|+|", "|-|", "<<") and p.peek().text == "="
    if joined or op.text in _ASSIGNMENTS:
        text = p.take().text + (p.take().text if joined else "")
        value = read_expression(p)
        if end is not None:
            p.expect(end, "after an assignment")
        return ast.AssignmentStatement(op.span, target, text, value)
    if isinstance(target, ast.CallExpression):
        raise p.fail(f"expected ';' after a call, found {p.next_text()}")
    raise p.fail(f"expected '=' or a call, found {p.next_text()}")


def read_constant(p: Cursor) -> ast.Constant:
    p.expect("const")
    ref = read_type(p)
    word = p.name("the constant's name")
    p.expect("=", "after the constant's name")
    value = read_expression(p)
    p.expect(";", "after a constant")
    return ast.Constant(word.span, word.text, ref, value)


def read_local_declaration(p: Cursor) -> ast.Variable | ast.Instance | None:
    """`type name;`, `type name = value;` or `type(arguments) name;`; None if this is something else."""
    if p.token.kind != "id" or (p.token.text in RESERVED and p.token.text not in _TYPE_STARTS):
        return None
    head = p.attempt(_head)
    if head is None:
        return None
    ref, arguments, word = head
    if arguments is not None:
        if p.on("=", "{"):
            raise p.fail("instances with a body are not supported")
        p.expect(";", "after an instance")
        return ast.Instance(word.span, word.text, ref, arguments)
    initial = read_expression(p) if p.accept("=") else None
    p.expect(";", "after a variable")
    return ast.Variable(word.span, word.text, ref, initial)


def _head(p: Cursor) -> tuple[ast.TypeRef, list[ast.Argument] | None, Token] | None:
    """A type, perhaps arguments, and a name, behind which a declaration could go on."""
    ref = read_type(p)
    arguments = read_arguments(p) if p.on("(") else None
    word = p.name()
    return (ref, arguments, word) if p.on(";", "=", "{") else None
