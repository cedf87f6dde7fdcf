"""Counters, meters, registers, calculations, checksums and field lists."""

from __future__ import annotations

from p4c.model import externs
from p4c.model.program import Program
from p4c.model.registers import Register
from p4c.model.writing.expressions import Json, argument, expression, hexstr, place, placed


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
    return [_input(one) for one in c.inputs]


def _input(one: externs.CalculationInput) -> Json:
    match one:
        case externs.FieldInput(field):
            return expression(field)
        case externs.ConstInput(value, bits):
            return {"type": "hexstr", "value": hexstr(value), "bitwidth": bits}
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


def field_list(f: externs.FieldList | externs.LearnList) -> Json:
    items = f.fields if isinstance(f, externs.FieldList) else f.items
    return {"id": f.id, "name": f.name, "elements": [argument(item) for item in items]}
