"""The lowered program as a whole, in the model."""

from __future__ import annotations

from p4c.frontend.check.types import width
from p4c.frontend.declared import DEFAULT_TABLE_SIZE, DeclaredCounter, DeclaredMeter, DeclaredProfile
from p4c.frontend.diagnostics import NOWHERE, Diagnostics, SourceSpan
from p4c.frontend.draft import Draft
from p4c.frontend.emit.graph import build
from p4c.model import ModelError, Program, memory
from p4c.model.externs import Calculation, Counter, FieldInput, Meter
from p4c.model.intrinsics import find_intrinsics
from p4c.model.parsers import Deparser, Parser
from p4c.model.pipelines import ActionProfile
from p4c.model.program import ValueSet

COMPILER = "mrclab switch.frontend"


def finish(draft: Draft, diagnostics: Diagnostics) -> Program | None:
    """The program in the model. Errors go to `diagnostics`; None where the program cannot be in the model."""
    try:
        intrinsics = find_intrinsics(draft.headers, draft.aliases)
    except ModelError as missing:
        diagnostics.error("target", str(missing), NOWHERE)
        return None
    for place, counter in enumerate(draft.counters):
        counter.counter = counter.counter or _direct_counter(counter, place, diagnostics)
    for place, meter in enumerate(draft.meters):
        meter.meter = meter.meter or _direct_meter(meter, place, diagnostics)
    profiles = list({x.name: x for p in draft.pipelines for x in p.profiles}.values())
    for place, profile in enumerate(profiles):
        profile.profile = _profile(profile, place, diagnostics)
    ingress, egress = build(draft, diagnostics)
    program = Program(
        name=draft.file,
        digest="",
        compiler=COMPILER,
        header_types=tuple(draft.header_types.values()),
        headers=tuple(draft.headers.values()),
        stacks=tuple(draft.stacks.values()),
        unions=tuple(draft.unions.values()),
        union_stacks=tuple(draft.union_stacks.values()),
        intrinsics=intrinsics,
        aliases=draft.aliases,
        errors=draft.errors,
        enums=draft.enums,
        parser=Parser("parser", "start", draft.states),
        deparser=Deparser("deparser", tuple(draft.deparser)),
        ingress=ingress,
        egress=egress,
        actions=tuple(draft.actions),
        calculations=tuple(draft.calculations),
        checksums=tuple(draft.checksums),
        counters=tuple(c.counter for c in draft.counters if c.counter is not None),
        meters=tuple(m.meter for m in draft.meters if m.meter is not None),
        registers=tuple(r.register for r in draft.registers),
        profiles=tuple(x.profile for x in profiles if x.profile is not None),
        field_lists={f.id: f for f in draft.field_lists},
        learn_lists=tuple(d.learned for d in draft.digests),
        value_sets=tuple(ValueSet(v.name, width(v.type) or 0, v.size) for v in draft.value_sets),
    )
    too_much = memory.excess(program)
    if too_much is not None:
        message, at = too_much
        span = NOWHERE if at is None else SourceSpan(at.filename, at.line, at.column)
        diagnostics.error("target", message, span)
    return program


def _direct_counter(c: DeclaredCounter, place: int, diagnostics: Diagnostics) -> Counter:
    return Counter(c.name, place, 0, c.table.name if c.table is not None else "", diagnostics.source(c.span))


def _direct_meter(m: DeclaredMeter, place: int, diagnostics: Diagnostics) -> Meter:
    table, size = ("", 0) if m.table is None else (m.table.name, m.table.size or DEFAULT_TABLE_SIZE)
    return Meter(m.name, place, size, m.unit == "bytes", table, m.result, diagnostics.source(m.span))


def _profile(p: DeclaredProfile, place: int, diagnostics: Diagnostics) -> ActionProfile:
    selector = None
    if p.algorithm is not None:
        inputs = tuple(FieldInput(field) for field in p.inputs)
        selector = Calculation(f"{p.name}.selector", -1, p.algorithm, inputs)
    return ActionProfile(p.name, place, p.size, selector, diagnostics.source(p.span))
