"""actions, and the primitives that parsers and deparsers call."""

from collections.abc import Mapping
from typing import TypeVar

from p4c.model.actions import Action, ActionParameter, Argument, Primitive, Text, Vector
from p4c.model.expressions import AccessField, Const, FieldRef, Kind, LastField, ValidBit
from p4c.model.externs import Counter, FieldList, LearnList, Meter
from p4c.model.limits import BITS_MAX
from p4c.model.loading.cursor import JsonCursor
from p4c.model.loading.expressions import expression, kinded
from p4c.model.loading.scope import LoadScope, choices, named
from p4c.model.primitives import SIGNATURES

T = TypeVar("T", Counter, Meter)
L = TypeVar("L", FieldList, LearnList)

_KINDS = {
    "data": Kind.DATA,
    "header": Kind.HEADER,
    "union": Kind.UNION,
    "stack": Kind.STACK,
    "union_stack": Kind.UNION_STACK,
}


def read_actions(root: JsonCursor, scope: LoadScope) -> tuple[Action, ...]:
    for at in root.list_of("actions"):
        number = at.get("id").integer()
        if number in scope.actions_by_id:
            at.fail(f"a second action has id {number}")
        parameters = tuple(
            ActionParameter(p.get("name").text(), p.get("bitwidth").integer(1, BITS_MAX))
            for p in at.get("runtime_data").items()
        )
        primitives = read_primitives(at.get("primitives").items(), scope, len(parameters))
        scope.actions_by_id[number] = Action(at.get("name").text(), number, parameters, primitives)
    return tuple(scope.actions_by_id.values())


def read_primitives(calls: list[JsonCursor], scope: LoadScope, locals_count: int = 0) -> tuple[Primitive, ...]:
    """The body of an action, or a single call of a parser or deparser."""
    primitives = tuple(_primitive(at, scope, locals_count) for at in calls)
    for at, primitive in zip(calls, primitives, strict=True):
        if primitive.op in ("_jump", "_jump_if_zero"):
            target = primitive.args[-1]
            assert isinstance(target, Const)
            if not 0 <= target.value <= len(primitives):
                at.fail(f"jump to primitive {target.value} of an action with {len(primitives)}")
    return primitives


def _primitive(at: JsonCursor, scope: LoadScope, locals_count: int) -> Primitive:
    op = at.get("op").text()
    if op not in SIGNATURES:
        at.unsupported(f"unknown primitive {op!r}; {choices(SIGNATURES)}")
    signature = SIGNATURES[op]
    given = at.get("parameters").items()
    if len(given) != len(signature):
        at.fail(f"{op} takes {len(signature)} parameters, not {len(given)}")
    args = tuple(_argument(word, p, scope, locals_count) for word, p in zip(signature, given, strict=True))
    return Primitive(op, args, at.source())


def _argument(word: str, at: JsonCursor, scope: LoadScope, locals_count: int) -> Argument:
    if word in _KINDS:
        return kinded(at, scope, _KINDS[word], locals_count)
    if word == "truth":
        condition = expression(at, scope, locals_count)
        return condition if condition.kind is Kind.BOOL else kinded(at, scope, Kind.DATA, locals_count)
    if word == "lvalue":
        target = expression(at, scope, locals_count)
        if isinstance(target, ValidBit) or not isinstance(target, FieldRef | LastField | AccessField):
            at.fail("this must be a field that can be written")
        if target.field.varbit:
            at.fail(f"the varbit field {target.field.name!r} can only be written by assign_VL")
        return target
    if word == "varbit":
        target = expression(at, scope, locals_count)
        if not isinstance(target, FieldRef | LastField | AccessField) or not target.field.varbit:
            at.fail("this must be a varbit field")
        return target
    if word == "any_stack":
        stack = expression(at, scope, locals_count)
        if stack.kind not in (Kind.STACK, Kind.UNION_STACK):
            at.fail("this must be a header stack or a header union stack")
        return stack
    if word == "target":
        target = expression(at, scope, locals_count)
        if not isinstance(target, Const):
            at.fail("a jump target must be a constant")
        return target
    if word == "field_list":
        return _listed(at, scope, scope.field_lists, "field list")
    if word == "learn_list":
        return _listed(at, scope, scope.learn_lists, "learn list")
    if word == "vector":
        return Vector(
            tuple(kinded(item, scope, Kind.DATA, locals_count) for item in _typed(at, "parameters_vector").items())
        )
    if word == "text":
        return Text(_typed(at, "string").text())
    if word == "counter":
        return _indirect(named(scope.counters, _typed(at, "counter_array"), "counter"), at)
    if word == "meter":
        return _indirect(named(scope.meters, _typed(at, "meter_array"), "meter"), at)
    if word == "register":
        return named(scope.registers, _typed(at, "register_array"), "register")
    assert word == "calculation"
    return named(scope.calculations, _typed(at, "calculation"), "calculation")


def _typed(at: JsonCursor, kind: str) -> JsonCursor:
    actual = at.get("type").text()
    if actual != kind:
        at.fail(f"expected a value of type {kind!r}, found {actual!r}")
    return at.get("value")


def _indirect(extern: T, at: JsonCursor) -> T:
    if extern.direct:
        at.fail(f"{extern.name!r} is direct: its table {extern.table!r} works it on a hit, no primitive may")
    return extern


def _listed(at: JsonCursor, scope: LoadScope, lists: Mapping[int, L], what: str) -> L:
    number = expression(at, scope)
    if not isinstance(number, Const):
        at.fail(f"a {what} must be given by a constant id")
    if number.value not in lists:
        at.fail(f"no {what} has id {number.value}")
    if number.value == 0:
        at.fail(f"simple_switch takes {what} 0 for no resubmit, recirculate or digest at all: ids must start at 1")
    return lists[number.value]
