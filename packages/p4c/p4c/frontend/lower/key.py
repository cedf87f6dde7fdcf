"""Keys of tables, and the names that P4Runtime gives to them."""

from __future__ import annotations

from p4c.frontend.declared import DeclaredKey, DeclaredTable
from p4c.frontend.lower.context import LowerContext, RefusalError
from p4c.frontend.lower.storage import scalar
from p4c.frontend.lower.values import TableValue
from p4c.frontend.parse import ast
from p4c.frontend.scalar import Scalar
from p4c.model.expressions import Binary, Const, FieldRef, Unary, ValidBit


def add_key(cx: LowerContext, value: TableValue, table: DeclaredTable, key: ast.KeyElement) -> None:
    named = next((a for a in key.annotations if a.name == "name" and a.expressions), None)
    if named is not None and isinstance(named.expressions[0], ast.String):
        name = named.expressions[0].text
    else:
        name = key_name(key.expression)
        if not name:
            note = 'add @name("…") after its match kind'
            raise RefusalError("this key needs a name for the control plane", key.span, note)
    value_read, before = cx.isolated(key.expression)
    target, mask = _target(value_read, key) if not before else (None, None)
    if key.match_kind == "selector":
        if table.profile is None or table.profile.algorithm is None:
            raise RefusalError(f"table {table.name} has selector keys but no action_selector", key.span)
        if not isinstance(target, FieldRef) or mask is not None:
            target = _prepared(cx, value, value_read, key)
        table.all_keys.append(DeclaredKey(target, "selector", name, None, key.expression.type, [], key.annotations))
        return
    if target is None:
        target = _prepared(cx, value, value_read, key)
    annotations = [a for a in key.annotations if a.name != "name"]
    made = DeclaredKey(target, key.match_kind, name, mask, key.expression.type, annotations, key.annotations)
    table.all_keys.append(made)


def _target(value: Scalar, key: ast.KeyElement) -> tuple[FieldRef | ValidBit | None, int | None]:
    """The field that BMv2 can match as it is, and the mask over it; None where the key must be computed first."""
    match value.of:
        case FieldRef() as field:
            return field, None
        case Binary("&", FieldRef() as field, Const(mask)) if _is_mask(key.expression):
            return field, mask
        case Unary("d2b", ValidBit() as valid) if key.match_kind in ("exact", "ternary", "optional"):
            return valid, None
    return None, None


def _is_mask(e: ast.Expression) -> bool:
    """Whether the program itself masks the key: slices and casts are masks in the model as well."""
    return isinstance(e, ast.BinaryExpression) and e.op == "&"


def _prepared(cx: LowerContext, value: TableValue, target: Scalar, key: ast.KeyElement) -> FieldRef:
    place = scalar(cx, f"{value.name}.key", target.type)
    value.prepared.append((place, key.expression))
    assert isinstance(place.of, FieldRef)
    return place.of


def key_name(e: ast.Expression) -> str:
    """A key's name in P4Runtime: the expression as written, validity as `$valid$`; empty where there is none."""
    match e:
        case ast.Name():
            return e.name
        case ast.MemberExpression():
            base = key_name(e.base)
            return f"{base}.{e.name}" if base else ""
        case ast.CallExpression():
            if isinstance(e.callee, ast.MemberExpression) and e.callee.name == "isValid":
                base = key_name(e.callee.base)
                return f"{base}.$valid$" if base else ""
            return ""
        case ast.IndexExpression():
            base, index = key_name(e.base), key_name(e.index)
            return f"{base}[{index}]" if base and index else ""
        case ast.SliceExpression():
            parts = [key_name(x) for x in (e.base, e.high, e.low)]
            return f"{parts[0]}[{parts[1]}:{parts[2]}]" if all(parts) else ""
        case ast.BinaryExpression(op="&"):
            left, right = key_name(e.left), key_name(e.right)
            return f"{left} & {right}" if left and right else ""
        case ast.Number():
            return e.text if e.width is None else str(e.number)
    return ""
