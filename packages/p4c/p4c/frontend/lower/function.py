"""v1model's extern functions as BMv2's primitives, and the controls in which each may be called."""

from __future__ import annotations

from functools import partial

from p4c.frontend.check.types import INT, Bits, CompositeType
from p4c.frontend.declared import DeclaredDigest
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import ParserStep
from p4c.frontend.lower.argument import algorithm, calculation, calculation_inputs, empty_field_list, flat, into, number
from p4c.frontend.lower.context import BLOCKS, Functions, LowerContext, RefusalError
from p4c.frontend.lower.values import Literal, identity
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.actions import Text, Vector
from p4c.model.expressions import Const, FieldRef
from p4c.model.externs import FieldList, LearnList
from p4c.model.parsers import Verify


def _mark_to_drop(cx: LowerContext, e: ast.CallExpression, _a: list[ast.Expression]) -> None:
    cx.emit("mark_to_drop", cx.program.headers["standard_metadata"], span=e.span)


def _truncate(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    cx.emit("truncate", number(cx, a[0]), span=e.span)


def _clone_kind(cx: LowerContext, e: ast.Expression, span: SourceSpan) -> str:
    value = cx.value_of(e)
    assert isinstance(value, Literal)
    member = value.value.member
    wanted = "I2E" if cx.block == "ingress" else "E2E"
    if member != wanted:
        raise RefusalError(f"in {cx.block} a clone is CloneType.{wanted}, not CloneType.{member}", span)
    return "clone_ingress_pkt_to_egress" if member == "I2E" else "clone_egress_pkt_to_egress"


def _clone(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    op = _clone_kind(cx, a[0], e.span)
    cx.emit(op, number(cx, a[1]), empty_field_list(cx, "fl"), span=e.span)


def _clone_preserving_field_list(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    op = _clone_kind(cx, a[0], e.span)
    cx.emit(op, number(cx, a[1]), _preserved(cx, a[2], e.span), span=e.span)


def _clone3(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    op = _clone_kind(cx, a[0], e.span)
    cx.emit(op, number(cx, a[1]), _listed(cx, a[2], e.span), span=e.span)


def _again_listed(op: str, cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    cx.emit(op, _listed(cx, a[0], e.span), span=e.span)


def _listed(cx: LowerContext, e: ast.Expression, span: SourceSpan) -> FieldList:
    """The fields that a call of v1model before 2021 lists itself; a number, as in recirculate(0), lists none."""
    items = [] if e.type == INT or e.value is not None else flat(cx, cx.value_of(e), span)
    fields = tuple(item.of for item in items if isinstance(item.of, FieldRef))
    key = ("field list", *map(identity, fields))
    if not fields:
        return empty_field_list(cx, "fl")
    if key not in cx.known:
        lists = cx.program.field_lists
        cx.known[key] = FieldList(f"fl_{len(lists) + 1}", len(lists) + 1, fields)
        lists.append(cx.known[key])
    found: FieldList = cx.known[key]
    return found


def _again(op: str, cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    cx.emit(op, _preserved(cx, a[0], e.span), span=e.span)


def _preserved(cx: LowerContext, e: ast.Expression, span: SourceSpan) -> FieldList:
    """The list of metadata fields tagged with `@field_list(index)`."""
    index = cx.scalar_of(e).number
    if index is None:
        raise RefusalError("the index of a field list must be known at compile time", span)
    name = f"field_list{index}"
    found = next((f for f in cx.program.field_lists if f.name == name), None)
    if found is None:
        message = f"no metadata field is tagged with @field_list({index}): nothing is preserved"
        cx.diagnostics.warning("target", message, span)
        found = empty_field_list(cx, name)
    return found


def _digest(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    message = "the embedded switch has no digests: it refuses this program when it is loaded; BMv2 runs it"
    cx.diagnostics.warning("target", message, e.span)
    t = a[1].type
    callee = e.target
    if callee.type_arguments and isinstance(callee.type_arguments[0], CompositeType):
        t = callee.type_arguments[0]
    name = t.name if isinstance(t, CompositeType) and not t.anonymous else "digest"
    items = tuple(item.of for item in flat(cx, cx.value_of(a[1]), e.span) if isinstance(item.of, FieldRef | Const))
    key = ("digest", name, *map(identity, items))
    found = cx.known.get(key)
    if found is None:
        found = cx.known[key] = LearnList(name, len(cx.program.digests) + 1, items)
        cx.program.digests.append(DeclaredDigest(name, t, found))
    cx.emit("generate_digest", number(cx, a[0]), found, span=e.span)


def _random(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    into(cx, "modify_field_rng_uniform", a[0], e.span, number(cx, a[1]), number(cx, a[2]))


def _hash(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    base, largest = number(cx, a[2]), number(cx, a[4], Bits(64))
    inputs = calculation_inputs(flat(cx, cx.value_of(a[3]), e.span))
    made = calculation(cx, algorithm(cx, a[1]), inputs, e.span)
    into(cx, "modify_field_with_hash_based_offset", a[0], e.span, base, made, largest)


def _static_assert(_cx: LowerContext, _e: ast.CallExpression, _a: list[ast.Expression]) -> None:
    pass  # the checker has decided the condition


def _log_msg(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    if not isinstance(a[0].value, str):
        raise RefusalError("the format of log_msg must be a string literal", a[0].span)
    items: list[Scalar] = []
    if len(a) > 1:
        items = flat(cx, cx.value_of(a[1]), e.span)
    cx.emit("log_msg", Text(a[0].value), Vector(tuple(item.data for item in items)), span=e.span)


def _verify(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    condition, error = map(cx.scalar_of, a)
    cx.out.append(ParserStep(Verify(condition.operand, error.operand), e.span))


def _as_it_is(op: str, cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    cx.emit(op, *map(cx.scalar_of, a), span=e.span)


_PIPELINES = ("ingress", "egress")
FUNCTIONS: Functions = {
    "clone": (_PIPELINES, _clone),
    "clone_preserving_field_list": (_PIPELINES, _clone_preserving_field_list),
    "resubmit_preserving_field_list": (("ingress",), partial(_again, "resubmit")),
    "recirculate_preserving_field_list": (("egress",), partial(_again, "recirculate")),
    "clone3": (_PIPELINES, _clone3),
    "resubmit": (("ingress",), partial(_again_listed, "resubmit")),
    "recirculate": (("egress",), partial(_again_listed, "recirculate")),
    "digest": (("ingress",), _digest),
    "verify": (("parser",), _verify),
    "mark_to_drop": (_PIPELINES, _mark_to_drop),
    "random": (_PIPELINES, _random),
    "hash": (_PIPELINES, _hash),
    "truncate": (_PIPELINES, _truncate),
    "log_msg": (("parser", *_PIPELINES), _log_msg),
    "assert": (("parser", *_PIPELINES), partial(_as_it_is, "assert")),
    "assume": (("parser", *_PIPELINES), partial(_as_it_is, "assume")),
    "static_assert": (tuple(BLOCKS), _static_assert),
}
