"""Implicit conversions, which the language makes without a cast."""

from p4c.frontend.check import types as ty
from p4c.frontend.check.context import CheckContext
from p4c.frontend.check.fold import fit
from p4c.frontend.diagnostics import brief, choices
from p4c.frontend.parse import ast


def converted(cx: CheckContext, e: ast.Expression, to: ty.Type, what: str = "") -> ty.Type:
    """Check `e` and convert the value to `to`."""
    cx.expression(e)
    coerce(cx, e, to, what)
    return e.type if isinstance(e.type, ty.Type) else ty.ANY


def coerce(cx: CheckContext, e: ast.Expression, to: ty.Type, what: str = "") -> bool:
    """Convert the checked expression `e` to type `to` if the language does so without a cast; complain if not."""
    t = e.type
    if isinstance(to, ty.ApplicableType) and isinstance(t, ty.ApplicableType):
        return True  # `blocks_fit` compares blocks, and can say what is wrong
    if t is None or t is ty.ANY or to is ty.ANY or isinstance(to, ty.TypeVariable) or ty.same(t, to):
        return True
    plain = ty.strip(to)
    if isinstance(e, ast.Default):
        return True
    if t == ty.INT and isinstance(plain, ty.Bits) and not isinstance(to, ty.Enum):
        if isinstance(to, ty.NewType):
            shows = brief(e.value) if isinstance(e.value, int) else "…"
            message = f"an integer becomes a {to} without a cast, as in p4c; P4_16 asks for one: ({to}) {shows}"
            cx.diagnostics.warning("types", message, e.span)
        return _coerce_number(cx, e, plain, to)
    if isinstance(t, ty.Enum) and t.underlying is not None and isinstance(to, ty.Bits) and ty.same(t.underlying, to):
        e.type = to
        if e.value is not None:
            e.value = e.value.number
        return True
    if isinstance(e, ast.ListExpression) and isinstance(to, ty.CompositeType | ty.Tuple):
        return _coerce_list(cx, e, to, what)
    if isinstance(e, ast.StructExpression) and isinstance(to, ty.CompositeType):
        return _coerce_struct(cx, e, to, what)
    if isinstance(e, ast.ConditionalExpression) and t == ty.INT:
        e.type = to
        return coerce(cx, e.then, to, what) and coerce(cx, e.otherwise, to, what)
    if t == ty.INVALID:
        if isinstance(to, ty.CompositeType) and to.kind != "struct":
            e.type = to
            return True
        cx.type_error(f"{{#}} can stand only for a header or header union, not for {to}", e.span)
        return False
    note = ""
    if isinstance(plain, ty.Bits) and isinstance(ty.strip(t), ty.Bits):
        note = f"write a cast: ({to}) …"
    cx.type_error(f"{what or 'this'} needs a value of type {to}, not {t}", e.span, note)
    return False


def _coerce_number(cx: CheckContext, e: ast.Expression, plain: ty.Bits, to: ty.Type) -> bool:
    if isinstance(e, ast.ConditionalExpression) and e.value is None:
        e.type = to
        return coerce(cx, e.then, to) and coerce(cx, e.otherwise, to)
    if e.value is not None:
        fitted = fit(e.value, plain)
        if (fitted != e.value and fitted != e.value & ((1 << plain.width) - 1)) or e.value >= 1 << plain.width:
            cx.diagnostics.warning(
                "types", f"{brief(e.value)} does not fit {plain}: it becomes {brief(fitted)}", e.span
            )
        e.value = fitted
    e.type = to
    return True


def _coerce_list(cx: CheckContext, e: ast.ListExpression, to: ty.CompositeType | ty.Tuple, what: str) -> bool:
    wanted = [f.type for f in to.fields.values()] if isinstance(to, ty.CompositeType) else list(to.items)
    if len(wanted) != len(e.items):
        cx.type_error(f"{to} has {len(wanted)} members, this list {len(e.items)}", e.span)
        return False
    good = [coerce(cx, item, t, what) for item, t in zip(e.items, wanted, strict=True)]
    e.type = to
    return all(good)


def _coerce_struct(cx: CheckContext, e: ast.StructExpression, to: ty.CompositeType, what: str) -> bool:
    given = {name for name, _ in e.items}
    good = True
    for name, item in e.items:
        if name not in to.fields:
            cx.type_error(f"{to} has no field {name}", item.span, choices(name, to.fields, "fields"))
            good = False
        else:
            good = coerce(cx, item, to.fields[name].type, what) and good
    missing = [n for n in to.fields if n not in given]
    if missing:
        cx.type_error(f"{to} also needs {', '.join(missing)}", e.span)
        good = False
    e.type = to
    return good
