"""The whole document, BMv2 JSON version 2.23 (behavioral-model's docs/JSON_format.md), with p4c's conventions."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

from p4c.entries import ActionCall, Exact, Lpm, Match, Range, Ternary
from p4c.model import externs, parsers, pipelines
from p4c.model.actions import Action
from p4c.model.headers import Header, HeaderType, Union
from p4c.model.program import Program
from p4c.model.registers import Register
from p4c.model.writing.expressions import Json, argument, expression, hexstr, padded, place, placed, primitive


# Counters, meters, registers, calculations, checksums and field lists.
def counters(p: Program) -> list[Json]:
    """Direct counters that no table has taken are left out."""
    shown = [c for c in p.counters if c.table != ""]
    return [_counter(c, number) for number, c in enumerate(shown)]


def _counter(c: externs.Counter, number: int) -> Json:
    made: Json = {"name": c.name, "id": number}
    if c.table is not None:
        return placed(made | {"is_direct": True, "binding": c.table}, c.source)
    return placed(made | {"size": c.size, "is_direct": False}, c.source)


def meters(p: Program) -> list[Json]:
    """Direct meters that no table has taken, or that no action reads, are left out."""
    shown = [m for m in p.meters if not m.direct or (m.table and m.result)]
    return [_meter(m, number) for number, m in enumerate(shown)]


def _meter(m: externs.Meter, number: int) -> Json:
    made: Json = {"name": m.name, "id": number, "rate_count": 2, "type": "bytes" if m.bytes else "packets"}
    made |= {"is_direct": m.direct, "size": m.size}
    if m.result is not None:
        made |= {"binding": m.table, "result_target": place(m.result)}
    return placed(made, m.source)


def register(r: Register) -> Json:
    return placed({"name": r.name, "id": r.index, "size": r.size, "bitwidth": r.width_bits}, r.source)


def calculation(c: externs.Calculation) -> Json:
    return placed({"name": c.name, "id": c.index, "algo": c.algorithm, "input": inputs(c)}, c.source)


def inputs(c: externs.Calculation) -> list[Json]:
    return [_input(part) for part in c.inputs]


def _input(part: externs.CalculationInput) -> Json:
    match part:
        case externs.FieldInput(field):
            return expression(field)
        case externs.ConstInput(value, bits):
            # all digits: BMv2 copies so many bits from the number's own bytes
            return {"type": "hexstr", "value": padded(value & (1 << bits) - 1, bits), "bitwidth": bits}
        case externs.HeaderInput(header):
            return expression(header)
        case externs.PayloadInput():
            return {"type": "payload", "value": None}


def checksum(c: externs.Checksum, number: int) -> Json:
    made: Json = {"name": c.name, "id": number, "target": place(c.target), "type": "generic"}
    made |= {"calculation": c.calculation.name, "verify": c.verify, "update": c.update}
    if c.condition is not None:
        made["if_cond"] = expression(c.condition)
    return placed(made, c.source)


def field_list(f: externs.FieldList) -> Json:
    return {"id": f.id, "name": f.name, "elements": [argument(item) for item in f.fields]}


def learn_list(made: externs.LearnList) -> Json:
    return {"id": made.id, "name": made.name, "elements": [_input(item) for item in made.items]}


# Actions, and the pipelines: tables with their initial entries, conditionals, action profiles.
def action(a: Action) -> Json:
    return {
        "name": a.name,
        "id": a.id,
        "runtime_data": [{"name": p.name, "bitwidth": p.width_bits} for p in a.parameters],
        "primitives": [primitive(p) for p in a.primitives],
    }


def pipeline(p: pipelines.Pipeline, number: int, numbers: Iterator[int]) -> Json:
    """`numbers` are the ids of conditionals, which count through all pipelines."""
    nodes = p.nodes.values()
    made: Json = {
        "name": p.name,
        "id": number,
        "init_table": p.init,
        "tables": [_table(t) for t in p.tables],
        "action_profiles": [_profile(x) for x in p.profiles],
        "conditionals": [_conditional(n, next(numbers)) for n in nodes if isinstance(n, pipelines.Conditional)],
    }
    calls = [_action_call(n) for n in nodes if isinstance(n, pipelines.ActionCallNode)]
    return placed(made | ({"action_calls": calls} if calls else {}), p.source)


def _conditional(n: pipelines.Conditional, number: int) -> Json:
    made = {"name": n.name, "id": number, "expression": expression(n.expression)}
    return placed(made | {"true_next": n.if_true, "false_next": n.if_false}, n.source)


def _action_call(n: pipelines.ActionCallNode) -> Json:
    return {"name": n.name, "id": n.index, "action_id": n.action.id, "next_node": n.next}


def _profile(p: pipelines.ActionProfile) -> Json:
    made: Json = {"name": p.name, "id": p.index, "max_size": p.max_size}
    if p.selector is not None:
        made["selector"] = {"algo": p.selector.algorithm, "input": inputs(p.selector)}
    return placed(made, p.source)


def _table(t: pipelines.Table) -> Json:
    profile = t.profile
    kind = "simple" if profile is None else "indirect_ws" if profile.has_groups else "indirect"
    made: Json = {"name": t.name, "id": t.index, "key": [_key(k) for k in t.keys], "match_type": t.match, "type": kind}
    if profile is not None:
        made["action_profile"] = profile.name
    made |= {
        "max_size": t.max_size,
        "with_counters": t.counter is not None,
        "support_timeout": t.support_timeout,
        "direct_meters": t.meter.name if t.meter is not None else None,
        "action_ids": [a.id for a in t.actions],
        "actions": [a.name for a in t.actions],
        "base_default_next": None if t.by_hit else t.next_without_action,
        "next_tables": {"__HIT__": t.next_hit, "__MISS__": t.next_miss} if t.by_hit else dict(t.next_by_action),
    }
    if t.default is not None:
        made["default_entry"] = {
            "action_id": t.default.action.id,
            "action_const": t.default.const,
            "action_data": [hexstr(x) for x in t.default.args],
            "action_entry_const": t.default.const,
        }
    if t.const_entries:
        numbers = {a.name: a.id for a in t.actions}
        made["entries"] = [_entry(t, e, numbers) for e in t.initial]
    return placed(made, t.source)


def _key(k: pipelines.Key) -> Json:
    mask = None if k.mask is None else padded(k.mask, k.width_bits)
    return {"match_type": k.match, "name": k.name, "target": place(k.target), "mask": mask}


def _entry(t: pipelines.Table, e: pipelines.InitialEntry, numbers: Mapping[str, int]) -> Json:
    call = e.entry.action
    assert isinstance(call, ActionCall)  # a table with a profile has no initial entries
    matches = [_match(m, k.width_bits) for m, k in zip(e.entry.matches, t.keys, strict=True)]
    done = {"action_id": numbers[call.name], "action_data": [hexstr(x) for x in call.args]}
    return placed({"match_key": matches, "action_entry": done, "priority": e.rank}, e.source)


def _match(m: Match, width_bits: int) -> Json:
    match m:
        case Exact(value):
            return {"match_type": "exact", "key": padded(value, width_bits)}
        case Lpm(value, length):
            return {"match_type": "lpm", "key": padded(value, width_bits), "prefix_length": length}
        case Range(low, high):
            return {"match_type": "range", "start": padded(low, width_bits), "end": padded(high, width_bits)}
        case Ternary(value, mask):
            return {"match_type": "ternary", "key": padded(value, width_bits), "mask": padded(mask, width_bits)}
    raise AssertionError(m)


# The parser and the deparser.
def parser(p: parsers.Parser) -> Json:
    return {"name": p.name, "id": 0, "init_state": p.init_state, "parse_states": [_state(s) for s in p.states]}


def deparser(d: parsers.Deparser) -> Json:
    calls = [primitive(p) for p in d.primitives]
    return {"name": d.name, "id": 0, "order": [h.name for h in d.order], "primitives": calls}


def _state(s: parsers.State) -> Json:
    return {
        "name": s.name,
        "id": s.index,
        "parser_ops": [_operation(o) for o in s.operations],
        "transitions": [*(_transition(t, s.key) for t in s.transitions), _go("default", None, None, s.default)],
        "transition_key": [_key_part(part.source) for part in s.key],
    }


def _key_part(source: parsers.KeySource) -> Json:
    return argument(source) if isinstance(source, parsers.Lookahead) else expression(source)


def _operation(o: parsers.Operation) -> Json:
    match o:
        case parsers.Extract(varbit_width=None):
            return {"op": "extract", "parameters": [_into(o)]}
        case parsers.Extract(varbit_width=bits):
            assert bits is not None
            return {"op": "extract_VL", "parameters": [_into(o), {"type": "expression", "value": expression(bits)}]}
        case parsers.Set():
            return {"op": "set", "parameters": [argument(o.target), argument(o.value)]}
        case parsers.Verify():
            return {"op": "verify", "parameters": [expression(o.condition), expression(o.error)]}
        case parsers.Advance():
            return {"op": "advance", "parameters": [expression(o.bits)]}
        case parsers.Call():
            return {"op": "primitive", "parameters": [primitive(o.primitive)]}


def _into(o: parsers.Extract) -> Json:
    match o.into:
        case Header():
            return {"type": "regular", "value": o.into.name}
        case parsers.StackNext():
            return {"type": "stack", "value": o.into.stack.name}
        case parsers.UnionStackNext(stack, member):
            return {"type": "union_stack", "value": [stack.name, stack.unions[0].members[member]]}


def _transition(t: parsers.Transition, key: tuple[parsers.KeyPart, ...]) -> Json:
    if t.value_set is not None:
        return _go("parse_vset", t.value_set, None, t.next_state)
    full = tuple((1 << part.width_bits) - 1 for part in key)
    mask = None if t.masks == full else _joined(t.masks, key)
    return _go("hexstr", _joined(t.values, key), mask, t.next_state)


def _go(kind: str, value: str | None, mask: str | None, target: str | None) -> Json:
    return {"type": kind, "value": value, "mask": mask, "next_state": target}


def _joined(numbers: tuple[int, ...], key: tuple[parsers.KeyPart, ...]) -> str:
    """The numbers one behind the other, each in the whole bytes of its part of the key."""
    digits = (padded(n, part.width_bits).removeprefix("0x") for n, part in zip(numbers, key, strict=True))
    return "0x" + "".join(digits)


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
        "field_lists": [field_list(f) for f in p.field_lists.values()],
        "errors": [[name, value] for name, value in p.errors.items()],
        "enums": [
            {"name": name, "entries": [[member, value] for member, value in members.items()]}
            for name, members in p.enums.items()
        ],
        "parsers": [parser(p.parser)],
        "parse_vsets": [
            {"name": v.name, "id": number, "compressed_bitwidth": v.width_bits, "max_size": v.size}
            for number, v in enumerate(p.value_sets)
        ],
        "deparsers": [deparser(p.deparser)],
        "meter_arrays": meters(p),
        "counter_arrays": counters(p),
        "register_arrays": [register(r) for r in p.registers],
        "calculations": [calculation(c) for c in p.calculations],
        "learn_lists": [learn_list(x) for x in p.learn_lists],
        "actions": [action(a) for a in p.actions],
        "pipelines": [pipeline(x, number, numbers) for number, x in enumerate((p.ingress, p.egress))],
        "checksums": [checksum(c, number) for number, c in enumerate(p.checksums)],
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
