"""Parser states and their transitions (specification, chapter 13)."""

from __future__ import annotations

from p4c.frontend.parse import ast
from p4c.frontend.parse.cursor import Cursor, SyntaxFailureError
from p4c.frontend.parse.expression import read_expression, read_key_sets
from p4c.frontend.parse.statement import read_statement


def read_state(p: Cursor) -> ast.StateDecl:
    p.expect("state")
    word = p.name("the state's name")
    p.expect("{")
    statements: list[ast.Statement] = []
    transition = None
    while not p.on("}") and p.token.kind != "end":
        level = p.level
        try:
            if p.on("transition"):
                transition = _transition(p)
                break
            statements.append(read_statement(p))
        except SyntaxFailureError:
            p.recover(level)
    p.expect("}", "at the end of a state: nothing may follow its transition")
    return ast.StateDecl(word.span, word.text, statements, transition)


def _transition(p: Cursor) -> ast.TransitionStatement:
    token = p.expect("transition")
    if not p.on("select"):
        word = p.name("a state")
        p.expect(";", "after a transition")
        return ast.TransitionStatement(word.span, word.text)
    p.take()
    p.expect("(", "after select")
    keys = [read_expression(p)]
    while p.accept(","):
        keys.append(read_expression(p))
    p.expect(")", "after the select's keys")
    p.expect("{")
    cases = []
    while not p.on("}"):
        at = p.token
        sets = read_key_sets(p)
        p.expect(":", "after a select label")
        word = p.name("a state")
        p.expect(";", "after a select case")
        cases.append(ast.SelectCase(at.span, sets, word.text))
    p.expect("}")
    p.accept(";")
    return ast.TransitionStatement(token.span, None, keys, cases)
