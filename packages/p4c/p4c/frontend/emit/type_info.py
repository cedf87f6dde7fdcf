"""P4Info's `type_info`: the enums, structs, headers and new types that other parts of it name."""

from __future__ import annotations

from p4c.frontend.check import types as ty
from p4c.frontend.emit.textproto import TextMessage
from p4c.frontend.parse.ast import Annotation, BaseTypeRef, Number, String, TypeExpression


class TypeInfo:
    """Collects named types in the order in which they are met."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], TextMessage] = {}

    def message(self) -> TextMessage:
        made = TextMessage()
        kinds = ("structs", "headers", "header_unions", "enums", "error", "serializable_enums", "new_types")
        for wanted in kinds:
            for (kind, name), value in sorted(self._entries.items()):
                if kind == wanted:
                    made.add(kind, TextMessage().add("key", name).add("value", value))
        return made

    def register(self, t: ty.Type) -> int | None:
        """Note a type that is used by name. Returns the control plane's width of a translated type."""
        if isinstance(t, ty.NewType):
            return self._new_type(t)
        if isinstance(t, ty.Enum):
            self._enum(t)
        elif isinstance(t, ty.CompositeType):
            self._composite(t)
        elif isinstance(t, ty.Tuple):
            for item in t.items:
                self.register(item)
        elif isinstance(t, ty.StackType):
            self._composite(t.element)
        return None

    def _new_type(self, t: ty.NewType) -> int | None:
        translation = next((a for a in t.annotations if a.name == "p4runtime_translation"), None)
        made = TextMessage()
        base = t.base
        while isinstance(base, ty.NewType):
            base = base.base
        width_seen = None
        if translation is not None:
            translated = TextMessage().add("uri", _text(translation))
            second = translation.expressions[1] if len(translation.expressions) > 1 else None
            if isinstance(second, TypeExpression) and isinstance(second.ref, BaseTypeRef):
                second = second.ref.width  # of bit<W>; string has none
            if isinstance(second, Number):
                width_seen = second.number
                translated.add("sdn_bitwidth", second.number)
            else:
                width_seen = 0
                translated.add("sdn_string", TextMessage())
            made.add("translated_type", translated)
        else:
            made.add("original_type", data_type(base, self))
        for a in t.annotations:
            if a.name not in ("p4runtime_translation", "name", "id"):
                made.add("annotations", f"@{a.name}" + (f"({a.source})" if a.body else ""))
        self._entries[("new_types", t.name)] = made
        return width_seen

    def _enum(self, t: ty.Enum) -> None:
        made = TextMessage()
        if t.underlying is None:
            for name in t.values:
                made.add("members", TextMessage().add("name", name))
            self._entries[("enums", t.name)] = made
            return
        made.add("underlying_type", TextMessage().add("bitwidth", t.underlying.width))
        size = (t.underlying.width + 7) // 8
        for name, value in t.values.items():
            encoded = (value & ((1 << t.underlying.width) - 1)).to_bytes(size, "big")
            made.add("members", TextMessage().add("name", name).add("value", encoded))
        self._entries[("serializable_enums", t.name)] = made

    def _composite(self, t: ty.CompositeType) -> None:
        kind = {"struct": "structs", "header": "headers", "header_union": "header_unions"}[t.kind]
        if (kind, t.name) in self._entries:
            return
        made = TextMessage()
        self._entries[(kind, t.name)] = made
        for f in t.fields.values():
            member = TextMessage().add("name", f.name)
            if t.kind == "struct":
                member.add("type_spec", data_type(f.type, self))
            elif t.kind == "header":
                member.add("type_spec", bitstring(ty.strip(f.type)))
            else:
                assert isinstance(f.type, ty.CompositeType)
                self._composite(f.type)
                member.add("header", TextMessage().add("name", f.type.name))
            made.add("members", member)


def _text(a: Annotation) -> str:
    first = a.expressions[0] if a.expressions else None
    return first.text if isinstance(first, String) else ""


def bitstring(t: ty.Type) -> TextMessage:
    """P4BitstringLikeTypeSpec."""
    if isinstance(t, ty.VarBits):
        return TextMessage().add("varbit", TextMessage().add("max_bitwidth", t.width_max))
    signed = isinstance(t, ty.Bits) and t.signed
    return TextMessage().add("int" if signed else "bit", TextMessage().add("bitwidth", ty.width(t)))


def data_type(t: ty.Type, types: TypeInfo) -> TextMessage:
    """P4DataTypeSpec; named types are registered with `types`."""
    types.register(t)
    if isinstance(t, ty.Bits | ty.VarBits):
        return TextMessage().add("bitstring", bitstring(t))
    if t == ty.BOOL:
        return TextMessage().add("bool", TextMessage())
    if t == ty.ERROR:
        return TextMessage().add("error", TextMessage())
    if isinstance(t, ty.Tuple):
        made = TextMessage()
        for item in t.items:
            made.add("members", data_type(item, types))
        return TextMessage().add("tuple", made)
    if isinstance(t, ty.StackType):
        inner = TextMessage().add("header", TextMessage().add("name", t.element.name)).add("size", t.size)
        return TextMessage().add("header_stack", inner)
    name = TextMessage().add("name", getattr(t, "name", str(t)))
    if isinstance(t, ty.NewType):
        return TextMessage().add("new_type", name)
    if isinstance(t, ty.Enum):
        return TextMessage().add("enum" if t.underlying is None else "serializable_enum", name)
    if isinstance(t, ty.CompositeType):
        return TextMessage().add(t.kind, name)
    return TextMessage().add("bitstring", bitstring(t))
