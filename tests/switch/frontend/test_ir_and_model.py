"""The compiler's IR and the switch's model say the same of a program: IR to JSON to model, both drawn as one picture.

The two hierarchies stand apart, since the model also reads what other compilers write. A class that one side gains
and the other lacks, a field that emitting or loading loses, an operator whose mask is wrong: each makes two pictures
differ.
Names, numbers and references are compared as they are; expressions by their values in random packets.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from switch.entries import ActionCall, Exact, Lpm, Match, Range, Ternary
from switch.frontend import ir
from switch.frontend.check.types import strip, width
from switch.frontend.compilation import Compilation
from switch.frontend.emit.graph import ConditionNode, Graph, TableNode, flatten
from switch.frontend.flow import walk
from switch.model import Program, load
from switch.model import actions as ac
from switch.model import expressions as ex
from switch.model import externs as et
from switch.model import parsers as pa
from switch.model import pipelines as pi
from switch.model.headers import Header, Stack, Union, UnionStack
from switch.model.primitives import SIGNATURES
from switch.model.registers import Register
from switch.reference.expressions import Expressions, fit
from switch.reference.externs import Externs
from switch.reference.packet import Layout, Packet
from tests.helpers.frontend.ir_meaning import Meaning
from tests.helpers.frontend.random_expressions import RandomExpressions
from tests.helpers.frontend.random_parsers import RandomParser
from tests.helpers.frontend.random_programs import RandomProgram

HERE = Path(__file__).resolve().parent
REFUSED = {"common.p4", "control_plane.p4"}  # no program; digests and value sets, which the engines do not execute
SOURCES = [
    *sorted(p for p in (HERE / "programs").glob("*.p4") if p.name not in REFUSED),
    *sorted((HERE.parent / "stf").glob("*.p4")),
    *sorted((HERE.parent / "native" / "programs").glob("*.p4")),
    *(HERE.parents[2] / "p4" / f"{name}.p4" for name in ("leaf", "spine")),
]
SEEDS = range(6)
PACKETS = 16
ARGUMENTS_MAX = 16

# What goes into P4Info only, or into parts of the JSON that the engines do not execute.
NOT_COMPARED = {
    "file", "enums", "aliases", "called", "declared_actions", "calls_externs", "controller_headers",
    "package_annotations", "value_sets", "learn_lists", "union_types",
}  # fmt: skip
# Objects of BMv2 that primitives name, in the IR's words.
KINDS = {
    "header_stack": "stack", "header_union": "union", "header_union_stack": "union stack",
    "register_array": "register", "counter_array": "counter", "meter_array": "meter",
}  # fmt: skip
PLACES = {"lvalue", "varbit"}  # words of SIGNATURES
Json = dict[str, Any]


def words(p: ir.Primitive | ac.Primitive) -> tuple[str, ...]:
    return SIGNATURES[p.op]


def random_packets(program: Program) -> list[Packet]:
    """Packets whose every field, validity, stack and argument is random, within the widths."""
    rng, layout, packets = random.Random(7), Layout(program), []
    for number in range(PACKETS):
        packet = Packet(layout, number, b"", 0)
        for header in program.headers:
            packet.valid[header.index] = header.metadata or rng.random() < 0.6
            for f in header.type.fields:
                few = rng.random() < 0.3  # small numbers, so that comparisons and shifts go both ways
                packet.values[layout.slot(header, f)] = fit(f)(rng.randrange(4) if few else rng.getrandbits(256))
        packet.nexts = [rng.randint(0, len(s.headers)) for s in program.stacks]
        packet.args = tuple(rng.getrandbits(7) for _ in range(ARGUMENTS_MAX))
        packets.append(packet)
    return packets


class FromIr:
    """The picture of the lowered program."""

    def __init__(self, program: ir.Program, graphs: list[Graph], model: Program) -> None:
        self.program = program
        self.graphs = graphs
        self.meanings = [Meaning(model, packet) for packet in random_packets(model)]

    def values(self, e: ir.Expr) -> tuple[int, ...]:
        return tuple(int(m.of(e)) for m in self.meanings)

    def place(self, e: ir.Expr) -> Any:
        """A field that is written, matched or listed."""
        match e:
            case ir.ElementField():
                return ("element", e.stack, self.values(e.index), e.field)
            case ir.LastField(member=member) if member:
                return ("last of union", e.stack, member, e.field)
            case ir.LastField():
                return ("last", e.stack, e.field)
            case ir.FieldRef():
                return ("field", e.header, e.field)
        raise AssertionError(e)

    def part(self, e: ir.Expr) -> Any:
        match e:
            case ir.Object(kind="header", name=name) | ir.Object(kind="regular", name=name):
                return ("header", name)
            case ir.Object(kind=kind, name=name):
                return (KINDS.get(kind, kind), name, *([e.member] if e.member else []))
            case ir.ElementHeader():
                return ("element", e.stack, self.values(e.index))
            case ir.Lookahead():
                return ("lookahead", e.offset, e.width)
            case ir.Text():
                return e.text
            case ir.Vector():
                return [self.part(i) for i in e.items]
        return self.values(e)

    def primitive(self, p: ir.Primitive) -> Any:
        return (
            p.op,
            [(self.place if w in PLACES else self.part)(x) for w, x in zip(words(p), p.parameters, strict=True)],
        )

    def document(self) -> Json:
        p = self.program
        return {
            "header_types": {
                t.name: [(n, bits or 0, signed) for n, bits, signed in t.fields] for t in p.header_types.values()
            },
            "headers": {h.name: (h.type, h.metadata) for h in p.headers.values()},
            "stacks": {s.name: (s.headers, s.union) for s in p.stacks.values()},
            "unions": {u.name: u.headers for u in p.unions.values()},
            "errors": p.errors,
            "states": {s.name: self.state(s) for s in p.states},
            "deparser": p.deparser,
            "actions": [self.action(a) for a in p.actions],
            "pipelines": {x.name: self.pipeline(g) for x, g in zip(p.pipelines, self.graphs, strict=True)},
            "counters": {c.name: (c.size or 0, c.table and c.table.name) for c in p.counters if c.size or c.table},
            "meters": {
                m.name: (m.size or 0, m.unit, m.table and m.table.name, m.result and self.place(m.result))
                for m in p.meters
                if m.size or m.result
            },
            "registers": {r.name: (r.size, width(r.type)) for r in p.registers},
            "calculations": {c.name: (c.algorithm, self.inputs(c.inputs)) for c in p.calculations},
            "checksums": [
                (self.place(c.target), c.calculation, self.values(c.condition), c.verify) for c in p.checksums
            ],
            "field_lists": {f.id: [self.place(x) for x in f.items] for f in p.field_lists},
        }  # fmt: skip

    def state(self, s: ir.ParserState) -> Json:
        sizes = [width(strip(k.type)) or 1 for k in s.key]
        full = 0
        for bits in sizes:
            full = full << (bits + 7) // 8 * 8 | ((1 << bits) - 1)
        chosen, default = [], None
        for t in s.transitions:
            if t.kind == "default":
                default = t.target
                break
            assert isinstance(t.value, int)
            mask = full if t.mask is None else t.mask
            chosen.append((t.value & mask, mask, t.target))
        key = [(self.place(k), bits) for k, bits in zip(s.key, sizes, strict=True)]
        return {"ops": [self.operation(o) for o in s.ops], "key": key, "next": chosen, "default": default}

    def operation(self, o: ir.ParserOp) -> Any:
        if o.inner is not None:
            return self.primitive(o.inner)
        if o.op in ("extract", "extract_VL"):
            return ("extract", self.part(o.parameters[0]), *[self.values(x) for x in o.parameters[1:]])
        if o.op == "set":
            return ("set", self.place(o.parameters[0]), self.part(o.parameters[1]))
        return (o.op, *[self.values(x) for x in o.parameters])

    def action(self, a: ir.ActionDef) -> Any:
        parameters = [(name, width(strip(t))) for name, t, _ in a.parameters]
        return (a.name, parameters, [self.primitive(p) for p in flatten(a.body)])

    def inputs(self, inputs: list[ir.Expr]) -> list[Any]:
        found = [
            (x.value, width(x.type) or 1) if isinstance(x, ir.Const) else self.place(x)
            for x in inputs
            if not isinstance(x, ir.Object)
        ]
        return found + ["payload"] * (len(inputs) > len(found))

    def pipeline(self, g: Graph) -> Json:
        nodes: Json = {n.name: self.condition(n) for n in g.conditions}
        return {"first": g.first, "nodes": nodes | {n.name: self.table(n) for n in g.tables}}

    def condition(self, n: ConditionNode) -> Any:
        return (self.values(n.condition), n.true_next, n.false_next)

    def table(self, n: TableNode) -> Json:
        t = n.table
        profile = t.profile and (t.profile.name, t.profile.size, t.profile.algorithm, self.inputs(t.profile.inputs))
        default = None if profile else (t.default.name, t.default_arguments, t.default_const)
        match = [("ternary" if k.match == "optional" else k.match) for k in t.keys]
        entries = [
            ([(m, v.first, v.second) for m, v in zip(match, e.keys, strict=True)], e.action.name, e.arguments)
            for e in sorted(t.entries or [], key=lambda e: e.priority)
        ]
        return {
            "keys": [(k.name, m, self.place(k.target), k.mask) for k, m in zip(t.keys, match, strict=True)],
            "actions": [a.name for a, _ in t.actions],
            "profile": profile,
            "default": default,
            "entries": None if t.entries is None else entries,
            "counted": t.counter is not None,
            "meter": t.meter and t.meter.name,
            "timeout": t.support_timeout,
            "next": n.next,
        }


class FromModel:
    """The picture of the loaded program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.packets = random_packets(program)
        self.expressions = Expressions(Layout(program), Externs(program))

    def values(self, e: Any) -> tuple[int, ...]:
        read = self.expressions.test(e) if e.kind is ex.Kind.BOOL else self.expressions.reader(e)
        return tuple(int(read(packet)) for packet in self.packets)

    def place(self, a: Any) -> Any:
        """A field that is written, matched or listed."""
        match a:
            case ex.AccessField(ex.StackElement(stack, index), field):
                return ("element", stack.name, self.values(index), field.name)
            case pa.LastUnionField(stack, index, field):
                return ("last of union", stack.name, stack.unions[0].members[index], field.name)
            case ex.LastField(stack, field):
                return ("last", stack.name, field.name)
            case ex.FieldRef(header, field):
                return ("field", header.name, field.name)
            case ex.ValidBit(header):
                return ("field", header.name, "$valid$")
        raise AssertionError(a)

    def part(self, a: Any) -> Any:
        match a:
            case Header() as header:
                return ("header", header.name)
            case (Stack() as stack) | pa.StackNext(stack):
                return ("stack", stack.name)
            case Union() as union:
                return ("union", union.name)
            case UnionStack() as stack:
                return ("union stack", stack.name)
            case pa.UnionStackNext(stack, index):
                return ("union_stack", stack.name, stack.unions[0].members[index])
            case ex.StackElement(stack, index):
                return ("element", stack.name, self.values(index))
            case pa.Lookahead(offset, bits):
                return ("lookahead", offset, bits)
            case Register() | et.Counter() | et.Meter() | et.Calculation():
                return (type(a).__name__.lower(), a.name)
            case et.FieldList():
                return (a.id,) * PACKETS
            case ac.Text(text):
                return text
            case ac.Vector(items):
                return [self.part(i) for i in items]
        return self.values(a)

    def primitive(self, p: ac.Primitive) -> Any:
        return (p.op, [(self.place if w in PLACES else self.part)(x) for w, x in zip(words(p), p.args, strict=True)])

    def document(self) -> Json:
        p = self.program
        stacks: Json = {s.name: ([h.name for h in s.headers], False) for s in p.stacks}
        return {
            "header_types": {
                t.name: [(f.name, f.width_bits, f.signed) for f in t.fields if f.name != "_padding"]
                for t in p.header_types
            },
            "headers": {h.name: (h.type.name, h.metadata) for h in p.headers},
            "stacks": stacks | {s.name: ([u.name for u in s.unions], True) for s in p.union_stacks},
            "unions": {u.name: [h.name for h in u.headers] for u in p.unions},
            "errors": p.errors,
            "states": {s.name: self.state(s) for s in p.parser.states},
            "deparser": [h.name for h in p.deparser.order],
            "actions": [self.action(a) for a in p.actions],
            "pipelines": {x.name: self.pipeline(x) for x in (p.ingress, p.egress)},
            "counters": {c.name: (c.size, c.table) for c in p.counters},
            "meters": {
                m.name: (m.size, "bytes" if m.bytes else "packets", m.table, m.result and self.place(m.result))
                for m in p.meters
            },
            "registers": {r.name: (r.size, r.width_bits) for r in p.registers},
            "calculations": {c.name: (c.algorithm, self.inputs(c.inputs)) for c in p.calculations},
            "checksums": [
                (self.place(c.target), c.calculation.name, self.values(c.condition), c.verify) for c in p.checksums
            ],
            "field_lists": {n: [self.place(x) for x in f.fields] for n, f in p.field_lists.items()},
        }

    def state(self, s: pa.State) -> Json:
        sizes = [(k.width_bits + 7) // 8 * 8 for k in s.key]

        def joined(parts: Iterable[int]) -> int:
            whole = 0
            for part, bits in zip(parts, sizes, strict=True):
                whole = whole << bits | part
            return whole

        chosen = [(joined(t.values or ()), joined(t.masks or ()), t.next_state) for t in s.transitions]
        key = [(self.place(k.source), k.width_bits) for k in s.key]
        return {"ops": [self.operation(o) for o in s.operations], "key": key, "next": chosen, "default": s.default}

    def operation(self, o: pa.Operation) -> Any:
        match o:
            case pa.Extract(into, bits):
                return ("extract", self.part(into), *([] if bits is None else [self.values(bits)]))
            case pa.Set(target, value):
                return ("set", self.place(target), self.part(value))
            case pa.Verify(condition, error):
                return ("verify", self.values(condition), self.values(error))
            case pa.Advance(bits):
                return ("advance", self.values(bits))
        return self.primitive(o.primitive)

    def action(self, a: ac.Action) -> Any:
        parameters = [(p.name, p.width_bits) for p in a.parameters]
        return (a.name, parameters, [self.primitive(p) for p in a.primitives])

    def inputs(self, inputs: Iterable[et.CalculationInput]) -> list[Any]:
        found: list[Any] = []
        for x in inputs:
            match x:
                case et.FieldInput(field):
                    found.append(self.place(field))
                case et.ConstInput(value, bits):
                    found.append((value, bits))
                case et.PayloadInput():
                    found.append("payload")
        return found

    def pipeline(self, p: pi.Pipeline) -> Json:
        return {"first": p.init, "nodes": {n.name: self.node(n) for n in p.nodes.values()}}

    def node(self, n: pi.Node) -> Any:
        if isinstance(n, pi.Conditional):
            return (self.values(n.expression), n.if_true, n.if_false)
        assert isinstance(n, pi.Table)
        profile = n.profile
        selector = profile.selector if profile else None
        by_hit = {"__HIT__": n.next_hit, "__MISS__": n.next_miss}
        entries = [
            ([self.match(m, k) for m, k in zip(e.matches, n.keys, strict=True)], *self.call(e.action))
            for e in sorted(n.entries, key=lambda e: -e.priority)
        ]
        return {
            "keys": [(k.name, k.match, self.place(k.target), k.mask) for k in n.keys],
            "actions": [a.name for a in n.actions],
            "profile": profile
            and (
                profile.name,
                profile.max_size,
                selector and selector.algorithm,
                self.inputs(selector.inputs) if selector else [],
            ),
            "default": n.default and (n.default.action.name, list(n.default.args), n.default.const),
            "entries": entries if n.const_entries else None,
            "counted": n.counter is not None,
            "meter": n.meter and n.meter.name,
            "timeout": n.support_timeout,
            "next": by_hit if n.by_hit else dict(n.next_by_action),
        }

    @staticmethod
    def call(action: object) -> tuple[str, list[int]]:
        assert isinstance(action, ActionCall)
        return action.name, list(action.args)

    @staticmethod
    def match(m: Match, key: pi.Key) -> tuple[str, int, int]:
        match m:
            case Exact(value):
                return ("exact", value, (1 << key.width_bits) - 1)
            case Lpm(value, length):
                return ("lpm", value, length)
            case Ternary(value, mask):
                return ("ternary", value, mask)
            case Range(low, high):
                return ("range", low, high)
        raise AssertionError(m)


def pictures(path: Path) -> tuple[Json, Json, Compilation]:
    compilation = Compilation(path)
    model = load(compilation.run().json)
    assert compilation.lowered is not None
    drawn = FromIr(compilation.lowered, compilation.graphs, model).document()
    return drawn, FromModel(model).document(), compilation


def compared(path: Path) -> Compilation:
    """Assert section by section that both pictures of a program are the same."""
    ours, theirs, compilation = pictures(path)
    assert ours.keys() == theirs.keys()
    for section, expected in ours.items():
        if section in ("errors", "counters"):  # loading adds the core library's errors, and counters without a name
            assert expected.items() <= theirs[section].items(), section
        else:
            assert theirs[section] == expected, section
    return compilation


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.stem)
def test_a_program_says_the_same_as_ir_and_as_a_loaded_model(path: Path) -> None:
    compared(path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [RandomExpressions, RandomParser, RandomProgram])
def test_a_random_program_says_the_same_as_ir_and_as_a_loaded_model(kind: Any, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "random.p4"
    path.write_text(kind(seed).text)
    compared(path)


def classes(base: type) -> set[type]:
    """The IR's own classes below `base`."""
    known = [c for c in vars(ir).values() if isinstance(c, type) and issubclass(c, base) and c is not base]
    return {c for c in known if c.__module__ == ir.__name__}


def used(value: object) -> set[type]:
    """The IR classes in `value`, however deep."""
    if isinstance(value, ir.Expr | ir.Stmt | ir.ParserOp | ir.ParserState | ir.ActionDef):
        members = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
        return {type(value)}.union(*(used(getattr(value, f.name)) for f in members if f.name != "table"))
    if isinstance(value, dict):
        value = list(value.values())
    return set().union(*map(used, value)) if isinstance(value, list | tuple) else set()


def test_the_programs_use_every_class_of_the_ir_and_every_field_of_a_program_is_compared() -> None:
    met: set[type] = set()
    for path in SOURCES:
        compilation = Compilation(path)
        compilation.lower()
        p = compilation.lowered
        assert p is not None
        met |= used([p.states, p.actions, [c.condition for c in p.checksums], [c.inputs for c in p.calculations]])
        met |= {type(s) for x in p.pipelines for s in walk(x.body)}
        met |= used([n.condition for g in compilation.graphs for n in g.conditions])
        met |= used([k.target for x in p.pipelines for t in x.tables for k in t.keys])
    assert (classes(ir.Expr) | classes(ir.Stmt)) - met == set()
    compared_sections, _, _ = pictures(HERE / "programs" / "calculator.p4")
    assert {f.name for f in dataclasses.fields(ir.Program)} - set(compared_sections) - NOT_COMPARED == set()


def test_a_wrong_mask_in_the_json_makes_the_pictures_differ(tmp_path: Path) -> None:
    """The comparison can fail: one operand changed between emitting and loading is seen."""
    path = HERE / "programs" / "calculator.p4"
    compilation = Compilation(path)
    document = compilation.run().json
    assert compilation.lowered is not None
    changed = [
        p["parameters"][1]["value"]["value"]
        for a in document["actions"]
        for p in a["primitives"]
        if p["op"] == "assign" and p["parameters"][1]["type"] == "expression"
    ]
    mask = next(node for node in changed if node.get("op") == "&")
    mask["right"]["value"] = "0x7"
    model = load(document)
    assert FromIr(compilation.lowered, compilation.graphs, model).document() != FromModel(model).document()
