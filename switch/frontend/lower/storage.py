"""Storage for values: fields of the scalars, header instances, stacks and unions in the program."""

from __future__ import annotations

from switch.frontend import ir
from switch.frontend.check import types as ty
from switch.frontend.diagnostics import Span
from switch.frontend.lower.context import SCALARS, Context, RefusalError
from switch.frontend.lower.values import HeaderValue, Record, StackValue, UnionValue, Value, leaves

VARBIT_HEADER_FIELD = "field"


def scalar(cx: Context, name: str, t: ty.Type) -> ir.FieldRef:
    """A new field of the scalars."""
    plain = ty.strip(t)
    unique = cx.unique(name)
    cx.program.header_types["scalars_0"].fields.append((unique, bits_of(plain), is_signed(plain)))
    return ir.FieldRef(SCALARS, unique, plain)


def is_signed(t: ty.Type) -> bool:
    return isinstance(t, ty.Bits) and t.signed


def bits_of(t: ty.Type) -> int:
    plain = ty.strip(t)
    if isinstance(plain, ty.Bits):
        return plain.width
    if plain == ty.BOOL:
        return 1
    return 32  # error and enums without underlying type


def temporary(cx: Context, t: ty.Type) -> ir.FieldRef:
    return scalar(cx, "tmp", t)


def allocate(cx: Context, name: str, t: ty.Type, span: Span, top: bool = False) -> Value:
    """Storage for a variable of type `t`. `top`: members of the headers struct keep their own names."""
    plain = ty.strip(t)
    if isinstance(plain, ty.Composite):
        if plain.kind == "struct":
            members: dict[str, Value] = {}
            for f in plain.fields.values():
                inner = f.name if top and not name else f"{name}.{f.name}"
                members[f.name] = allocate(cx, inner, f.type, span, top)
            return Record(plain, members)
        if plain.kind == "header":
            return header_instance(cx, cx.unique(name), plain)
        return _union_instance(cx, cx.unique(name), plain)
    if isinstance(plain, ty.Stack):
        return _stack_instance(cx, cx.unique(name), plain)
    if isinstance(plain, ty.Tuple):
        items = {str(i): allocate(cx, f"{name}.{i}", item, span) for i, item in enumerate(plain.items)}
        return Record(plain, items)
    if isinstance(plain, ty.VarBits):
        return _varbit_instance(cx, cx.unique(name), plain)
    if ty.scalar(plain):
        return scalar(cx, name, plain)
    raise RefusalError(f"there is no storage for a value of type {t}", span)


def header_type(cx: Context, t: ty.Composite) -> str:
    if t.name not in cx.program.header_types:
        made = ir.HeaderType(t.name, [])
        _flatten(cx, made, t, "")
        cx.program.header_types[t.name] = made
    return t.name


def _flatten(cx: Context, made: ir.HeaderType, t: ty.Composite, prefix: str) -> None:
    for f in t.fields.values():
        plain = ty.strip(f.type)
        if isinstance(plain, ty.Composite):
            _flatten(cx, made, plain, f"{prefix}{f.name}.")
        elif isinstance(plain, ty.VarBits):
            made.fields.append((prefix + f.name, None, False))
            made.varbit_max = plain.width_max
        else:
            made.fields.append((prefix + f.name, bits_of(plain), is_signed(plain)))


def header_instance(cx: Context, name: str, t: ty.Composite) -> HeaderValue:
    cx.program.headers[name] = ir.HeaderInstance(name, header_type(cx, t), False)
    return HeaderValue(name, t)


def _union_instance(cx: Context, name: str, t: ty.Composite) -> UnionValue:
    members: dict[str, HeaderValue] = {}
    for f in t.fields.values():
        assert isinstance(f.type, ty.Composite)
        members[f.name] = header_instance(cx, f"{name}.{f.name}", f.type)
    kinds = [(f.name, header_type(cx, f.type)) for f in t.fields.values() if isinstance(f.type, ty.Composite)]
    cx.program.union_types[t.name] = kinds
    cx.program.unions[name] = ir.UnionInstance(name, t.name, [m.name for m in members.values()])
    return UnionValue(name, t, members)


def _stack_instance(cx: Context, name: str, t: ty.Stack) -> StackValue:
    names = [f"{name}[{i}]" for i in range(t.size)]
    if t.element.kind == "header_union":
        unions = [_union_instance(cx, n, t.element) for n in names]
        cx.program.stacks[name] = ir.StackInstance(name, t.element.name, names, union=True)
        return StackValue(name, t, unions)
    elements = [header_instance(cx, n, t.element) for n in names]
    cx.program.stacks[name] = ir.StackInstance(name, header_type(cx, t.element), names)
    return StackValue(name, t, elements)


def _varbit_instance(cx: Context, name: str, t: ty.VarBits) -> ir.FieldRef:
    kind = ir.HeaderType(f"{name}_t", [(VARBIT_HEADER_FIELD, None, False)], t.width_max)
    cx.program.header_types[kind.name] = kind
    cx.program.headers[name] = ir.HeaderInstance(name, kind.name, True)
    return ir.FieldRef(name, VARBIT_HEADER_FIELD, t)


def header_field(cx: Context, header: HeaderValue, prefix: str, name: str, t: ty.Type) -> Value:
    """A field of a header instance; a struct inside it is a Record of the flattened fields."""
    plain = ty.strip(t)
    if isinstance(plain, ty.Composite):
        inner = {f.name: header_field(cx, header, f"{prefix}{name}.", f.name, f.type) for f in plain.fields.values()}
        return Record(plain, inner)
    return ir.FieldRef(header.name, prefix + name, plain)


def header_fields(cx: Context, header: HeaderValue) -> list[ir.Expr]:
    """All fields of a header, flattened."""
    found: list[ir.Expr] = []
    for f in header.type.fields.values():
        value = header_field(cx, header, "", f.name, f.type)
        found.extend(leaf for leaf in leaves(value) if isinstance(leaf, ir.Expr))
    return found
