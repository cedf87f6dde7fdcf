"""Statements; control flow stays structured (`flow.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from p4c.frontend.check.scope import Callee
from p4c.frontend.check.types import BOOL, INT, Bits, CompositeType
from p4c.frontend.declared import DeclaredDigest
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.flow import Apply, Branch, Flow, Leave, ParserStep, Quit, Region, leaves_early, walk
from p4c.frontend.lower import checksum, deparser, object
from p4c.frontend.lower.argument import algorithm, calculation, data_items, empty_field_list, flat, into, number
from p4c.frontend.lower.assignment import assign, assign_scalar, evaluated, header_object, pinned
from p4c.frontend.lower.block import apply_control, variable
from p4c.frontend.lower.checksum import conditional
from p4c.frontend.lower.context import BLOCKS, Functions, LowerContext, RefusalError, Statements
from p4c.frontend.lower.inline import call_action, call_function
from p4c.frontend.lower.operator import binary, operation
from p4c.frontend.lower.states import extraction
from p4c.frontend.lower.states.parser import apply_parser
from p4c.frontend.lower.storage import temporary
from p4c.frontend.lower.table import action_name, apply_table
from p4c.frontend.lower.values import ExternValue, Literal, StackValue, identity
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar, constant
from p4c.model.actions import Text, Vector
from p4c.model.expressions import Const, FieldRef, Local
from p4c.model.externs import FieldInput, FieldList, LearnList
from p4c.model.parsers import Verify


# v1model's extern functions as BMv2's primitives, and the controls in which each may be called.
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
    field_list: FieldList = cx.known[key]
    return field_list


def _again(op: str, cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    cx.emit(op, _preserved(cx, a[0], e.span), span=e.span)


def _preserved(cx: LowerContext, e: ast.Expression, span: SourceSpan) -> FieldList:
    """The list of metadata fields tagged with `@field_list(index)`."""
    index = cx.scalar_of(e).number
    if index is None:
        raise RefusalError("the index of a field list must be known at compile time", span)
    name = f"field_list{index}"
    field_list = next((f for f in cx.program.field_lists if f.name == name), None)
    if field_list is None:
        message = f"no metadata field is tagged with @field_list({index}): nothing is preserved"
        cx.diagnostics.warning("target", message, span)
        field_list = empty_field_list(cx, name)
    return field_list


def _digest(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    t = a[1].type
    callee = e.target
    if callee.type_arguments and isinstance(callee.type_arguments[0], CompositeType):
        t = callee.type_arguments[0]
    name = t.name if isinstance(t, CompositeType) and not t.anonymous else "digest"
    items = data_items(flat(cx, cx.value_of(a[1]), e.span))
    key = ("digest", name, *(identity(i.field) if isinstance(i, FieldInput) else i for i in items))
    learn_list = cx.known.get(key)
    if learn_list is None:
        learn_list = cx.known[key] = LearnList(name, len(cx.program.digests) + 1, items)
        cx.program.digests.append(DeclaredDigest(name, t, learn_list))
    cx.emit("generate_digest", number(cx, a[0]), learn_list, span=e.span)


def _random(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    into(cx, "modify_field_rng_uniform", a[0], e.span, number(cx, a[1]), number(cx, a[2]))


def _hash(cx: LowerContext, e: ast.CallExpression, a: list[ast.Expression]) -> None:
    base, largest = number(cx, a[2]), number(cx, a[4], Bits(64))
    inputs = data_items(flat(cx, cx.value_of(a[3]), e.span))
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


# Calls of v1model's externs, dispatched by name.
_FUNCTIONS = FUNCTIONS | checksum.FUNCTIONS
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


def _block(cx: LowerContext, s: ast.BlockStatement) -> None:
    if any(a.name == "atomic" for a in s.annotations):
        with cx.apart() as made:
            for item in s.statements:
                cx.statement(item)
        if any(isinstance(inner, Apply) for inner in walk(made)):
            message = "BMv2 is atomic within one action: this block, which applies a table, is not"
            cx.diagnostics.warning("target", message, s.span)
            cx.out.extend(made)
            return
        if leaves_early(made):
            raise RefusalError("an @atomic block cannot return: BMv2 is atomic within one action only", s.span)
        cx.out.append(Region(made, whole=True, span=s.span))
        return
    for item in s.statements:
        cx.statement(item)


def _empty(cx: LowerContext, _s: ast.EmptyStatement) -> None:
    pass


def _exit(cx: LowerContext, _s: ast.ExitStatement) -> None:
    cx.out.append(Quit())


def _return(cx: LowerContext, s: ast.ReturnStatement) -> None:
    if s.value is not None and cx.result is not None:
        assign(cx, cx.result, cx.value_of(s.value), s.span)
    if cx.in_loop:
        loop = cx.loops[-1]
        loop.returned = loop.returned or temporary(cx, BOOL)
        assign_scalar(cx, loop.returned, constant(1, BOOL), s.span)
    cx.out.append(Leave())


def _assignment(cx: LowerContext, s: ast.AssignmentStatement) -> None:
    if s.op == "=" or not isinstance(s.value, ast.BinaryExpression):
        target, value = evaluated(cx, (s.target, True), (s.value, False))
    else:
        target, right = evaluated(cx, (s.target, True), (s.value.right, False))
        target = pinned(cx, target, s.span)
        value = binary(cx, s.value, target, right)
    assign(cx, target, value, s.span)


def _declare(cx: LowerContext, s: ast.DeclarationStatement) -> None:
    if isinstance(s.declaration, ast.Variable):
        variable(cx, s.declaration)


def _if(cx: LowerContext, s: ast.IfStatement) -> None:
    if cx.block in ("verify", "compute"):
        conditional(cx, s)
        return
    if _branch_on_table(cx, s):
        return
    condition = cx.scalar_of(s.condition)
    if condition.number is not None:
        taken = s.then if condition.number else s.otherwise
        if taken is not None:
            cx.statement(taken)
        return
    then, otherwise = cx.body(s.then), cx.body(s.otherwise)
    cx.out.append(Branch(condition, then, otherwise, s.condition.span))


def _branch_on_table(cx: LowerContext, s: ast.IfStatement) -> bool:
    """`if (table.apply().hit)` and its kin become next tables by hit and miss."""
    condition, negated = s.condition, False
    while isinstance(condition, ast.UnaryExpression) and condition.op == "!":
        condition, negated = condition.operand, not negated
    if not isinstance(condition, ast.MemberExpression) or not isinstance(condition.base, ast.CallExpression):
        return False
    callee = condition.base.target
    if not isinstance(callee, Callee) or callee.kind != "table":
        return False
    applied = apply_table(cx, condition.base)
    then, otherwise = cx.body(s.then), cx.body(s.otherwise)
    if (condition.name == "hit") != negated:
        applied.hit, applied.miss = then, otherwise
    else:
        applied.hit, applied.miss = otherwise, then
    return True


def _switch(cx: LowerContext, s: ast.SwitchStatement) -> None:
    subject = s.subject
    if isinstance(subject, ast.MemberExpression) and subject.name == "action_run":
        _switch_on_action(cx, s, subject)
        return
    if cx.in_action:
        message = "p4c refuses a switch in an action for BMv2: write if and else for a program that both compile"
        cx.diagnostics.warning("target", message, s.span)
    value = cx.scalar_of(subject)
    if not isinstance(value.of, Const | FieldRef | Local):
        kept = temporary(cx, value.type)
        assign_scalar(cx, kept, value, s.span)
        value = kept
    written = _switch_chain(cx, s, value)
    cx.out.extend(written)


def _switch_chain(cx: LowerContext, s: ast.SwitchStatement, value: Scalar) -> list[Flow]:
    """Cases in order as a chain of branches, the default last wherever it stands."""
    result: list[Flow] = []
    chain: list[tuple[Scalar, list[Flow], SourceSpan]] = []
    for labels, is_default, case in _arms(s):
        tests = [operation("==", (value, cx.scalar_of(label)), BOOL, label.span) for label in labels]
        made = cx.body(case.body)
        if is_default:
            result = made
        else:
            condition = tests[0]
            for other in tests[1:]:
                condition = operation("||", (condition, other), BOOL, case.span)
            chain.append((condition, made, case.span))
    for condition, made, span in reversed(chain):
        result = [Branch(condition, made, result, span)]
    return result


def _switch_on_action(cx: LowerContext, s: ast.SwitchStatement, subject: ast.MemberExpression) -> None:
    call = subject.base
    assert isinstance(call, ast.CallExpression)
    applied = apply_table(cx, call)
    for labels, is_default, case in _arms(s):
        names = [action_name(cx, label, call) for label in labels if isinstance(label, ast.Name)]
        body = cx.body(case.body)
        applied.cases.update(dict.fromkeys(names, body))
        if is_default:
            applied.default = body
    if set(applied.cases) >= {definition.name for definition, _ in applied.table.actions}:
        applied.default = None


def _arms(s: ast.SwitchStatement) -> Iterator[tuple[list[ast.Expression], bool, ast.SwitchCase]]:
    """The cases that have a body, with all labels that lead there; and whether `default`, which is left out, does."""
    labels: list[ast.Expression] = []
    is_default = False
    for case in s.cases:
        if isinstance(case.labels[0], ast.Default):
            is_default = True
        else:
            labels.append(case.labels[0])
        if case.body is not None:
            yield labels, is_default, case
            labels, is_default = [], False


def _call(cx: LowerContext, s: ast.CallStatement) -> None:
    e = s.call
    callee: Callee = e.target
    match callee.kind:
        case "header":
            _header_method(cx, e, callee)
        case "stack":
            assert callee.base is not None
            stack = cx.value_of(callee.base)
            assert isinstance(stack, StackValue)
            count = constant(min(e.arguments[0].expression.value, stack.type.size), Bits(32))
            op = "push" if callee.name == "push_front" else "pop"
            cx.emit(op, stack.stack, count, span=e.span)
        case "table":
            apply_table(cx, e)
        case "action":
            call_action(cx, e, callee)
        case "function":
            call_function(cx, e, callee)
        case "control":
            apply_control(cx, e, callee)
        case "parser":
            apply_parser(cx, e, callee)
        case "extern_function" | "extern_method":
            call_extern(cx, e, callee)
        case _:
            raise RefusalError(f"{callee.name} has no effect as a statement", e.span)


def _header_method(cx: LowerContext, e: ast.CallExpression, callee: Callee) -> None:
    assert callee.base is not None
    header = header_object(cx.value_of(callee.base), e.span)
    if callee.name == "isValid":
        return
    cx.emit("add_header" if callee.name == "setValid" else "remove_header", header, span=e.span)


STATEMENTS: Statements = {
    ast.BlockStatement: _block,
    ast.EmptyStatement: _empty,
    ast.ExitStatement: _exit,
    ast.ReturnStatement: _return,
    ast.AssignmentStatement: _assignment,
    ast.DeclarationStatement: _declare,
    ast.IfStatement: _if,
    ast.SwitchStatement: _switch,
    ast.CallStatement: _call,
}
