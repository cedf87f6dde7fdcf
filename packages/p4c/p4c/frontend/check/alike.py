"""Expressions that are written the same."""

from __future__ import annotations

from dataclasses import fields

from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.parse import ast


def alike(a: ast.Expression, b: ast.Expression) -> bool:
    """Whether the two, which are checked, were written the same."""
    if type(a) is not type(b):
        return False
    match a, b:
        case (ast.Name(), ast.Name()):
            return a.name == b.name
        case (ast.CastExpression(), ast.CastExpression()):
            return a.type == b.type and alike(a.operand, b.operand)
        case (
            ast.MemberExpression()
            | ast.IndexExpression()
            | ast.SliceExpression()
            | ast.UnaryExpression()
            | ast.BinaryExpression(),
            _,
        ):
            pairs = [(getattr(a, part.name), getattr(b, part.name)) for part in fields(a) if part.init]
            return all(
                alike(x, y) if isinstance(x, ast.Expression) else x == y for x, y in pairs if type(x) is not SourceSpan
            )
    return a.value is not None and a.value == b.value and a.type == b.type
