"""IR expressions as BMv2 JSON.

BMv2 computes without limits of width and cuts only when a value is stored in a field, so every P4 operator that can
leave its width is followed by a mask (unsigned) or a two's complement reduction (signed).
"""

from __future__ import annotations

from typing import Any

from switch.frontend import ir
from switch.frontend.check.types import BOOL, Bits, Type

Json = dict[str, Any]
_LOGIC = {"&&": "and", "||": "or", "!": "not"}


def hexstr(value: int) -> str:
    return f"-{-value:#x}" if value < 0 else f"{value:#x}"


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hexstr(value)}


def node(op: str, left: Any, right: Any) -> Json:
    return {"type": "expression", "value": {"op": op, "left": left, "right": right}}


def fitted(expression: Json, t: Type) -> Json:
    """`expression` cut to its type."""
    if not isinstance(t, Bits):
        return expression
    if t.signed:
        return node("two_comp_mod", expression, number(t.width))
    return node("&", expression, number((1 << t.width) - 1))


def expression(e: ir.Expr) -> Json:
    """`e` inside an expression: fields of type bool are read as booleans."""
    match e:
        case ir.Const():
            return {"type": "bool", "value": bool(e.value)} if e.type == BOOL else number(e.value)
        case ir.ActionData():
            local = {"type": "local", "value": e.index}
            return node("d2b", None, local) if e.type == BOOL else local
        case ir.FieldRef() | ir.LastField() | ir.ElementField():
            place = reference(e)
            return node("d2b", None, place) if e.type == BOOL else place
        case ir.Valid():
            if e.union:
                return node("valid_union", None, {"type": "header_union", "value": e.header})
            return node("d2b", None, {"type": "field", "value": [e.header, "$valid$"]})
        case ir.LastIndex():
            return node("last_stack_index", None, {"type": e.kind, "value": e.stack})
        case ir.HeadersEqual():
            return node("==", {"type": "header", "value": e.left}, {"type": "header", "value": e.right})
        case ir.SliceOf():
            return _slice(e)
        case ir.Operation():
            return _operation(e)
    raise AssertionError(e)


def reference(e: ir.Expr) -> Json:
    """A field as a place."""
    match e:
        case ir.FieldRef():
            return {"type": "field", "value": [e.header, e.field]}
        case ir.LastField() if e.member:
            return {"type": "union_stack_field", "value": [e.stack, e.member, e.field]}
        case ir.LastField():
            return {"type": "stack_field", "value": [e.stack, e.field]}
        case ir.ElementField():
            header = node("dereference_header_stack", {"type": "header_stack", "value": e.stack}, expression(e.index))
            return node("access_field", header, e.position)
    raise AssertionError(e)


def _slice(e: ir.SliceOf) -> Json:
    base = expression(e.base)
    shifted = node(">>", base, number(e.low)) if e.low else base
    return node("&", shifted, number((1 << (e.high - e.low + 1)) - 1))


def _operation(e: ir.Operation) -> Json:
    op, t = e.op, e.type
    if op == "?":
        condition, then, otherwise = (expression(o) for o in e.operands)
        return {"type": "expression", "value": {"op": "?", "left": then, "right": otherwise, "cond": condition}}
    if op == "cast":
        return _cast(e)
    if len(e.operands) == 1:
        made = node(_LOGIC.get(op, op), None, expression(e.operands[0]))
        if op == "-":
            made = node("-", number(0), expression(e.operands[0]))
        return fitted(made, t) if op in ("-", "~") else made
    left, right = (expression(o) for o in e.operands)
    if op == "++":
        low = e.operands[1].type
        assert isinstance(low, Bits)
        assert isinstance(t, Bits)
        # Unsigned operands are within their widths already.
        if low.signed:
            right = fitted(right, Bits(low.width))
        made = node("|", node("<<", left, number(low.width)), right)
        return fitted(made, t) if t.signed or low.signed else made
    if op in ("|+|", "|-|"):
        assert isinstance(t, Bits)
        return node("sat_cast" if t.signed else "usat_cast", node(op[1], left, right), number(t.width))
    made = node(_LOGIC.get(op, op), left, right)
    if op in ("==", "!=") and e.operands[0].type == BOOL:
        return made
    return fitted(made, t) if op in ("+", "-", "*", "<<") else made


def _cast(e: ir.Operation) -> Json:
    operand = e.operands[0]
    made, source, to = expression(operand), operand.type, e.type
    if isinstance(source, Bits) and isinstance(to, Bits):
        grows = (
            to.width >= source.width if to.signed == source.signed else to.width > source.width and not source.signed
        )
        return made if grows else fitted(made, to)
    return made


# --- parameters of primitives --------------------------------------------------------------------------------------


def value_parameter(e: ir.Expr) -> Json:
    """A value that a primitive reads. Booleans are turned into data."""
    match e:
        case ir.Const() if e.type != BOOL:
            return number(e.value)
        case ir.ActionData():
            return {"type": "runtime_data", "value": e.index}
        case ir.FieldRef():
            return reference(e)
        case ir.Lookahead():
            return {"type": "lookahead", "value": [e.offset, e.width]}
    made = expression(e)
    if e.type == BOOL:
        made = node("b2d", None, made)
    return {"type": "expression", "value": made}


def place_parameter(e: ir.Expr) -> Json:
    """A field that a primitive writes."""
    made = reference(e)
    return {"type": "expression", "value": made} if isinstance(e, ir.ElementField) else made


def object_parameter(e: ir.Expr) -> Json:
    """A parameter of any kind that is not written."""
    match e:
        case ir.Object():
            return {"type": e.kind, "value": e.name}
        case ir.ElementHeader():
            stack = {"type": "header_stack", "value": e.stack}
            return {"type": "expression", "value": node("dereference_header_stack", stack, expression(e.index))}
        case ir.Text():
            return {"type": "string", "value": e.text}
        case ir.Vector():
            return {"type": "parameters_vector", "value": [value_parameter(i) for i in e.items]}
    return value_parameter(e)
