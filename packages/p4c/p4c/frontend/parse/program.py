"""Tokens to a program; after a syntax error reading goes on with the next declaration."""

from __future__ import annotations

from p4c.frontend.diagnostics import Diagnostics
from p4c.frontend.parse import ast
from p4c.frontend.parse.cursor import Cursor, SyntaxFailureError
from p4c.frontend.parse.declaration import read_declaration
from p4c.frontend.parse.tokens import Tokens


def parse(tokens: Tokens, diagnostics: Diagnostics) -> ast.P4Program:
    """The whole program. Syntax errors are collected; the declarations around them are returned."""
    p = Cursor(tokens, diagnostics)
    declarations: list[ast.Declaration] = []
    while p.token.kind != "end":
        before = p.at
        level = p.level
        try:
            if not p.accept(";"):
                declarations.append(read_declaration(p))
        except SyntaxFailureError:
            p.recover(level)
            if p.on("}"):
                p.take()
            if p.at == before:
                p.take()
    return ast.P4Program(p.token.span, declarations)
