"""Expressions and the type-value objects they are made of."""

from __future__ import annotations

from switch.model.expressions import (
    ARITHMETIC,
    CASTS,
    COMPARISONS,
    LOGIC,
    AccessField,
    Binary,
    Bool,
    Const,
    Expression,
    HeaderRef,
    Kind,
    LastField,
    Local,
    RegisterCell,
    StackElement,
    StackRef,
    Ternary,
    Unary,
    UnionMember,
    UnionRef,
    UnionStackElement,
    UnionStackRef,
)
from switch.model.headers import Header, HeaderType
from switch.model.loading.cursor import Cursor
from switch.model.loading.scope import Scope, field_of, named

# Unary operations and what they take.
_UNARY = {
    "~": Kind.DATA,
    "d2b": Kind.DATA,
    "b2d": Kind.BOOL,
    "not": Kind.BOOL,
    "valid": Kind.HEADER,
    "valid_union": Kind.UNION,
    "last_stack_index": Kind.STACK,
    "size_stack": Kind.STACK,
}
_COMPARABLE = (Kind.DATA, Kind.BOOL, Kind.HEADER, Kind.UNION)
_OPERATORS = sorted(ARITHMETIC | CASTS | COMPARISONS | LOGIC | set(_UNARY) | {"?", "access_field"})


def kinded(at: Cursor, scope: Scope, kind: Kind, locals_count: int = 0) -> Expression:
    """An expression that must be of `kind`. `locals_count` is the number of the enclosing action's parameters."""
    found = expression(at, scope, locals_count)
    if found.kind is not kind:
        at.fail(f"expected a {kind.value} expression, found a {found.kind.value} one")
    return found


def expression(at: Cursor, scope: Scope, locals_count: int = 0) -> Expression:
    kind, value = at.get("type").text(), at.get("value")
    if kind == "expression":
        # A wrapper around another type-value object, or an operation.
        if isinstance(value.value, dict) and "type" in value.value:
            return expression(value, scope, locals_count)
        return _operation(value, scope, locals_count)
    if kind == "field":
        return scope.field(value)
    if kind == "hexstr":
        return Const(value.hexstr())
    if kind == "bool":
        return Bool(value.boolean())
    if kind in ("local", "runtime_data"):
        index = value.integer()
        if index >= locals_count:
            at.fail(f"parameter {index} of an action with {locals_count} parameters")
        return Local(index)
    if kind == "header":
        return HeaderRef(named(scope.headers, value, "header"))
    if kind == "header_stack":
        return StackRef(named(scope.stacks, value, "header stack"))
    if kind == "header_union":
        return UnionRef(named(scope.unions, value, "header union"))
    if kind == "header_union_stack":
        return UnionStackRef(named(scope.union_stacks, value, "header union stack"))
    if kind == "stack_field":
        stack_at, field_at = value.items(2)
        stack = named(scope.stacks, stack_at, "header stack")
        return LastField(stack, field_of(stack.type, field_at.text(), value))
    if kind == "register":
        array_at, index_at = value.items(2)
        register = named(scope.registers, array_at, "register")
        return RegisterCell(register, kinded(index_at, scope, Kind.DATA, locals_count))
    return at.unsupported(f"a value of type {kind!r} cannot stand in an expression")


def _operation(at: Cursor, scope: Scope, locals_count: int) -> Expression:
    op = at.get("op").text()

    def operand(side: str, kind: Kind) -> Expression:
        return kinded(at.get(side), scope, kind, locals_count)

    if op in _UNARY:
        return Unary(op, operand("right", _UNARY[op]))
    if op in ("+", "-") and at.get("left").is_null:
        return Binary(op, Const(0), operand("right", Kind.DATA))
    if op in ARITHMETIC or op in CASTS:
        return Binary(op, operand("left", Kind.DATA), operand("right", Kind.DATA))
    if op in LOGIC:
        return Binary(op, operand("left", Kind.BOOL), operand("right", Kind.BOOL))
    if op in ("==", "!="):
        left = expression(at.get("left"), scope, locals_count)
        if left.kind not in _COMPARABLE:
            at.fail(f"{op} does not compare a {left.kind.value}")
        return Binary(op, left, operand("right", left.kind))
    if op in COMPARISONS:
        return Binary(op, operand("left", Kind.DATA), operand("right", Kind.DATA))
    if op == "?":
        left = expression(at.get("left"), scope, locals_count)
        return Ternary(operand("cond", Kind.BOOL), left, operand("right", left.kind))
    if op in ("dereference_header_stack", "dereference_stack"):
        stack = operand("left", Kind.STACK)
        assert isinstance(stack, StackRef)  # nothing else is of that kind
        return StackElement(stack, operand("right", Kind.DATA))
    if op == "dereference_union_stack":
        union_stack = operand("left", Kind.UNION_STACK)
        assert isinstance(union_stack, UnionStackRef)
        return UnionStackElement(union_stack, operand("right", Kind.DATA))
    if op == "access_field":
        header = operand("left", Kind.HEADER)
        header_type = type_of(header)
        index = at.get("right").integer()
        if index >= len(header_type.fields):
            at.fail(f"header type {header_type.name!r} has {len(header_type.fields)} fields, not a number {index}")
        return AccessField(header, header_type.fields[index])
    if op == "access_union_header":
        union = operand("left", Kind.UNION)
        index = at.get("right").integer()
        if index >= len(members_of(union)):
            at.fail(f"the union has {len(members_of(union))} members, not a number {index}")
        return UnionMember(union, index)
    return at.unsupported(f"unknown operator {op!r}; known: {' '.join(_OPERATORS)}")


def type_of(header: Expression) -> HeaderType:
    """The type of a header expression."""
    if isinstance(header, HeaderRef):
        return header.header.type
    if isinstance(header, StackElement):
        return header.stack.stack.type
    if isinstance(header, UnionMember):
        return members_of(header.union)[header.member_index].type
    if isinstance(header, Ternary):
        return type_of(header.left)
    raise AssertionError(f"not a header: {header}")


def members_of(union: Expression) -> tuple[Header, ...]:
    """The headers of a union expression (for an element of a stack, those of its first)."""
    if isinstance(union, UnionRef):
        return union.union.headers
    if isinstance(union, UnionStackElement):
        return union.stack.stack.unions[0].headers
    if isinstance(union, Ternary):
        return members_of(union.left)
    raise AssertionError(f"not a union: {union}")
