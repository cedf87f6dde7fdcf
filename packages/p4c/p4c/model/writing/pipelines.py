"""Actions, and the pipelines: tables with their initial entries, conditionals, action profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from p4c.entries import ActionCall, Exact, Lpm, Match, Range, Ternary
from p4c.model import pipelines
from p4c.model.actions import Action
from p4c.model.writing.expressions import Json, expression, hexstr, padded, place, placed, primitive
from p4c.model.writing.externs import inputs


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
