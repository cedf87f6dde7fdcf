"""Checksums: the calls in the verify and compute controls, and the conditions around them."""

from __future__ import annotations

from functools import partial

from p4c.frontend.check.types import BOOL, Bits, strip
from p4c.frontend.flow import Apply, Branch, Flow, Leave, Region, Step
from p4c.frontend.lower.argument import algorithm, calculation, data_items, flat
from p4c.frontend.lower.block import control_body
from p4c.frontend.lower.context import Functions, LowerContext, RefusalError
from p4c.frontend.lower.operator import operation
from p4c.frontend.lower.values import BlockValue
from p4c.frontend.parse import ast
from p4c.model.expressions import FieldRef
from p4c.model.externs import Checksum, PayloadInput


def checksums(cx: LowerContext, name: str, block: BlockValue) -> None:
    cx.block = name
    cx.frame, cx.out = block.frame, []
    control_body(cx, block)
    _nothing_else(cx, cx.out, block, "calls of verify_checksum and update_checksum")


def _nothing_else(cx: LowerContext, statements: list[Flow], block: BlockValue, allowed: str) -> None:
    for s in statements:
        if isinstance(s, Region):
            _nothing_else(cx, s.body, block, allowed)
        elif not isinstance(s, Leave):
            span = s.span if isinstance(s, Step | Branch | Apply) else block.declaration.span
            raise RefusalError(f"BMv2 supports only {allowed} in control {block.name}", span)


def _checksum(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], verify: bool, payload: bool) -> None:
    condition = cx.scalar_of(a[0])
    items = [item for part in _joined_parts(a[1]) for item in flat(cx, cx.value_of(part), e.span, simple=True)]
    inputs = (*data_items(items), *[PayloadInput()] * payload)
    target = cx.scalar_of(a[2]).of
    if not isinstance(target, FieldRef):
        raise RefusalError("a checksum is kept in a whole header field", a[2].span)
    made = calculation(cx, algorithm(cx, a[3]), inputs, e.span)
    for outer in reversed(cx.conditions):
        condition = operation("&&", (outer, condition), BOOL, e.span)
    name, source = f"cksum_{len(cx.program.checksums)}", cx.diagnostics.source(e.span)
    cx.program.checksums.append(Checksum(name, target, made, condition.operand, verify, not verify, source))


def _joined_parts(e: ast.Expression) -> list[ast.Expression]:
    """The data of a checksum, apart at each `++`: its parts are joined anyway. A cast to more bits puts zeros first."""
    if isinstance(e, ast.ListExpression):
        return [part for item in e.items for part in _joined_parts(item)]
    if isinstance(e, ast.BinaryExpression) and e.op == "++" and e.value is None:
        return [*_joined_parts(e.left), *_joined_parts(e.right)]
    if isinstance(e, ast.CastExpression) and e.value is None:
        to, of = strip(e.type), strip(e.operand.type)
        if isinstance(to, Bits) and isinstance(of, Bits) and not to.signed and not of.signed and to.width >= of.width:
            zeros = ast.Number(e.span, 0, to.width - of.width, False, "0")
            zeros.type, zeros.value = Bits(to.width - of.width), 0
            return [*[zeros] * (to.width > of.width), *_joined_parts(e.operand)]
    return [e]


def conditional(cx: LowerContext, s: ast.IfStatement) -> None:
    """A checksum has a condition; an if around the call adds to that condition."""
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
