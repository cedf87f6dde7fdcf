"""Calls of v1model's externs, dispatched by name."""

from __future__ import annotations

from p4c.frontend.check.scope import Callee
from p4c.frontend.lower import checksum, deparser, function, object
from p4c.frontend.lower.context import BLOCKS, LowerContext, RefusalError
from p4c.frontend.lower.states import extraction
from p4c.frontend.lower.values import ExternValue
from p4c.frontend.parse import ast

_FUNCTIONS = function.FUNCTIONS | checksum.FUNCTIONS
_METHODS = object.METHODS | extraction.METHODS | deparser.METHODS


def call_extern(cx: LowerContext, e: ast.CallExpression, callee: Callee) -> None:
    arguments = [a for a in callee.arguments if a is not None]  # the checker has complained of missing ones
    if callee.kind == "extern_method":
        assert callee.base is not None
        owner = cx.value_of(callee.base)
        assert isinstance(owner, ExternValue)
        method = _METHODS.get(callee.name)
        if method is None:
            raise RefusalError(f"BMv2's simple_switch has no {callee.name}", e.span)
        method(cx, e, arguments, owner)
        return
    places, lower = _FUNCTIONS.get(callee.name, ((), None))
    if lower is None:
        known = ", ".join(sorted(_FUNCTIONS))
        raise RefusalError(f"BMv2's simple_switch has no {callee.name}", e.span, f"extern functions: {known}")
    if cx.block not in places:
        allowed = " or ".join(BLOCKS[p] for p in places)
        raise RefusalError(f"{callee.name} can be called in {allowed}, not in {BLOCKS[cx.block]}", e.span)
    cx.program.calls_externs = cx.program.calls_externs or cx.block != "parser"
    lower(cx, e, arguments)
