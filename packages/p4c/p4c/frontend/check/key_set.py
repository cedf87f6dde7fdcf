"""Elements of select cases and table entries: values, masks, ranges and wildcards."""

from __future__ import annotations

from p4c.frontend.check.context import CheckContext
from p4c.frontend.check.conversion import converted
from p4c.frontend.check.types import ANY, Enum, Type, strip
from p4c.frontend.parse import ast


def key_set_element(cx: CheckContext, key: ast.Expression, wanted: Type) -> None:
    """A value, mask, range or wildcard for a key of type `wanted`."""
    if isinstance(key, ast.Default):
        return
    if isinstance(key, ast.BinaryExpression) and key.op in ("&&&", ".."):
        # Masks and bounds are numbers, also where the key is an enum.
        wanted = strip(wanted) if isinstance(wanted, Enum) else wanted
        for side in (key.left, key.right):
            converted(cx, side, wanted, "the key")
            _need_constant(cx, side)
        key.type = wanted
        return
    converted(cx, key, wanted, "the key")
    _need_constant(cx, key)


def _need_constant(cx: CheckContext, e: ast.Expression) -> None:
    if e.value is None and e.type != ANY:
        cx.type_error("a key must be known at compile time", e.span)
