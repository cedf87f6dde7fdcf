"""Checksums: the calls in the verify and compute controls, and the conditions around them."""

from __future__ import annotations

from functools import partial

from switch.frontend import ir
from switch.frontend.check.types import BOOL
from switch.frontend.lower.argument import algorithm, calculation, flat
from switch.frontend.lower.block import control_body
from switch.frontend.lower.context import Context, Functions, RefusalError
from switch.frontend.lower.operator import operation
from switch.frontend.lower.values import BlockValue
from switch.frontend.parse import ast


def checksums(cx: Context, name: str, block: BlockValue) -> None:
    cx.block = name
    cx.frame, cx.out = block.frame, []
    control_body(cx, block)
    _nothing_else(cx, cx.out, block, "calls of verify_checksum and update_checksum")


def _nothing_else(cx: Context, statements: list[ir.Stmt], block: BlockValue, allowed: str) -> None:
    for s in statements:
        if isinstance(s, ir.Region):
            _nothing_else(cx, s.body, block, allowed)
        elif not isinstance(s, ir.Leave):
            span = s.span if isinstance(s, ir.Primitive | ir.Branch | ir.Apply) else block.declaration.span
            raise RefusalError(f"BMv2 supports only {allowed} in control {block.name}", span)


def _checksum(cx: Context, e: ast.Call, a: list[ast.Expression], verify: bool, payload: bool) -> None:
    condition = cx.scalar_of(a[0])
    inputs = flat(cx, cx.value_of(a[1]), e.span, simple=True)
    if payload:
        inputs.append(ir.Object("payload", ""))
    target = cx.scalar_of(a[2])
    if not isinstance(target, ir.FieldRef):
        raise RefusalError("a checksum is kept in a whole header field", a[2].span)
    name = calculation(cx, algorithm(cx, a[3]), inputs, e.span)
    for outer in reversed(cx.conditions):
        condition = operation("&&", (outer, condition), BOOL, e.span)
    cx.program.checksums.append(ir.Checksum(target, name, condition, verify, e.span))


def conditional(cx: Context, s: ast.If) -> None:
    """A checksum has a condition of its own; an if around the call adds to that condition."""
    condition = cx.scalar_of(s.condition)
    for branch, wanted in ((s.then, condition), (s.otherwise, operation("!", (condition,), BOOL, s.span))):
        if branch is not None:
            cx.conditions.append(wanted)
            cx.statement(branch)
            cx.conditions.pop()


FUNCTIONS: Functions = {
    "verify_checksum": (("verify",), partial(_checksum, verify=True, payload=False)),
    "verify_checksum_with_payload": (("verify",), partial(_checksum, verify=True, payload=True)),
    "update_checksum": (("compute",), partial(_checksum, verify=False, payload=False)),
    "update_checksum_with_payload": (("compute",), partial(_checksum, verify=False, payload=True)),
}
