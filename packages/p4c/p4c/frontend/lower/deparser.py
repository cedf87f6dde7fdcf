"""The deparser: the one order in which BMv2 emits headers."""

from p4c.frontend.flow import Apply, Branch, Emit, Flow, Leave, Region, Step
from p4c.frontend.lower.block import control_body
from p4c.frontend.lower.context import LowerContext, Methods, RefusalError
from p4c.frontend.lower.values import BlockValue, ExternValue, HeaderValue, StackValue, UnionValue, leaves
from p4c.frontend.parse import ast
from p4c.model.expressions import Unary, ValidBit
from p4c.model.headers import Header


def deparser(cx: LowerContext, block: BlockValue) -> None:
    cx.block = "deparser"
    cx.frame, cx.out = block.frame, []
    control_body(cx, block)
    _emitted(cx, cx.out, block)


def _emitted(cx: LowerContext, statements: list[Flow], block: BlockValue) -> None:
    for s in statements:
        if isinstance(s, Emit):
            cx.program.deparser.extend(s.headers)
        elif isinstance(s, Region):
            _emitted(cx, s.body, block)
        elif isinstance(s, Branch) and _only_if_valid(s):
            _emitted(cx, s.then, block)
        elif not isinstance(s, Leave):
            span = s.span if isinstance(s, Step | Branch | Apply) else block.declaration.span
            note = "decide in egress which headers are valid: invalid ones are left out"
            raise RefusalError("BMv2's deparser emits headers in one fixed order, without conditions", span, note)


def _only_if_valid(s: Branch) -> bool:
    """`if (h.isValid()) packet.emit(h)`: emit itself leaves out invalid headers."""
    if s.otherwise or len(s.then) != 1:
        return False
    emitted = s.then[0]
    return (
        isinstance(emitted, Emit)
        and len(emitted.headers) == 1
        and s.condition.of == Unary("d2b", ValidBit(emitted.headers[0]))
    )


def _packet_out_emit(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression], _o: ExternValue) -> None:
    if cx.block != "deparser":
        raise RefusalError("emit can be called in the deparser only", e.span)
    headers: list[Header] = []
    for leaf in leaves(cx.value_of(a[0])):
        if isinstance(leaf, HeaderValue):
            headers.append(leaf.header)
        elif isinstance(leaf, StackValue):
            headers.extend(h.header for h in leaf.headers)
        elif isinstance(leaf, UnionValue):
            headers.extend(h.header for h in leaf.members.values())
        else:
            raise RefusalError("only headers, stacks, unions and structs of them can be emitted", e.span)
    cx.out.append(Emit(headers, e.span))


METHODS: Methods = {"packet_out.emit": _packet_out_emit}
