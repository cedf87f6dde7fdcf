"""The parser and the deparser."""

from __future__ import annotations

from p4c.model import parsers
from p4c.model.headers import Header
from p4c.model.writing.expressions import Json, argument, expression, padded, primitive


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
