"""Expressions as short P4-like text, for messages."""

from __future__ import annotations

from switch.model import expressions as ex


def describe(expression: ex.Expression) -> str:
    """Short P4-like text for messages."""
    match expression:
        case ex.Const(value):
            return str(value)
        case ex.Bool(value):
            return str(value).lower()
        case ex.Local(index):
            return f"argument {index}"
        case ex.FieldRef(header, field):
            return f"{header.name}.{field.name}"
        case ex.ValidBit(header):
            return f"{header.name}.isValid()"
        case ex.HeaderRef(header):
            return header.name
        case ex.LastField(stack, field):
            return f"{stack.name}.last.{field.name}"
        case ex.StackRef(stack) | ex.UnionStackRef(stack):
            return stack.name
        case ex.UnionRef(union):
            return union.name
        case ex.StackElement(stack, index) | ex.UnionStackElement(stack, index):
            return f"{stack.stack.name}[{describe(index)}]"
        case ex.AccessField(header, field):
            return f"{describe(header)}.{field.name}"
        case ex.UnionMember(union, member):
            return f"{describe(union)}.{member}"
        case ex.RegisterCell(register, index):
            return f"{register.name}[{describe(index)}]"
        case ex.Unary(op, operand):
            return f"{op}({describe(operand)})"
        case ex.Binary(op, left, right):
            return f"({describe(left)} {op} {describe(right)})"
        case ex.Ternary(condition, left, right):
            return f"({describe(condition)} ? {describe(left)} : {describe(right)})"
    return type(expression).__name__
