"""The whole program: from the package's arguments to header instances, states, pipelines and the deparser's order."""

from __future__ import annotations

from . import ast, ir
from .checker import Checker
from .diagnostics import NOWHERE, Diagnostics
from .lower_base import SCALARS, RefusalError
from .lower_parser import ParserLowerer
from .scope import Callee, Symbol
from .types import BOOL, Applicable, Composite, Enum, EnumValue, Extern, strip
from .values import (
    ActionValue,
    BlockValue,
    ExternValue,
    HeaderValue,
    Record,
    StackValue,
    UnionValue,
    Value,
    leaves,
)

STANDARD_METADATA = "standard_metadata"
_ARCHITECTURE_ENUMS = frozenset(["CounterType", "MeterType", "HashAlgorithm", "CloneType"])
_V1SWITCH = ("p", "vr", "ig", "eg", "ck", "dep")


def lower(program: ast.Program, checker: Checker, diagnostics: Diagnostics, file: str) -> ir.Program:
    """The checked program as BMv2 will see it; refusals go to `diagnostics`."""
    made = ir.Program(file=file, errors=dict(checker.errors))
    return ProgramLowerer(made, checker, diagnostics).lower(program)


class ProgramLowerer(ParserLowerer):
    def __init__(self, made: ir.Program, checker: Checker, diagnostics: Diagnostics) -> None:
        super().__init__(made, checker.errors, diagnostics)
        self.checker = checker
        self.globals = self.frame
        self._direct_blocks = {}
        self._conditions: list[ir.Expr] = []

    def symbol_of(self, d: ast.Declaration) -> Symbol:
        return self.checker.declared[id(d)]

    def block_symbol(self, d: ast.Control | ast.Parser) -> Symbol:
        return self.checker.blocks[id(d)]

    def lower(self, program: ast.Program) -> ir.Program:
        try:
            self._lower(program)
        except RefusalError as refusal:
            self.refuse(refusal)
        return self.program

    def _lower(self, program: ast.Program) -> None:
        self.program.header_types[f"{SCALARS}_0"] = ir.HeaderType(f"{SCALARS}_0", [])
        self.program.headers[SCALARS] = ir.HeaderInstance(SCALARS, f"{SCALARS}_0", True)
        self._names.add(SCALARS)
        for d in program.declarations:
            self._global(d)
        main = self.checker.scope.names["main"]
        blocks = self._blocks(main)
        hdr, meta, standard = self._storage(blocks["p"])
        packet = ExternValue(Extern(self._extern("packet_in"), "packet_in"), "packet")
        packet_out = ExternValue(Extern(self._extern("packet_out"), "packet_out"), "packet")
        self._bind(blocks["p"], [packet, hdr, meta, standard])
        self.parser(blocks["p"])
        for name, key in (("verify", "vr"), ("ingress", "ig"), ("egress", "eg"), ("compute", "ck")):
            arguments = [hdr, meta] if name in ("verify", "compute") else [hdr, meta, standard]
            self._bind(blocks[key], arguments)
            if name in ("ingress", "egress"):
                self._pipeline(name, blocks[key])
            else:
                self._checksums(name, blocks[key])
        self._bind(blocks["dep"], [packet_out, hdr])
        self._deparser(blocks["dep"])
        self.program.package_annotations = main.declaration.annotations if main.declaration is not None else []

    # --- setting up ------------------------------------------------------------------------------------------------

    def _global(self, d: ast.Declaration) -> None:
        if isinstance(d, ast.Instance):
            symbol = self.symbol_of(d)
            if isinstance(symbol.type, Extern):
                self.instance(d, symbol, self.globals)
        elif isinstance(d, ast.EnumDecl) and d.underlying is None and d.name not in _ARCHITECTURE_ENUMS:
            t = self.symbol_of(d).type
            assert isinstance(t, Enum)
            self.program.enums[d.name] = dict(t.values)
        elif isinstance(d, ast.Composite) and d.annotation("controller_header") is not None:
            t = self.symbol_of(d).type
            if isinstance(t, Composite):
                self.program.controller_headers.append(t)

    def _extern(self, name: str) -> ast.ExternDecl:
        t = self.checker.scope.names[name].type
        assert isinstance(t, Extern)
        return t.declaration

    def _blocks(self, main: Symbol) -> dict[str, BlockValue]:
        t, callee = main.type, main.value
        span = main.span or NOWHERE
        if not isinstance(t, Applicable) or t.name != "V1Switch" or not isinstance(callee, Callee):
            raise RefusalError(f"main must be a V1Switch, not {t}: v1model is the only architecture here", span)
        found = {}
        for name, argument in zip(_V1SWITCH, callee.arguments, strict=True):
            assert argument is not None
            inner = argument.target
            if isinstance(argument, ast.Name):
                inner = argument.target.value
            if not isinstance(inner, Callee) or not isinstance(inner.returns, Applicable):
                raise RefusalError("each argument of V1Switch is an instance such as MyIngress()", argument.span)
            declared = inner.returns.declaration
            found[name] = self.block_value(inner.returns, inner, self.control_plane_name(declared, ""), argument.span)
        return found

    def _storage(self, parser: BlockValue) -> tuple[Value, Value, Value]:
        _, headers, metadata, standard = parser.symbol.parameters
        span = headers.declaration.span
        std_type = strip(standard.type)
        assert isinstance(std_type, Composite)
        self._standard_metadata(std_type)
        std = Record(
            std_type, {n: ir.FieldRef(STANDARD_METADATA, n, strip(f.type)) for n, f in std_type.fields.items()}
        )
        for what, info in (("headers", headers), ("metadata", metadata)):
            t = strip(info.type)
            if not isinstance(t, Composite) or t.kind != "struct":
                raise RefusalError(f"the {what} of the parser must be a struct, not {info.type}", info.declaration.span)
        hdr = self.allocate("", headers.type, span, top=True)
        for leaf in leaves(hdr):
            if not isinstance(leaf, HeaderValue | StackValue | UnionValue):
                message = "the headers struct holds headers, stacks and unions only; move other fields to the metadata"
                self.refuse(RefusalError(message, span))
                break
        meta = self.allocate("userMetadata", metadata.type, metadata.declaration.span)
        meta_type = strip(metadata.type)
        assert isinstance(meta_type, Composite)
        assert isinstance(meta, Record)
        self._field_lists(meta_type, meta, [])
        return hdr, meta, std

    def _standard_metadata(self, t: Composite) -> None:
        kind = ir.HeaderType(STANDARD_METADATA, [])
        for f in t.fields.values():
            kind.fields.append((f.name, self.bits(f.type), False))
            for a in f.annotations:
                if a.name == "alias" and isinstance(a.expressions[0], ast.String):
                    self.program.aliases.append((a.expressions[0].text, STANDARD_METADATA, f.name))
        self.program.header_types[STANDARD_METADATA] = kind
        self.program.headers[STANDARD_METADATA] = ir.HeaderInstance(STANDARD_METADATA, STANDARD_METADATA, True)
        self._names.add(STANDARD_METADATA)

    def _field_lists(self, t: Composite, record: Record, inherited: list[int]) -> None:
        """Lists of the metadata fields that `@field_list(…)` tags; a tag on a struct covers what is in it."""
        for f in t.fields.values():
            indices = list(inherited)
            for a in f.annotations:
                if a.name == "field_list":
                    for e in a.expressions:
                        self.checker.expression(e)
                        number = e.value.number if isinstance(e.value, EnumValue) else e.value
                        if not isinstance(number, int):
                            raise RefusalError("@field_list takes numbers known at compile time", a.span)
                        indices.append(number)
            value = record.members[f.name]
            if isinstance(value, Record) and isinstance(strip(f.type), Composite):
                inner = strip(f.type)
                assert isinstance(inner, Composite)
                self._field_lists(inner, value, indices)
                continue
            for index in indices:
                name = f"field_list{index}"
                found = next((x for x in self.program.field_lists if x.name == name), None)
                if found is None:
                    found = ir.FieldList(len(self.program.field_lists) + 1, name, [])
                    self.program.field_lists.append(found)
                found.items.extend(self.flat(value, NOWHERE))

    def _bind(self, block: BlockValue, values: list[Value]) -> None:
        for info, value in zip(block.symbol.parameters, values, strict=True):
            block.frame.bind(info.symbol, value)

    # --- blocks ----------------------------------------------------------------------------------------------------

    def _pipeline(self, name: str, block: BlockValue) -> None:
        self.block = name
        self.pipeline = ir.Pipeline(name, [], span=block.declaration.span)
        self.program.pipelines.append(self.pipeline)
        self.frame, self.out = block.frame, self.pipeline.body
        self.control_body(block)

    def _checksums(self, name: str, block: BlockValue) -> None:
        self.block = name
        self.frame, self.out = block.frame, []
        self.control_body(block)
        self._nothing_else(self.out, block, "calls of verify_checksum and update_checksum")

    def _nothing_else(self, statements: list[ir.Stmt], block: BlockValue, allowed: str) -> None:
        for s in statements:
            if isinstance(s, ir.Region):
                self._nothing_else(s.body, block, allowed)
            elif not isinstance(s, ir.Leave):
                span = s.span if isinstance(s, ir.Primitive | ir.Branch | ir.Apply) else block.declaration.span
                raise RefusalError(f"BMv2 supports only {allowed} in control {block.name}", span)

    def _do_if(self, s: ast.If) -> None:
        if self.block not in ("verify", "compute"):
            super()._do_if(s)
            return
        # A checksum has a condition of its own; an if around it adds to that.
        condition = self.scalar_of(s.condition)
        for branch, wanted in ((s.then, condition), (s.otherwise, self.operation("!", (condition,), BOOL, s.span))):
            if branch is not None:
                self._conditions.append(wanted)
                self.statement(branch)
                self._conditions.pop()

    def _checksum(self, e: ast.Call, a: list[ast.Expression | None], verify: bool, payload: bool) -> None:
        super()._checksum(e, a, verify, payload)
        for condition in reversed(self._conditions):
            made = self.program.checksums[-1]
            made.condition = self.operation("&&", (condition, made.condition), BOOL, e.span)

    def no_action(self) -> ir.ActionDef:
        symbol = self.checker.scope.names["NoAction"]
        action = self.find_action(symbol)
        assert isinstance(action, ActionValue)
        if action.definition is None:
            action.definition = self._define_action(action, [])
        return action.definition

    # --- the deparser ----------------------------------------------------------------------------------------------

    def _deparser(self, block: BlockValue) -> None:
        self.block = "deparser"
        self.frame, self.out = block.frame, []
        self.control_body(block)
        self._emitted(self.out, block)

    def _emitted(self, statements: list[ir.Stmt], block: BlockValue) -> None:
        for s in statements:
            if isinstance(s, ir.Primitive) and s.op == "emit":
                self.program.deparser.extend(str(p) for p in s.parameters)
            elif isinstance(s, ir.Region):
                self._emitted(s.body, block)
            elif isinstance(s, ir.Branch) and self._only_if_valid(s):
                self._emitted(s.then, block)
            elif not isinstance(s, ir.Leave):
                span = s.span if isinstance(s, ir.Primitive | ir.Branch | ir.Apply) else block.declaration.span
                note = "decide in egress which headers are valid: invalid ones are left out"
                raise RefusalError("BMv2's deparser emits headers in one fixed order, without conditions", span, note)

    @staticmethod
    def _only_if_valid(s: ir.Branch) -> bool:
        """`if (h.isValid()) packet.emit(h)`: emit itself leaves out invalid headers."""
        if s.otherwise or not isinstance(s.condition, ir.Valid) or len(s.then) != 1:
            return False
        emitted = s.then[0]
        return isinstance(emitted, ir.Primitive) and [str(p) for p in emitted.parameters] == [s.condition.header]

    def _packet_out_emit(self, e: ast.Call, c: Callee, _o: ExternValue) -> None:
        if self.block != "deparser":
            raise RefusalError("emit can be called in the deparser only", e.span)
        assert c.arguments[0] is not None
        names: list[ir.Expr] = []
        for leaf in leaves(self.value_of(c.arguments[0])):
            if isinstance(leaf, HeaderValue):
                names.append(ir.Object("header", leaf.name))
            elif isinstance(leaf, StackValue):
                names.extend(ir.Object("header", h.name) for h in leaf.headers)
            elif isinstance(leaf, UnionValue):
                names.extend(ir.Object("header", h.name) for h in leaf.members.values())
            else:
                raise RefusalError("only headers, stacks, unions and structs of them can be emitted", e.span)
        self.emit("emit", *names, span=e.span)
