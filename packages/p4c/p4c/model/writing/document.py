"""The whole document, BMv2 JSON version 2.23 (behavioral-model's docs/JSON_format.md), with p4c's conventions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from p4c.model.headers import Header, HeaderType, Union
from p4c.model.program import Program
from p4c.model.writing import externs, parsers, pipelines
from p4c.model.writing.expressions import Json, place

VERSION = [2, 23]


def document(p: Program) -> Json:
    """The program as JSON, which `load` takes. What the model leaves out (pragmas, ids given before) is not written."""
    numbers = count()
    return {
        "program": p.name,
        "__meta__": {"version": VERSION, "compiler": p.compiler},
        "header_types": [_header_type(t, number) for number, t in enumerate(p.header_types)],
        "headers": [
            {"name": h.name, "id": h.index, "header_type": h.type.name, "metadata": h.metadata, "pi_omit": True}
            for h in p.headers
        ],
        "header_stacks": [
            {"name": s.name, "id": s.index, "header_type": s.type.name, "size": len(s.headers)}
            | {"header_ids": _ids(s.headers)}
            for s in p.stacks
        ],
        "header_union_types": _union_types(p.unions),
        "header_unions": [
            {"name": u.name, "id": u.index, "union_type": u.type_name, "header_ids": _ids(u.headers)} for u in p.unions
        ],
        "header_union_stacks": [
            {"name": s.name, "id": s.index, "union_type": s.unions[0].type_name, "header_union_ids": _ids(s.unions)}
            for s in p.union_stacks
        ],
        "field_lists": [externs.field_list(f) for f in p.field_lists.values()],
        "errors": [[name, value] for name, value in p.errors.items()],
        "enums": [
            {"name": name, "entries": [[member, value] for member, value in members.items()]}
            for name, members in p.enums.items()
        ],
        "parsers": [parsers.parser(p.parser)],
        "parse_vsets": [
            {"name": v.name, "id": number, "compressed_bitwidth": v.width_bits, "max_size": v.size}
            for number, v in enumerate(p.value_sets)
        ],
        "deparsers": [parsers.deparser(p.deparser)],
        "meter_arrays": externs.meters(p),
        "counter_arrays": externs.counters(p),
        "register_arrays": [externs.register(r) for r in p.registers],
        "calculations": [externs.calculation(c) for c in p.calculations],
        "learn_lists": [externs.field_list(f) for f in p.learn_lists],
        "actions": [pipelines.action(a) for a in p.actions],
        "pipelines": [pipelines.pipeline(x, number, numbers) for number, x in enumerate((p.ingress, p.egress))],
        "checksums": [externs.checksum(c, number) for number, c in enumerate(p.checksums)],
        "force_arith": [],
        "extern_instances": [],
        "field_aliases": [[name, place(target)] for name, target in p.aliases.items()],
    }


def _header_type(t: HeaderType, number: int) -> Json:
    fields: list[list[Any]] = []
    for f in t.fields:
        fields.append([f.name, "*" if f.varbit else f.width_bits, f.signed, *([True] if f.saturating else [])])
    made: Json = {"name": t.name, "id": number, "fields": fields}
    return made | ({"max_length": t.max_bytes} if t.max_bytes else {})


def _union_types(unions: Iterable[Union]) -> list[Json]:
    kinds = {u.type_name: u for u in unions}
    made = []
    for number, (name, union) in enumerate(kinds.items()):
        members = [[member, h.type.name] for member, h in zip(union.members, union.headers, strict=True)]
        made.append({"name": name, "id": number, "headers": members})
    return made


def _ids(parts: Iterable[Header | Union]) -> list[int]:
    return [part.index for part in parts]
