"""The lowered program as P4Info, the control plane's view of it (P4Runtime specification, chapter 6).

Ids are p4c's: the kind in the top byte, 24 bits of the name's Jenkins one-at-a-time hash below, the next free number
on a clash, names in alphabetical order; `@id` overrides. Aliases are the shortest unique dotted suffixes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from p4c.frontend.check.types import CompositeType, NewType, Tuple, Type, strip, width
from p4c.frontend.declared import (
    DEFAULT_TABLE_SIZE,
    DeclaredAction,
    DeclaredCounter,
    DeclaredDigest,
    DeclaredMeter,
    DeclaredProfile,
    DeclaredRegister,
    DeclaredTable,
    DeclaredValueSet,
)
from p4c.frontend.draft import Draft
from p4c.frontend.emit.textproto import EnumWord, TextMessage
from p4c.frontend.emit.type_info import TypeInfo, data_type
from p4c.frontend.parse import ast

_PREFIX = {
    "action": 0x01,
    "table": 0x02,
    "value_set": 0x03,
    "controller_header": 0x04,
    "action_profile": 0x11,
    "counter": 0x12,
    "direct_counter": 0x13,
    "meter": 0x14,
    "direct_meter": 0x15,
    "register": 0x16,
    "digest": 0x17,
}
_NOT_SHOWN = frozenset(["name", "id", "brief", "description"])
_MATCH = {"exact": "EXACT", "lpm": "LPM", "ternary": "TERNARY", "range": "RANGE", "optional": "OPTIONAL"}


def p4info_text(program: Draft) -> str:
    """The P4Info message in protobuf's text format."""
    header = "# proto-file: p4/config/v1/p4info.proto\n# proto-message: p4.config.v1.P4Info\n\n"
    return header + _Writer(program).message().text()


def name_hash(name: str) -> int:
    """Bob Jenkins's one-at-a-time hash, 32 bits."""
    value = 0
    for byte in name.encode():
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6
    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


def _number_in(a: ast.Annotation | None) -> int | None:
    """The number in `@name(number)`."""
    first = a.expressions[0] if a is not None and a.expressions else None
    return first.number if isinstance(first, ast.Number) else None


class Symbols:
    """Ids and aliases of everything that the control plane can name."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], int | None] = {}
        self._ids: dict[tuple[str, str], int] = {}
        self._names: set[str] = set()
        self._suffixes: dict[tuple[str, ...], int] = {}

    def add(self, kind: str, name: str, annotations: Iterable[ast.Annotation]) -> None:
        key = (kind, name)
        if key in self._given:
            return
        if name not in self._names:
            self._names.add(name)
            parts = name.split(".")
            for start in range(len(parts)):
                suffix = tuple(parts[start:])
                self._suffixes[suffix] = self._suffixes.get(suffix, 0) + 1
        chosen = next((a for a in annotations if a.name == "id"), None)
        number = _number_in(chosen)
        self._given[key] = None if number is None else number | (_PREFIX[kind] << 24)

    def number(self) -> None:
        """Give ids to all names."""
        taken = {n for n in self._given.values() if n is not None}
        self._ids = {key: n for key, n in self._given.items() if n is not None}
        for kind in _PREFIX:
            for key in sorted(k for k, n in self._given.items() if k[0] == kind and n is None):
                value = name_hash(key[1])
                while (candidate := (_PREFIX[kind] << 24) | (value & 0xFFFFFF)) in taken:
                    value += 1
                taken.add(candidate)
                self._ids[key] = candidate

    def id(self, kind: str, name: str) -> int:
        return self._ids[(kind, name)]

    def alias(self, name: str) -> str:
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            if self._suffixes.get(tuple(parts[-count:]), 0) < 2:
                return ".".join(parts[-count:])
        return name


def hidden(annotations: Iterable[ast.Annotation]) -> bool:
    return any(a.name == "hidden" for a in annotations)


def member_ids(items: list[list[ast.Annotation]]) -> list[int]:
    """Ids of parameters, keys or fields: `@id`, else their place, past numbers that are taken."""
    given: list[int | None] = []
    for tags in items:
        given.append(_number_in(next((a for a in tags if a.name == "id"), None)))
    taken = {n for n in given if n is not None}
    ids, index = [], 1
    for n in given:
        if n is not None:
            index += 1
            ids.append(n)
            continue
        while index in taken:
            index += 1
        taken.add(index)
        ids.append(index)
    return ids


class _Writer:
    def __init__(self, program: Draft) -> None:
        self.program = program
        self.symbols = Symbols()
        self.types = TypeInfo()
        self.tables = [t for p in program.pipelines for t in p.tables if not hidden(t.annotations)]
        self.profiles = list({id(x): x for p in program.pipelines for x in p.profiles}.values())
        by_name = {a.name: a for a in reversed(program.declared_actions + program.called)}
        self.actions = [by_name[name] for name in program.action_names if name in by_name]

    def message(self) -> TextMessage:
        self._collect()
        p = self.program
        info = TextMessage()
        info.add("pkg_info", self._package())
        parts: list[tuple[str, Iterable[Any], Callable[[Any], TextMessage]]] = [
            ("tables", self.tables, self._table),
            ("actions", [a for a in self.actions if not hidden(a.annotations)], self._action),
            ("action_profiles", self.profiles, self._profile),
            ("counters", [c for c in p.counters if c.table is None and c.size is not None], self._counter),
            ("direct_counters", [c for c in p.counters if c.table in self.tables], self._counter),
            ("meters", [m for m in p.meters if m.table is None and m.size is not None], self._meter),
            ("direct_meters", [m for m in p.meters if m.table in self.tables], self._meter),
            (
                "controller_packet_metadata",
                [h for h in p.controller_headers if not hidden(h.annotations)],
                self._controller_header,
            ),
            ("value_sets", p.value_sets, self._value_set),
            ("registers", p.registers, self._register),
            ("digests", {d.name: d for d in p.digests}.values(), self._digest),
        ]
        for name, items, write in parts:
            for item in items:
                info.add(name, write(item))
        # As in p4c's output: present, even empty, once anything in P4Info could name a type.
        could = [self.tables, p.counters, p.meters, p.registers, p.controller_headers, p.digests, self.profiles]
        if p.calls_externs or any(could) or any(a.parameters for a in self.actions):
            info.add("type_info", self.types.message())
        return info

    def _collect(self) -> None:
        p = self.program
        kinds: dict[str, Iterable[Any]] = {
            "table": [t for pipeline in p.pipelines for t in pipeline.tables],
            "action": self.actions,
            "action_profile": self.profiles,
            "counter": [c for c in p.counters if c.size is not None],
            "direct_counter": [c for c in p.counters if c.size is None],
            "meter": [m for m in p.meters if m.size is not None],
            "direct_meter": [m for m in p.meters if m.size is None],
            "register": p.registers,
            "value_set": p.value_sets,
            "digest": p.digests,
            "controller_header": p.controller_headers,
        }
        for kind, items in kinds.items():
            for item in items:
                self.symbols.add(kind, item.name, getattr(item, "annotations", ()))
        self.symbols.number()

    # --- parts -----------------------------------------------------------------------------------------------------

    def _package(self) -> TextMessage:
        made = TextMessage()
        given: dict[str, str] = {}
        for a in self.program.package_annotations:
            if a.name == "pkginfo":
                for name, equals, value in zip(a.body, a.body[1:], a.body[2:], strict=False):
                    if equals == "=":
                        given[name] = value.strip('"')
        given["arch"] = "v1model"
        for key in ("name", "version", "arch", "organization", "contact", "url"):
            made.add(key, given.get(key))
        return made

    def _preamble(
        self, kind: str, name: str, annotations: list[ast.Annotation], shown: str = "", skip: Container[str] = ()
    ) -> TextMessage:
        made = TextMessage().add("id", self.symbols.id(kind, name)).add("name", shown or name)
        made.add("alias", shown or self.symbols.alias(name))
        self._annotations(made, annotations, skip)
        self._documentation(made, annotations)
        return made

    @staticmethod
    def _annotations(made: TextMessage, annotations: list[ast.Annotation], skip: Container[str] = ()) -> None:
        for a in annotations:
            if a.name not in _NOT_SHOWN and a.name not in skip and not a.structured:
                made.add("annotations", f"@{a.name}" + (f"({a.source})" if a.body else ""))

    @staticmethod
    def _documentation(made: TextMessage, annotations: list[ast.Annotation]) -> None:
        doc = TextMessage()
        for a in annotations:
            if a.name in ("brief", "description") and a.expressions and isinstance(a.expressions[0], ast.String):
                doc.add(a.name, a.expressions[0].text)
        if doc.fields:
            made.add("doc", doc)

    def _typed(self, made: TextMessage, t: Type) -> None:
        translated = self.types.register(t)
        made.add("bitwidth", width(t) if translated is None else translated)

    def _type_name(self, made: TextMessage, t: Type) -> None:
        if isinstance(t, NewType):
            made.add("type_name", TextMessage().add("name", t.name))

    def _table(self, t: DeclaredTable) -> TextMessage:
        made = TextMessage()
        made.add("preamble", self._preamble("table", t.name, t.annotations))
        ids = iter(member_ids([k.all_annotations for k in t.all_keys]))
        for key in t.all_keys:
            number = next(ids)
            if key.match == "selector":
                continue
            field = TextMessage().add("id", number).add("name", key.name)
            self._annotations(field, key.annotations)
            self._typed(field, key.type)
            field.add("match_type", EnumWord(_MATCH[key.match]))
            self._documentation(field, key.annotations)
            self._type_name(field, key.type)
            made.add("match_fields", field)
        for action, tags in t.actions:
            ref = TextMessage().add("id", self.symbols.id("action", action.name))
            self._annotations(ref, tags)
            names = {a.name for a in tags}
            if "tableonly" in names:
                ref.add("scope", EnumWord("TABLE_ONLY"))
            elif "defaultonly" in names:
                ref.add("scope", EnumWord("DEFAULT_ONLY"))
            made.add("action_refs", ref)
        default = self.symbols.id("action", t.default.name)
        if t.default_const:
            made.add("const_default_action_id", default)
        made.add("initial_default_action", self._default(t, default))
        if t.profile is not None:
            made.add("implementation_id", self.symbols.id("action_profile", t.profile.name))
        if t.counter is not None:
            made.add("direct_resource_ids", self.symbols.id("direct_counter", t.counter.name))
        if t.meter is not None:
            made.add("direct_resource_ids", self.symbols.id("direct_meter", t.meter.name))
        made.add("size", t.size or DEFAULT_TABLE_SIZE)
        if t.support_timeout:
            made.add("idle_timeout_behavior", EnumWord("NOTIFY_CONTROL"))
        if t.entries_const:
            made.add("is_const_table", EnumWord("true"))
        if t.entries:
            made.add("has_initial_entries", EnumWord("true"))
        return made

    def _default(self, t: DeclaredTable, action_id: int) -> TextMessage:
        made = TextMessage().add("action_id", action_id)
        ids = member_ids([a for _, _, a in t.default.parameters])
        for number, (_, kind, _), value in zip(ids, t.default.parameters, t.default_arguments, strict=True):
            size = ((width(kind) or 8) + 7) // 8
            made.add("arguments", TextMessage().add("param_id", number).add("value", value.to_bytes(size, "big")))
        return made

    def _action(self, a: DeclaredAction) -> TextMessage:
        made = TextMessage().add("preamble", self._preamble("action", a.name, a.annotations))
        for number, (name, t, tags) in zip(member_ids([x for _, _, x in a.parameters]), a.parameters, strict=True):
            parameter = TextMessage().add("id", number).add("name", name)
            self._annotations(parameter, tags)
            self._typed(parameter, t)
            self._documentation(parameter, tags)
            self._type_name(parameter, t)
            made.add("params", parameter)
        return made

    def _profile(self, x: DeclaredProfile) -> TextMessage:
        skip = ("max_group_size", "selector_size_semantics", "max_member_weight")
        made = TextMessage().add("preamble", self._preamble("action_profile", x.name, x.annotations, skip=skip))
        for table in sorted(x.tables, key=lambda t: t.name):
            made.add("table_ids", self.symbols.id("table", table.name))
        if x.algorithm is not None:
            made.add("with_selector", EnumWord("true"))
        made.add("size", x.size)
        for a in x.annotations:
            if a.name == "max_group_size":
                made.add("max_group_size", _number_in(a))
            elif a.name == "selector_size_semantics" and a.source.strip('"') in ("sum_of_weights", "sum_of_members"):
                weight = next((_number_in(w) for w in x.annotations if w.name == "max_member_weight"), None)
                semantics = TextMessage().add("max_member_weight", weight if "members" in a.source else None)
                made.add(a.source.strip('"'), semantics)
        return made

    def _counter(self, c: DeclaredCounter) -> TextMessage:
        kind = "counter" if c.table is None else "direct_counter"
        made = TextMessage().add("preamble", self._preamble(kind, c.name, c.annotations))
        unit = {"packets": "PACKETS", "bytes": "BYTES", "packets_and_bytes": "BOTH"}[c.unit]
        made.add("spec", TextMessage().add("unit", EnumWord(unit)))
        return self._sized(made, c)

    def _meter(self, m: DeclaredMeter) -> TextMessage:
        kind = "meter" if m.table is None else "direct_meter"
        made = TextMessage().add("preamble", self._preamble(kind, m.name, m.annotations))
        made.add("spec", TextMessage().add("unit", EnumWord(m.unit.upper())))
        return self._sized(made, m)

    def _sized(self, made: TextMessage, x: DeclaredCounter | DeclaredMeter) -> TextMessage:
        if x.table is not None:
            return made.add("direct_table_id", self.symbols.id("table", x.table.name))
        made.add("size", x.size or 0)
        if x.index_type is not None:
            self.types.register(x.index_type)
            if isinstance(x.index_type, NewType):
                made.add("index_type_name", TextMessage().add("name", x.index_type.name))
        return made

    def _controller_header(self, h: CompositeType) -> TextMessage:
        tag = next(a for a in h.annotations if a.name == "controller_header")
        shown = tag.expressions[0].text if tag.expressions and isinstance(tag.expressions[0], ast.String) else h.name
        made = TextMessage().add("preamble", self._preamble("controller_header", h.name, h.annotations, shown))
        fields = list(h.fields.values())
        for number, f in zip(member_ids([f.annotations for f in fields]), fields, strict=True):
            if hidden(f.annotations):
                continue
            metadata = TextMessage().add("id", number).add("name", f.name)
            self._annotations(metadata, f.annotations)
            self._typed(metadata, f.type)
            self._type_name(metadata, f.type)
            made.add("metadata", metadata)
        return made

    def _value_set(self, v: DeclaredValueSet) -> TextMessage:
        made = TextMessage().add("preamble", self._preamble("value_set", v.name, v.annotations))
        t = strip(v.type)
        if isinstance(t, CompositeType):
            fields: list[tuple[str, Type, list[Any]]] = [(f.name, f.type, f.annotations) for f in t.fields.values()]
        elif isinstance(t, Tuple):
            fields = [("", i, []) for i in t.items]
        else:
            fields = [("", t, [])]
        for number, (name, kind, _) in zip(member_ids([a for _, _, a in fields]), fields, strict=True):
            match = TextMessage().add("id", number)
            if name:
                match.add("name", name)
            match.add("bitwidth", width(kind)).add("match_type", EnumWord("EXACT"))
            made.add("match", match)
        return made.add("size", v.size)

    def _register(self, r: DeclaredRegister) -> TextMessage:
        made = TextMessage().add("preamble", self._preamble("register", r.name, r.annotations))
        made.add("type_spec", data_type(r.type, self.types)).add("size", r.register.size)
        if isinstance(r.index_type, NewType):
            self.types.register(r.index_type)
            made.add("index_type_name", TextMessage().add("name", r.index_type.name))
        return made

    def _digest(self, d: DeclaredDigest) -> TextMessage:
        made = TextMessage().add("preamble", self._preamble("digest", d.name, []))
        t = d.type
        if isinstance(t, CompositeType) and t.anonymous:
            t = Tuple(tuple(f.type for f in t.fields.values()))
        return made.add("type_spec", data_type(t, self.types))
