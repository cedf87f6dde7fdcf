"""Expressions without operators: literals, names, lists and structs."""

from __future__ import annotations

from p4c.frontend.check import fold
from p4c.frontend.check.context import CheckContext, Handlers
from p4c.frontend.check.type_ref import type_of
from p4c.frontend.check.types import ANY, BOOL, INT, INVALID, STRING, Bits, CompositeType, FieldType, Meta, Tuple, Type
from p4c.frontend.diagnostics import article, shown
from p4c.frontend.parse import ast

_TEXT_MAX = 40  # of a literal in a message


def _number(cx: CheckContext, e: ast.Number) -> Type:
    if e.width is None:
        e.value = e.number
        return INT
    if e.width == 0:
        return cx.type_error("a literal of width 0 is not supported", e.span)
    t = Bits(e.width, e.signed)
    e.value = fold.fit(e.number, t)
    if e.number >= 1 << e.width:
        text = e.text if len(e.text) <= _TEXT_MAX else shown(e.number)
        cx.diagnostics.warning("types", f"{text} does not fit {t}: it becomes {shown(e.value)}", e.span)
    return t


def _boolean(cx: CheckContext, e: ast.Boolean) -> Type:
    e.value = e.truth
    return BOOL


def _string(cx: CheckContext, e: ast.String) -> Type:
    e.value = e.text
    return STRING


def _default(cx: CheckContext, _e: ast.Default) -> Type:
    return ANY


def _name(cx: CheckContext, e: ast.Name) -> Type:
    symbol = cx.scope.lookup(e.name)
    if symbol is None:
        note = cx.names_like(e.name, ("variable", "parameter", "const", "instance", "table"), "names in scope")
        cx.name_error(f"there is nothing named {e.name} here", e.span, note)
        return ANY
    e.target = symbol
    if symbol.kind == "type":
        return Meta(symbol.type)
    if symbol.kind in ("action", "function", "state", "value_set"):
        return cx.type_error(f"{e.name} is {article(symbol.kind)} and has no value", e.span)
    e.value = symbol.value if symbol.kind == "const" else None
    return symbol.type


def _typeexpression(cx: CheckContext, e: ast.TypeExpression) -> Type:
    return Meta(type_of(cx, e.ref))


def _listexpression(cx: CheckContext, e: ast.ListExpression) -> Type:
    return Tuple(tuple(cx.expression(i) for i in e.items))


def _invalidheader(_cx: CheckContext, _e: ast.InvalidHeader) -> Type:
    return INVALID


def _structexpression(cx: CheckContext, e: ast.StructExpression) -> Type:
    fields: dict[str, FieldType] = {}
    for name, item in e.items:
        if name in fields:
            cx.type_error(f"the field {name} is given twice", item.span)
        fields[name] = FieldType(name, cx.expression(item), [])
    return CompositeType("", "struct", fields, anonymous=True)


EXPRESSIONS: Handlers = {
    ast.Number: _number,
    ast.Boolean: _boolean,
    ast.String: _string,
    ast.Default: _default,
    ast.Name: _name,
    ast.TypeExpression: _typeexpression,
    ast.ListExpression: _listexpression,
    ast.StructExpression: _structexpression,
    ast.InvalidHeader: _invalidheader,
}
