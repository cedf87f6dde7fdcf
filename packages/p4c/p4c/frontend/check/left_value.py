"""Left values: variables, writable parameters, and parts of them."""

from p4c.frontend.check.context import CheckContext
from p4c.frontend.check.types import ANY, StackType
from p4c.frontend.diagnostics import article
from p4c.frontend.parse import ast


def is_left_value(cx: CheckContext, e: ast.Expression) -> bool:
    if isinstance(e, ast.Name):
        return e.target is not None and e.target.writable
    if isinstance(e, ast.MemberExpression):
        if isinstance(e.base.type, StackType) and e.name not in ("next", "last"):
            return False
        return is_left_value(cx, e.base)
    if isinstance(e, ast.IndexExpression | ast.SliceExpression):
        return is_left_value(cx, e.base)
    return False


def need_left_value(cx: CheckContext, e: ast.Expression, what: str) -> None:
    """Complain unless `e` can be written; count that it is."""
    root = e
    while isinstance(root, ast.MemberExpression | ast.IndexExpression | ast.SliceExpression):
        root = root.base
    if isinstance(root, ast.Name) and root.target is not None:
        root.target.written += 1
    if e.type == ANY or is_left_value(cx, e):
        return
    note = ""
    if isinstance(root, ast.Name) and root.target is not None:
        symbol = root.target
        if symbol.kind == "parameter":
            way = f"an '{symbol.direction}' parameter" if symbol.direction else "a parameter without direction"
            note = f"{symbol.name} is {way}: only 'out' and 'inout' parameters can be written"
        else:
            note = f"{symbol.name} is {article(symbol.kind)}"
    cx.type_error(f"{what} must be something that can be written", e.span, note)
