"""Expressions and the type-value objects they are made of."""

from p4c.model import expressions as ex
from p4c.model.headers import Header, HeaderType, Stack, Union, UnionStack
from p4c.model.loading.cursor import JsonCursor
from p4c.model.loading.scope import LoadScope, field_of, named

# Unary operations and what they take.
_UNARY = {
    "~": ex.Kind.DATA,
    "d2b": ex.Kind.DATA,
    "b2d": ex.Kind.BOOL,
    "not": ex.Kind.BOOL,
    "valid": ex.Kind.HEADER,
    "valid_union": ex.Kind.UNION,
    "last_stack_index": ex.Kind.STACK,
    "size_stack": ex.Kind.STACK,
}
_COMPARABLE = (ex.Kind.DATA, ex.Kind.BOOL, ex.Kind.HEADER, ex.Kind.UNION)
_OPERATORS = sorted(ex.ARITHMETIC | ex.CASTS | ex.COMPARISONS | ex.LOGIC | set(_UNARY) | {"?", "access_field"})


def kinded(at: JsonCursor, scope: LoadScope, kind: ex.Kind, locals_count: int = 0) -> ex.Expression:
    """An expression that must be of `kind`. `locals_count` is the number of the enclosing action's parameters."""
    operand = expression(at, scope, locals_count)
    if operand.kind is not kind:
        at.fail(f"expected a {kind.value} expression, found a {operand.kind.value} one")
    return operand


def expression(at: JsonCursor, scope: LoadScope, locals_count: int = 0) -> ex.Expression:
    kind, value = at.get("type").text(), at.get("value")
    if kind == "expression":
        # A wrapper around another type-value object, or an operation.
        if isinstance(value.value, dict) and "type" in value.value:
            return expression(value, scope, locals_count)
        return _operation(value, scope, locals_count)
    if kind == "field":
        return scope.field(value)
    if kind == "hexstr":
        return ex.Const(value.hexstr())
    if kind == "bool":
        return ex.Bool(value.boolean())
    if kind in ("local", "runtime_data"):
        index = value.integer()
        if index >= locals_count:
            at.fail(f"parameter {index} of an action with {locals_count} parameters")
        return ex.Local(index)
    if kind == "header":
        return named(scope.headers, value, "header")
    if kind == "header_stack":
        return named(scope.stacks, value, "header stack")
    if kind == "header_union":
        return named(scope.unions, value, "header union")
    if kind == "header_union_stack":
        return named(scope.union_stacks, value, "header union stack")
    if kind == "stack_field":
        stack_at, field_at = value.items(2)
        stack = named(scope.stacks, stack_at, "header stack")
        return ex.LastField(stack, field_of(stack.type, field_at.text(), value))
    if kind == "register":
        array_at, index_at = value.items(2)
        register = named(scope.registers, array_at, "register")
        return ex.RegisterCell(register, kinded(index_at, scope, ex.Kind.DATA, locals_count))
    return at.unsupported(f"a value of type {kind!r} cannot stand in an expression")


def _operation(at: JsonCursor, scope: LoadScope, locals_count: int) -> ex.Expression:
    op = at.get("op").text()

    def operand(side: str, kind: ex.Kind) -> ex.Expression:
        return kinded(at.get(side), scope, kind, locals_count)

    if op in _UNARY:
        return ex.Unary(op, operand("right", _UNARY[op]))
    if op in ("+", "-") and at.get("left").value is None:
        return ex.Binary(op, ex.Const(0), operand("right", ex.Kind.DATA))
    if op in ex.ARITHMETIC or op in ex.CASTS:
        return ex.Binary(op, operand("left", ex.Kind.DATA), operand("right", ex.Kind.DATA))
    if op in ex.LOGIC:
        return ex.Binary(op, operand("left", ex.Kind.BOOL), operand("right", ex.Kind.BOOL))
    if op in ("==", "!="):
        left = expression(at.get("left"), scope, locals_count)
        if left.kind not in _COMPARABLE:
            at.fail(f"{op} does not compare a {left.kind.value}")
        return ex.Binary(op, left, operand("right", left.kind))
    if op in ex.COMPARISONS:
        return ex.Binary(op, operand("left", ex.Kind.DATA), operand("right", ex.Kind.DATA))
    if op == "?":
        left = expression(at.get("left"), scope, locals_count)
        return ex.Ternary(operand("cond", ex.Kind.BOOL), left, operand("right", left.kind))
    if op in ("dereference_header_stack", "dereference_stack"):
        stack = operand("left", ex.Kind.STACK)
        assert isinstance(stack, Stack)  # nothing else is of that kind
        return ex.StackElement(stack, operand("right", ex.Kind.DATA))
    if op == "dereference_union_stack":
        union_stack = operand("left", ex.Kind.UNION_STACK)
        assert isinstance(union_stack, UnionStack)
        return ex.UnionStackElement(union_stack, operand("right", ex.Kind.DATA))
    if op == "access_field":
        header = operand("left", ex.Kind.HEADER)
        header_type = type_of(header)
        index = at.get("right").integer()
        if index >= len(header_type.fields):
            at.fail(f"header type {header_type.name!r} has {len(header_type.fields)} fields, not a number {index}")
        return ex.AccessField(header, header_type.fields[index])
    if op == "access_union_header":
        union = operand("left", ex.Kind.UNION)
        index = at.get("right").integer()
        if index >= len(members_of(union)):
            at.fail(f"the union has {len(members_of(union))} members, not a number {index}")
        return ex.UnionMember(union, index)
    return at.unsupported(f"unknown operator {op!r}; known: {' '.join(_OPERATORS)}")


def type_of(header: ex.Expression) -> HeaderType:
    """The type of a header expression."""
    if isinstance(header, Header):
        return header.type
    if isinstance(header, ex.StackElement):
        return header.stack.type
    if isinstance(header, ex.UnionMember):
        return members_of(header.union)[header.member_index].type
    if isinstance(header, ex.Ternary):
        return type_of(header.left)
    raise AssertionError(f"not a header: {header}")


def members_of(union: ex.Expression) -> tuple[Header, ...]:
    """The headers of a union expression (for an element of a stack, those of its first)."""
    if isinstance(union, Union):
        return union.headers
    if isinstance(union, ex.UnionStackElement):
        return union.stack.unions[0].headers
    if isinstance(union, ex.Ternary):
        return members_of(union.left)
    raise AssertionError(f"not a union: {union}")
