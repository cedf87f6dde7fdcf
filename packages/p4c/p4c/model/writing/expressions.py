"""Expressions and the parameters of primitives, as type-value objects."""

from typing import Any

from p4c.model import expressions as ex
from p4c.model import externs
from p4c.model.actions import Argument, Primitive, Text, Vector
from p4c.model.headers import Header, Stack, Union, UnionStack
from p4c.model.parsers import LastUnionField, Lookahead
from p4c.model.registers import Register
from p4c.model.source import SourceInfo

Json = dict[str, Any]


def hexstr(value: int) -> str:
    return f"-{-value:#x}" if value < 0 else f"{value:#x}"


def padded(value: int, width_bits: int) -> str:
    """`value` with all digits of the whole bytes that `width_bits` take."""
    return f"0x{value:0{(width_bits + 7) // 8 * 2}x}"


def placed(made: Json, source: SourceInfo | None) -> Json:
    """`made` with its place in the P4 source."""
    if source is not None:
        place = {"filename": source.filename, "line": source.line, "column": source.column}
        made["source_info"] = place | {"source_fragment": source.fragment}
    return made


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hexstr(value)}


def place(e: ex.FieldRef | ex.ValidBit) -> list[str]:
    return [e.header.name, "$valid$" if isinstance(e, ex.ValidBit) else e.field.name]


def node(op: str, left: Any, right: Any, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **more}}


def expression(e: ex.Expression) -> Json:
    match e:
        case ex.Const():
            return number(e.value)
        case ex.Bool():
            return {"type": "bool", "value": e.value}
        case ex.Local():
            return {"type": "local", "value": e.index}
        case ex.FieldRef() | ex.ValidBit():
            return {"type": "field", "value": place(e)}
        case ex.LastField():
            return {"type": "stack_field", "value": [e.stack.name, e.field.name]}
        case LastUnionField():
            member = e.stack.unions[0].members[e.member_index]
            return {"type": "union_stack_field", "value": [e.stack.name, member, e.field.name]}
        case ex.RegisterCell():
            return {"type": "register", "value": [e.register.name, expression(e.index)]}
        case Header() | Stack() | Union() | UnionStack():
            return {"type": e.kind.value, "value": e.name}
        case ex.Cast():
            return expression(e.operand)
        case ex.Unary():
            return node(e.op, None, expression(e.operand))
        case ex.Binary():
            return node(e.op, expression(e.left), expression(e.right))
        case ex.Ternary():
            return node("?", expression(e.left), expression(e.right), cond=expression(e.condition))
        case ex.StackElement():
            return node("dereference_header_stack", expression(e.stack), expression(e.index))
        case ex.UnionStackElement():
            return node("dereference_union_stack", expression(e.stack), expression(e.index))
        case ex.AccessField():
            return node("access_field", expression(e.header), e.field.index)
        case ex.UnionMember():
            return node("access_union_header", expression(e.union), e.member_index)
    raise AssertionError(e)


def argument(a: Argument | Lookahead) -> Json:
    """A parameter of a primitive, or the value that a parser sets."""
    match a:
        case ex.Local():
            return {"type": "runtime_data", "value": a.index}
        case ex.Const() | ex.FieldRef() | ex.ValidBit() | Header() | Stack() | Union() | UnionStack():
            return expression(a)
        case Lookahead():
            return {"type": "lookahead", "value": [a.offset_bits, a.width_bits]}
        case Register():
            return {"type": "register_array", "value": a.name}
        case externs.Counter():
            return {"type": "counter_array", "value": a.name}
        case externs.Meter():
            return {"type": "meter_array", "value": a.name}
        case externs.Calculation():
            return {"type": "calculation", "value": a.name}
        case externs.FieldList() | externs.LearnList():
            return number(a.id)
        case Text():
            return {"type": "string", "value": a.value}
        case Vector():
            return {"type": "parameters_vector", "value": [argument(item) for item in a.items]}
    return {"type": "expression", "value": expression(a)}


def primitive(p: Primitive) -> Json:
    return placed({"op": p.op, "parameters": [argument(a) for a in p.args]}, p.source)
