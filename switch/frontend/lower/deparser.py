"""The deparser: the one order in which BMv2 emits headers."""

from __future__ import annotations

from switch.frontend import ir
from switch.frontend.lower.block import control_body
from switch.frontend.lower.context import Context, Methods, RefusalError
from switch.frontend.lower.values import BlockValue, ExternValue, HeaderValue, StackValue, UnionValue, leaves
from switch.frontend.parse import ast


def deparser(cx: Context, block: BlockValue) -> None:
    cx.block = "deparser"
    cx.frame, cx.out = block.frame, []
    control_body(cx, block)
    _emitted(cx, cx.out, block)


def _emitted(cx: Context, statements: list[ir.Stmt], block: BlockValue) -> None:
    for s in statements:
        if isinstance(s, ir.Primitive) and s.op == "emit":
            cx.program.deparser.extend(str(p) for p in s.parameters)
        elif isinstance(s, ir.Region):
            _emitted(cx, s.body, block)
        elif isinstance(s, ir.Branch) and _only_if_valid(s):
            _emitted(cx, s.then, block)
        elif not isinstance(s, ir.Leave):
            span = s.span if isinstance(s, ir.Primitive | ir.Branch | ir.Apply) else block.declaration.span
            note = "decide in egress which headers are valid: invalid ones are left out"
            raise RefusalError("BMv2's deparser emits headers in one fixed order, without conditions", span, note)


def _only_if_valid(s: ir.Branch) -> bool:
    """`if (h.isValid()) packet.emit(h)`: emit itself leaves out invalid headers."""
    if s.otherwise or not isinstance(s.condition, ir.Valid) or len(s.then) != 1:
        return False
    emitted = s.then[0]
    return isinstance(emitted, ir.Primitive) and [str(p) for p in emitted.parameters] == [s.condition.header]


def _packet_out_emit(cx: Context, e: ast.Call, a: list[ast.Expression], _o: ExternValue) -> None:
    if cx.block != "deparser":
        raise RefusalError("emit can be called in the deparser only", e.span)
    names: list[ir.Expr] = []
    for leaf in leaves(cx.value_of(a[0])):
        if isinstance(leaf, HeaderValue):
            names.append(ir.Object("header", leaf.name))
        elif isinstance(leaf, StackValue):
            names.extend(ir.Object("header", h.name) for h in leaf.headers)
        elif isinstance(leaf, UnionValue):
            names.extend(ir.Object("header", h.name) for h in leaf.members.values())
        else:
            raise RefusalError("only headers, stacks, unions and structs of them can be emitted", e.span)
    cx.emit("emit", *names, span=e.span)


METHODS: Methods = {"packet_out.emit": _packet_out_emit}
