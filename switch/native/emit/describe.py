"""Expressions as short P4-like text, for messages."""

from __future__ import annotations

from switch.model.expressions import (
    AccessField,
    Binary,
    Bool,
    Const,
    Expression,
    FieldRef,
    HeaderRef,
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
    ValidBit,
)


def describe(expression: Expression) -> str:
    """Short P4-like text for messages."""
    match expression:
        case Const(value):
            return str(value)
        case Bool(value):
            return str(value).lower()
        case Local(index):
            return f"argument {index}"
        case FieldRef(header, field):
            return f"{header.name}.{field.name}"
        case ValidBit(header):
            return f"{header.name}.isValid()"
        case HeaderRef(header):
            return header.name
        case LastField(stack, field):
            return f"{stack.name}.last.{field.name}"
        case StackRef(stack) | UnionStackRef(stack):
            return stack.name
        case UnionRef(union):
            return union.name
        case StackElement(stack, index) | UnionStackElement(stack, index):
            return f"{stack.stack.name}[{describe(index)}]"
        case AccessField(header, field):
            return f"{describe(header)}.{field.name}"
        case UnionMember(union, member):
            return f"{describe(union)}.{member}"
        case RegisterCell(register, index):
            return f"{register.name}[{describe(index)}]"
        case Unary(op, operand):
            return f"{op}({describe(operand)})"
        case Binary(op, left, right):
            return f"({describe(left)} {op} {describe(right)})"
        case Ternary(condition, left, right):
            return f"({describe(condition)} ? {describe(left)} : {describe(right)})"
    return type(expression).__name__
