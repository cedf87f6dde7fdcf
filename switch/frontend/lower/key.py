"""Keys of tables, and the names that P4Runtime gives to them."""

from __future__ import annotations

from switch.frontend import ir
from switch.frontend.check.types import Bits
from switch.frontend.lower.context import Context, RefusalError
from switch.frontend.lower.storage import scalar
from switch.frontend.lower.values import TableValue
from switch.frontend.parse import ast


def add_key(cx: Context, value: TableValue, table: ir.TableDef, key: ast.KeyElement) -> None:
    named = next((a for a in key.annotations if a.name == "name" and a.expressions), None)
    if named is not None and isinstance(named.expressions[0], ast.String):
        name = named.expressions[0].text
    else:
        name = key_name(key.expression)
        if not name:
            note = 'add @name("…") after its match kind'
            raise RefusalError("this key needs a name for the control plane", key.span, note)
    target, before = cx.isolated(key.expression)
    mask = None
    if key.match_kind == "selector":
        if table.profile is None or table.profile.algorithm is None:
            raise RefusalError(f"table {table.name} has selector keys but no action_selector", key.span)
        simple = isinstance(target, ir.FieldRef) and not before
        chosen = target if simple else _prepared(cx, value, target, key)
        table.all_keys.append(ir.Key(chosen, "selector", name, None, key.expression.type, [], key.annotations))
        return
    match target:
        case ir.Operation(op="&", operands=(ir.FieldRef() as field, ir.Const() as masked)) if not before:
            target, mask = field, masked.value
    if isinstance(target, ir.Valid) and not target.union and key.match_kind in ("exact", "ternary", "optional"):
        target = ir.FieldRef(target.header, "$valid$", Bits(1))
    elif not isinstance(target, ir.FieldRef) or before:
        target = _prepared(cx, value, target, key)
    annotations = [a for a in key.annotations if a.name != "name"]
    made = ir.Key(target, key.match_kind, name, mask, key.expression.type, annotations, key.annotations)
    table.keys.append(made)
    table.all_keys.append(made)


def _prepared(cx: Context, value: TableValue, target: ir.Expr, key: ast.KeyElement) -> ir.FieldRef:
    place = scalar(cx, f"{value.name}.key", target.type)
    value.prepared.append((place, key.expression))
    return place


def key_name(e: ast.Expression) -> str:
    """A key's name in P4Runtime: the expression as written, validity as `$valid$`; empty where there is none."""
    match e:
        case ast.Name():
            return e.name
        case ast.Member():
            base = key_name(e.base)
            return f"{base}.{e.name}" if base else ""
        case ast.Call():
            if isinstance(e.callee, ast.Member) and e.callee.name == "isValid":
                base = key_name(e.callee.base)
                return f"{base}.$valid$" if base else ""
            return ""
        case ast.Index():
            base, index = key_name(e.base), key_name(e.index)
            return f"{base}[{index}]" if base and index else ""
        case ast.Slice():
            parts = [key_name(x) for x in (e.base, e.high, e.low)]
            return f"{parts[0]}[{parts[1]}:{parts[2]}]" if all(parts) else ""
        case ast.Binary(op="&"):
            left, right = key_name(e.left), key_name(e.right)
            return f"{left} & {right}" if left and right else ""
        case ast.Number():
            return e.text if e.width is None else str(e.number)
    return ""
