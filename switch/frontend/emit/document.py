"""The lowered program as BMv2 JSON, version 2.23 (behavioral-model's docs/JSON_format.md), with p4c's conventions."""

from __future__ import annotations

from typing import Any

from switch.frontend import ir
from switch.frontend.check.types import Bits, strip, width
from switch.frontend.diagnostics import NOWHERE, Span
from switch.frontend.emit.expression import expression, hexstr, object_parameter, place_parameter, value_parameter
from switch.frontend.emit.graph import ConditionNode, Graph, TableNode, flatten

Json = dict[str, Any]
VERSION = [2, 23]
COMPILER = "mrclab switch.frontend"
DEFAULT_TABLE_SIZE = 1024


def emit(program: ir.Program, graphs: list[Graph], lines: dict[str, list[str]]) -> Json:
    """The whole JSON document. `lines` are the source files' lines, for `source_info`."""
    return _Emitter(program, graphs, lines).document()


class _Emitter:
    def __init__(self, program: ir.Program, graphs: list[Graph], lines: dict[str, list[str]]) -> None:
        self.program = program
        self.graphs = graphs
        self.lines = lines
        self.action_ids = {id(a): i for i, a in enumerate(program.actions)}
        self.table_id = self.condition_id = 0

    def document(self) -> Json:
        p = self.program

        def ids(whole: ir.StackInstance | ir.UnionInstance, parts: dict[str, Any]) -> list[int]:
            numbers = {name: i for i, name in enumerate(parts)}
            return [numbers[name] for name in whole.headers]

        return {
            "program": p.file,
            "__meta__": {"version": VERSION, "compiler": COMPILER},
            "header_types": self._header_types(),
            "headers": [
                {"name": h.name, "id": i, "header_type": h.type, "metadata": h.metadata, "pi_omit": True}
                for i, h in enumerate(p.headers.values())
            ],
            "header_stacks": [
                {
                    "name": s.name,
                    "id": i,
                    "header_type": s.type,
                    "size": len(s.headers),
                    "header_ids": ids(s, p.headers),
                }
                for i, s in enumerate(s for s in p.stacks.values() if not s.union)
            ],
            "header_union_types": [
                {"name": n, "id": i, "headers": [list(m) for m in members]}
                for i, (n, members) in enumerate(p.union_types.items())
            ],
            "header_unions": [
                {"name": u.name, "id": i, "union_type": u.type, "header_ids": ids(u, p.headers)}
                for i, u in enumerate(p.unions.values())
            ],
            "header_union_stacks": [
                {"name": s.name, "id": i, "union_type": s.type, "header_union_ids": ids(s, p.unions)}
                for i, s in enumerate(s for s in p.stacks.values() if s.union)
            ],
            "field_lists": [self._field_list(f) for f in p.field_lists],
            "errors": [[name, value] for name, value in p.errors.items()],
            "enums": [
                {"name": name, "entries": [[m, v] for m, v in members.items()]} for name, members in p.enums.items()
            ],
            "parsers": [self._parser()],
            "parse_vsets": [
                {"name": v.name, "id": i, "compressed_bitwidth": width(v.type), "max_size": v.size}
                for i, v in enumerate(p.value_sets)
            ],
            "deparsers": [{"name": "deparser", "id": 0, "order": p.deparser, "primitives": []}],
            "meter_arrays": self._meters(),
            "counter_arrays": self._counters(),
            "register_arrays": [
                self._placed({"name": r.name, "id": i, "size": r.size, "bitwidth": width(r.type)}, r.span)
                for i, r in enumerate(p.registers)
            ],
            "calculations": [self._calculation(c, i) for i, c in enumerate(p.calculations)],
            "learn_lists": [self._field_list(f) for f in p.learn_lists],
            "actions": [self._action(a) for a in p.actions],
            "pipelines": [
                self._pipeline(x, g, i) for i, (x, g) in enumerate(zip(p.pipelines, self.graphs, strict=True))
            ],
            "checksums": self._checksums(),
            "force_arith": [],
            "extern_instances": [],
            "field_aliases": [[name, [header, field]] for name, header, field in p.aliases],
        }

    # --- places ----------------------------------------------------------------------------------------------------

    def _placed(self, made: Json, span: Span) -> Json:
        if span is not NOWHERE and span.line:
            lines = self.lines.get(span.file, [])
            line = lines[span.line - 1].strip() if span.line <= len(lines) else ""
            info = {"filename": span.file, "line": span.line, "column": span.column, "source_fragment": line[:80]}
            made["source_info"] = info
        return made

    # --- headers ---------------------------------------------------------------------------------------------------

    def _header_types(self) -> list[Json]:
        made = []
        for i, t in enumerate(self.program.header_types.values()):
            fields: list[list[Any]] = []
            total = 0
            for name, bits, signed in t.fields:
                fields.append([name, "*" if bits is None else bits, signed])
                total += bits or 0
            if total % 8:
                fields.append(["_padding", 8 - total % 8, False])
            kind: Json = {"name": t.name, "id": i, "fields": fields}
            if t.varbit_max:
                kind["max_length"] = (total + 7) // 8 + (t.varbit_max + 7) // 8
            made.append(kind)
        return made

    def _field_list(self, f: ir.FieldList) -> Json:
        return {"id": f.id, "name": f.name, "elements": [value_parameter(x) for x in f.items]}

    # --- parser ----------------------------------------------------------------------------------------------------

    def _parser(self) -> Json:
        states = [
            {
                "name": s.name,
                "id": i,
                "parser_ops": [self._parser_op(o) for o in s.ops],
                "transitions": [self._parser_transition(t) for t in s.transitions],
                "transition_key": [place_parameter(k) for k in s.key],
            }
            for i, s in enumerate(self.program.states)
        ]
        return {"name": "parser", "id": 0, "init_state": "start", "parse_states": states}

    def _parser_op(self, o: ir.ParserOp) -> Json:
        if o.inner is not None:
            return {"op": "primitive", "parameters": [self._primitive(o.inner)]}
        if o.op in ("extract", "extract_VL"):
            place = o.parameters[0]
            assert isinstance(place, ir.Object)
            value = [place.name, place.member] if place.member else place.name
            parameters: list[Json] = [{"type": place.kind, "value": value}]
            if o.op == "extract_VL":
                parameters.append({"type": "expression", "value": expression(o.parameters[1])})
            return {"op": o.op, "parameters": parameters}
        if o.op == "set":
            target, source = o.parameters
            return {"op": "set", "parameters": [place_parameter(target), value_parameter(source)]}
        return {"op": o.op, "parameters": [expression(x) for x in o.parameters]}

    @staticmethod
    def _parser_transition(t: ir.ParserTransition) -> Json:
        def padded(value: int | str | None) -> str | None:
            return f"0x{value:0{2 * t.width_bytes}x}" if isinstance(value, int) else value

        return {"type": t.kind, "value": padded(t.value), "mask": padded(t.mask), "next_state": t.target}

    # --- objects ---------------------------------------------------------------------------------------------------

    def _counters(self) -> list[Json]:
        made: list[Json] = []
        for c in self.program.counters:
            if c.size is None and c.table is None:
                continue
            entry: Json = {"name": c.name, "id": len(made)}
            if c.size is None:
                assert c.table is not None
                entry |= {"is_direct": True, "binding": c.table.name}
            else:
                entry |= {"size": c.size, "is_direct": False}
            made.append(self._placed(entry, c.span))
        return made

    def _meters(self) -> list[Json]:
        made: list[Json] = []
        for m in self.program.meters:
            if m.size is None and (m.table is None or m.result is None):
                continue
            entry: Json = {"name": m.name, "id": len(made), "rate_count": 2, "type": m.unit}
            if m.size is None:
                assert m.table is not None
                assert m.result is not None
                entry |= {"is_direct": True, "size": m.table.size or DEFAULT_TABLE_SIZE, "binding": m.table.name}
                entry["result_target"] = [m.result.header, m.result.field]
            else:
                entry |= {"is_direct": False, "size": m.size}
            made.append(self._placed(entry, m.span))
        return made

    def _calculation(self, c: ir.Calculation, i: int) -> Json:
        inputs: list[Json] = []
        for x in c.inputs:
            if isinstance(x, ir.Object):
                inputs.append({"type": "payload", "value": None})
            elif isinstance(x, ir.Const):
                bits = x.type.width if isinstance(x.type, Bits) else 1
                inputs.append({"type": "hexstr", "value": hexstr(x.value), "bitwidth": bits})
            else:
                inputs.append(place_parameter(x))
        return self._placed({"name": c.name, "id": i, "algo": c.algorithm, "input": inputs}, c.span)

    def _checksums(self) -> list[Json]:
        made = []
        for i, c in enumerate(self.program.checksums):
            entry: Json = {
                "name": f"cksum_{i}",
                "id": i,
                "target": [c.target.header, c.target.field],
                "type": "generic",
                "calculation": c.calculation,
                "verify": c.verify,
                "update": not c.verify,
                "if_cond": expression(c.condition),
            }
            made.append(self._placed(entry, c.span))
        return made

    # --- actions ---------------------------------------------------------------------------------------------------

    def _action(self, a: ir.ActionDef) -> Json:
        return {
            "name": a.name,
            "id": self.action_ids[id(a)],
            "runtime_data": [{"name": n, "bitwidth": width(strip(t))} for n, t, _ in a.parameters],
            "primitives": [self._primitive(p) for p in flatten(a.body)],
        }

    def _primitive(self, p: ir.Primitive) -> Json:
        parameters = [object_parameter(x) for x in p.parameters]
        if p.op in ("assign", "assign_VL"):
            parameters[0] = place_parameter(p.parameters[0])
        return self._placed({"op": p.op, "parameters": parameters}, p.span)

    # --- pipelines -------------------------------------------------------------------------------------------------

    def _pipeline(self, p: ir.Pipeline, g: Graph, i: int) -> Json:
        made: Json = {
            "name": p.name,
            "id": i,
            "init_table": g.first,
            "tables": [self._table(n) for n in g.tables],
            "action_profiles": [self._profile(x) for x in p.profiles],
            "conditionals": [self._conditional(n) for n in g.conditions],
        }
        return self._placed(made, p.span)

    def _conditional(self, n: ConditionNode) -> Json:
        made: Json = {
            "name": n.name,
            "id": self.condition_id,
            "expression": expression(n.condition),
            "true_next": n.true_next,
            "false_next": n.false_next,
        }
        self.condition_id += 1
        return self._placed(made, n.span)

    def _profile(self, p: ir.ActionProfile) -> Json:
        names = list(dict.fromkeys(x.name for pipeline in self.program.pipelines for x in pipeline.profiles))
        made: Json = {"name": p.name, "id": names.index(p.name), "max_size": p.size}
        if p.algorithm is not None:
            made["selector"] = {"algo": p.algorithm, "input": [place_parameter(x) for x in p.inputs]}
        return self._placed(made, p.span)

    def _table(self, n: TableNode) -> Json:
        t = n.table
        by_hit = "__HIT__" in n.next
        profile = t.profile
        kind = "simple" if profile is None else "indirect" if profile.algorithm is None else "indirect_ws"
        made: Json = {"name": t.name, "id": self.table_id, "key": [self._key(k) for k in t.keys]}
        self.table_id += 1
        made |= {"match_type": match_type(t), "type": kind}
        if profile is not None:
            made["action_profile"] = profile.name
        made |= {
            "max_size": len(t.entries) if t.entries else t.size or DEFAULT_TABLE_SIZE,
            "with_counters": t.counter is not None,
            "support_timeout": t.support_timeout,
            "direct_meters": t.meter.name if t.meter is not None else None,
            "action_ids": [self.action_ids[id(a)] for a, _ in t.actions],
            "actions": [a.name for a, _ in t.actions],
            "base_default_next": None if by_hit else n.default_next,
            "next_tables": n.next,
        }
        if profile is None:
            made["default_entry"] = {
                "action_id": self.action_ids[id(t.default)],
                "action_const": t.default_const,
                "action_data": [hexstr(x) for x in t.default_arguments],
                "action_entry_const": t.default_const,
            }
        if t.entries is not None:
            made["entries"] = [self._entry(t, e) for e in t.entries]
        return self._placed(made, t.span)

    @staticmethod
    def _key(k: ir.Key) -> Json:
        assert isinstance(k.target, ir.FieldRef)
        bits = width(strip(k.target.type)) or 1
        mask = None if k.mask is None else f"0x{k.mask:0{(bits + 7) // 8 * 2}x}"
        match = "ternary" if k.match == "optional" else k.match
        return {"match_type": match, "name": k.name, "target": [k.target.header, k.target.field], "mask": mask}

    def _entry(self, t: ir.TableDef, e: ir.TableEntry) -> Json:
        keys: list[Json] = []
        for value, key in zip(e.keys, t.keys, strict=True):
            digits = ((width(strip(key.target.type)) or 1) + 7) // 8 * 2
            first, second = f"0x{value.first:0{digits}x}", f"0x{value.second:0{digits}x}"
            if value.match == "exact":
                keys.append({"match_type": "exact", "key": first})
            elif value.match == "lpm":
                keys.append({"match_type": "lpm", "key": first, "prefix_length": value.second})
            elif value.match == "range":
                keys.append({"match_type": "range", "start": first, "end": second})
            else:
                keys.append({"match_type": "ternary", "key": first, "mask": second})
        made: Json = {
            "match_key": keys,
            "action_entry": {
                "action_id": self.action_ids[id(e.action)],
                "action_data": [hexstr(x) for x in e.arguments],
            },
            "priority": e.priority,
        }
        return self._placed(made, e.span)


def match_type(t: ir.TableDef) -> str:
    """The table's own match type, the most general of its keys'."""
    kinds = {k.match for k in t.keys}
    if "range" in kinds:
        return "range"
    if kinds & {"ternary", "optional"}:
        return "ternary"
    return "lpm" if "lpm" in kinds else "exact"
