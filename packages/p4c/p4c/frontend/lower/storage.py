"""Storage for values: fields of the scalars, header instances, stacks and unions in the program."""

from __future__ import annotations

from p4c.frontend.check import types as ty
from p4c.frontend.diagnostics import SourceSpan
from p4c.frontend.lower.context import SCALARS, LowerContext, RefusalError
from p4c.frontend.lower.values import Aggregate, HeaderValue, StackValue, UnionValue, Value, leaves
from p4c.frontend.scalar import Scalar
from p4c.model.expressions import FieldRef
from p4c.model.headers import Field, Header, HeaderType, Stack, Union, UnionStack, add_field

VARBIT_HEADER_FIELD = "field"


def scalar(cx: LowerContext, name: str, t: ty.Type) -> Scalar:
    """A new field of the scalars."""
    plain = ty.strip(t)
    field = add_field(cx.program.scalars, cx.unique(name), bits_of(plain), is_signed(plain))
    return Scalar(FieldRef(cx.program.headers[SCALARS], field), plain)


def is_signed(t: ty.Type) -> bool:
    return isinstance(t, ty.Bits) and t.signed


def bits_of(t: ty.Type) -> int:
    plain = ty.strip(t)
    if isinstance(plain, ty.Bits):
        return plain.width
    if plain == ty.BOOL:
        return 1
    return 32  # error and enums without underlying type


def temporary(cx: LowerContext, t: ty.Type) -> Scalar:
    return scalar(cx, "tmp", t)


def allocate(cx: LowerContext, name: str, t: ty.Type, span: SourceSpan, top: bool = False) -> Value:
    """Storage for a variable of type `t`. `top`: members of the headers struct keep their own names."""
    cx.count_parts(1, span)
    plain = ty.strip(t)
    if isinstance(plain, ty.CompositeType):
        if plain.kind == "struct":
            members: dict[str, Value] = {}
            for f in plain.fields.values():
                inner = f.name if top and not name else f"{name}.{f.name}"
                members[f.name] = allocate(cx, inner, f.type, span, top)
            return Aggregate(plain, members)
        if plain.kind == "header":
            return header_instance(cx, cx.unique(name), plain)
        return _union_instance(cx, cx.unique(name), plain)
    if isinstance(plain, ty.StackType):
        cx.count_parts(plain.size * max(1, len(plain.element.fields)), span)
        return _stack_instance(cx, cx.unique(name), plain)
    if isinstance(plain, ty.Tuple):
        items = {str(i): allocate(cx, f"{name}.{i}", item, span) for i, item in enumerate(plain.items)}
        return Aggregate(plain, items)
    if isinstance(plain, ty.VarBits):
        return _varbit_instance(cx, cx.unique(name), plain)
    if ty.scalar(plain):
        return scalar(cx, name, plain)
    raise RefusalError(f"there is no storage for a value of type {t}", span)


def pad(fields: list[Field]) -> None:
    """Fill the fields of a header type to whole bytes."""
    bits = sum(f.width_bits for f in fields)
    if bits % 8:
        add_field(fields, "_padding", 8 - bits % 8)


def header_type(cx: LowerContext, t: ty.CompositeType) -> HeaderType:
    if t.name not in cx.program.header_types:
        fields: list[Field] = []
        varbits = _flatten(fields, t, "")
        pad(fields)
        bits = sum(f.width_bits for f in fields)
        most = bits // 8 + (varbits + 7) // 8 if varbits else 0
        cx.program.header_types[t.name] = HeaderType(t.name, tuple(fields), most)
    return cx.program.header_types[t.name]


def _flatten(fields: list[Field], t: ty.CompositeType, prefix: str) -> int:
    """Append the fields of `t`; returns how wide its varbit field may be, 0 without one."""
    varbits = 0
    for f in t.fields.values():
        plain = ty.strip(f.type)
        if isinstance(plain, ty.CompositeType):
            varbits = _flatten(fields, plain, f"{prefix}{f.name}.") or varbits
        elif isinstance(plain, ty.VarBits):
            add_field(fields, prefix + f.name, None)
            varbits = plain.width_max
        else:
            add_field(fields, prefix + f.name, bits_of(plain), is_signed(plain))
    return varbits


def new_header(cx: LowerContext, name: str, t: HeaderType, metadata: bool) -> Header:
    made = Header(name, len(cx.program.headers), t, metadata)
    cx.program.headers[name] = made
    return made


def header_instance(cx: LowerContext, name: str, t: ty.CompositeType) -> HeaderValue:
    return HeaderValue(new_header(cx, name, header_type(cx, t), False), t)


def _union_instance(cx: LowerContext, name: str, t: ty.CompositeType) -> UnionValue:
    members: dict[str, HeaderValue] = {}
    for f in t.fields.values():
        assert isinstance(f.type, ty.CompositeType)
        members[f.name] = header_instance(cx, f"{name}.{f.name}", f.type)
    headers = tuple(member.header for member in members.values())
    made = Union(name, len(cx.program.unions), t.name, tuple(members), headers)
    cx.program.unions[name] = made
    return UnionValue(made, t, members)


def _stack_instance(cx: LowerContext, name: str, t: ty.StackType) -> StackValue:
    names = [f"{name}[{i}]" for i in range(t.size)]
    if t.element.kind == "header_union":
        unions = [_union_instance(cx, n, t.element) for n in names]
        union_stack = UnionStack(name, len(cx.program.union_stacks), tuple(u.union for u in unions))
        cx.program.union_stacks[name] = union_stack
        return StackValue(union_stack, t, unions)
    elements = [header_instance(cx, n, t.element) for n in names]
    headers = tuple(e.header for e in elements)
    stack = Stack(name, len(cx.program.stacks), header_type(cx, t.element), headers)
    cx.program.stacks[name] = stack
    return StackValue(stack, t, elements)


def _varbit_instance(cx: LowerContext, name: str, t: ty.VarBits) -> Scalar:
    fields: list[Field] = []
    field = add_field(fields, VARBIT_HEADER_FIELD, None)
    kind = HeaderType(f"{name}_t", tuple(fields), (t.width_max + 7) // 8)
    cx.program.header_types[kind.name] = kind
    return Scalar(FieldRef(new_header(cx, name, kind, True), field), t)


def header_field(cx: LowerContext, header: HeaderValue, prefix: str, name: str, t: ty.Type) -> Value:
    """A field of a header instance; a struct inside it is a Record of the flattened fields."""
    plain = ty.strip(t)
    if isinstance(plain, ty.CompositeType):
        inner = {f.name: header_field(cx, header, f"{prefix}{name}.", f.name, f.type) for f in plain.fields.values()}
        return Aggregate(plain, inner)
    field = header.header.type.field(prefix + name)
    assert field is not None
    return Scalar(FieldRef(header.header, field), plain)


def header_fields(cx: LowerContext, header: HeaderValue) -> list[Scalar]:
    """All fields of a header, flattened."""
    scalars: list[Scalar] = []
    for f in header.type.fields.values():
        value = header_field(cx, header, "", f.name, f.type)
        scalars.extend(leaf for leaf in leaves(value) if isinstance(leaf, Scalar))
    return scalars
