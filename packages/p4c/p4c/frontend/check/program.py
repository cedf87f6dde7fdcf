"""The whole program, declaration after declaration."""

from __future__ import annotations

from p4c.frontend.check import block, call, declaration, expression, member, operator, statement
from p4c.frontend.check.context import CheckContext
from p4c.frontend.diagnostics import Diagnostics
from p4c.frontend.parse import ast

_EXPRESSIONS = expression.EXPRESSIONS | operator.EXPRESSIONS | member.EXPRESSIONS | call.EXPRESSIONS
_DECLARATIONS = declaration.DECLARATIONS | block.DECLARATIONS


_VERSIONS = 20180101, 20200408  # of v1model, that p4c knows


def check(program: ast.P4Program, diagnostics: Diagnostics) -> CheckContext:
    """Annotate the whole tree; complaints go to `diagnostics`."""
    cx = CheckContext(diagnostics, _EXPRESSIONS, statement.STATEMENTS, _DECLARATIONS)
    for d in program.declarations:
        cx.declaration(d)
    version = cx.scope.names.get("__v1model_version")
    if version is not None and isinstance(version.declaration, ast.Constant):
        first, last = _VERSIONS
        if not isinstance(version.value, int) or not first <= version.value <= last:
            message = f"V1MODEL_VERSION must be between {first} and {last}"
            cx.type_error(message, version.declaration.initial.span)
    if "main" not in cx.scope.names and not diagnostics.errors:
        note = "end the program with: V1Switch(…) main;"
        diagnostics.error("names", "the program has no package instance named main", program.span, note)
    return cx
