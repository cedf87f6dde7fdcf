"""v1model's extern functions and methods as BMv2's primitives."""

from __future__ import annotations

from . import ast, ir
from .diagnostics import Span
from .lower_base import RefusalError
from .lower_inline import InlineLowerer
from .scope import Callee
from .types import BOOL, Bits, Composite, EnumValue, Type
from .values import ExternValue, HeaderValue, Literal, Record, StackValue, UnionValue, Value

# Where a function may be called, beyond which BMv2 has no such primitive.
_PLACES = {
    "clone": ("ingress", "egress"),
    "clone_preserving_field_list": ("ingress", "egress"),
    "resubmit_preserving_field_list": ("ingress",),
    "recirculate_preserving_field_list": ("egress",),
    "digest": ("ingress",),
    "verify_checksum": ("verify",),
    "verify_checksum_with_payload": ("verify",),
    "update_checksum": ("compute",),
    "update_checksum_with_payload": ("compute",),
    "verify": ("parser",),
    "mark_to_drop": ("ingress", "egress"),
    "random": ("ingress", "egress"),
    "hash": ("ingress", "egress"),
    "truncate": ("ingress", "egress"),
    "log_msg": ("parser", "ingress", "egress"),
    "assert": ("parser", "ingress", "egress"),
    "assume": ("parser", "ingress", "egress"),
    "static_assert": ("parser", "verify", "ingress", "egress", "compute", "deparser"),
}
_BLOCKS = {
    "parser": "the parser",
    "verify": "the checksum verification",
    "ingress": "ingress",
    "egress": "egress",
    "compute": "the checksum computation",
    "deparser": "the deparser",
}


class ExternLowerer(InlineLowerer):
    def call_extern(self, e: ast.Call, callee: Callee) -> None:
        if callee.kind == "extern_method":
            assert callee.base is not None
            owner = self.value_of(callee.base)
            assert isinstance(owner, ExternValue)
            method = getattr(self, "_" + callee.name.replace(".", "_"), None)
            if method is None:
                raise RefusalError(f"BMv2's simple_switch has no {callee.name}", e.span)
            method(e, callee, owner)
            return
        places = _PLACES.get(callee.name)
        if places is None:
            known = ", ".join(sorted(_PLACES))
            raise RefusalError(f"BMv2's simple_switch has no {callee.name}", e.span, f"extern functions: {known}")
        if self.block not in places:
            allowed = " or ".join(_BLOCKS[p] for p in places)
            raise RefusalError(f"{callee.name} can be called in {allowed}, not in {_BLOCKS[self.block]}", e.span)
        self.program.calls_externs = self.program.calls_externs or self.block != "parser"
        getattr(self, "_call_" + callee.name)(e, callee.arguments)

    # --- arguments -------------------------------------------------------------------------------------------------

    def number(self, e: ast.Expression | None, t: Type | None = None) -> ir.Expr:
        """An argument that BMv2 reads: any expression."""
        assert e is not None
        value = self.scalar_of(e)
        if isinstance(value, ir.Const) and not isinstance(value.type, Bits) and value.type != BOOL:
            return ir.Const(value.value, t or Bits(32))
        return value

    def destination(self, e: ast.Expression | None, span: Span) -> tuple[ir.Expr, ir.Expr | None]:
        """Where BMv2 writes a result, which must be a field; and, if that is a temporary, what it is then put into."""
        assert e is not None
        if isinstance(e, ast.Default):
            return self.temporary(e.type), None
        place = self.scalar_of(e)
        if isinstance(place, ir.FieldRef):
            return place, None
        return self.temporary(place.type), place

    def into(self, op: str, destination: ast.Expression | None, span: Span, *rest: ir.Expr, last: bool = False) -> None:
        """Emit a primitive that writes `destination`, given first or (`last`) last."""
        field, place = self.destination(destination, span)
        parameters = (*rest, field) if last else (field, *rest)
        self.emit(op, *parameters, span=span)
        if place is not None:
            self.assign_scalar(place, field, span)

    def flat(self, value: Value, span: Span, simple: bool = False) -> list[ir.Expr]:
        """A list of values as fields and constants: what calculations and field lists are made of.

        Anything else is computed into a temporary, unless `simple` forbids it.
        """
        if isinstance(value, Record):
            return [x for member in value.members.values() for x in self.flat(member, span, simple)]
        if isinstance(value, HeaderValue):
            return self.header_fields(value)
        if isinstance(value, StackValue):
            return [x for element in value.elements for x in self.flat(element, span, simple)]
        if isinstance(value, UnionValue):
            return [x for member in value.members.values() for x in self.flat(member, span, simple)]
        scalar = self.as_expression(value, span)
        if isinstance(scalar, ir.FieldRef):
            return [scalar]
        if isinstance(scalar, ir.Const):
            if not isinstance(scalar.type, Bits) and scalar.type != BOOL:
                raise RefusalError("a number in a list of data needs a width: write 16w… or a cast", span)
            return [scalar]
        if simple:
            raise RefusalError("a checksum covers fields and constants, not computed values", span)
        kept = self.temporary(scalar.type)
        self.assign_scalar(kept, scalar, span)
        return [kept]

    def algorithm(self, e: ast.Expression | None) -> str:
        assert e is not None
        value = self.value_of(e)
        if isinstance(value, Literal) and isinstance(value.value, EnumValue):
            return value.value.member
        raise RefusalError("the algorithm must be known at compile time", e.span)

    def calculation(self, algorithm: str, inputs: list[ir.Expr], span: Span) -> str:
        # Twice the same calculation is one.
        for known in self.program.calculations:
            if known.algorithm == algorithm and known.inputs == inputs:
                return known.name
        name = "calc" if not self.program.calculations else f"calc_{len(self.program.calculations) - 1}"
        self.program.calculations.append(ir.Calculation(name, algorithm, inputs, span))
        return name

    # --- packets ---------------------------------------------------------------------------------------------------

    def _call_mark_to_drop(self, e: ast.Call, _a: list[ast.Expression | None]) -> None:
        self.emit("mark_to_drop", ir.Object("header", "standard_metadata"), span=e.span)

    def _call_truncate(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        self.emit("truncate", self.number(a[0]), span=e.span)

    def _clone_kind(self, e: ast.Expression | None, span: Span) -> str:
        assert e is not None
        value = self.value_of(e)
        assert isinstance(value, Literal)
        member = value.value.member
        wanted = "I2E" if self.block == "ingress" else "E2E"
        if member != wanted:
            raise RefusalError(f"in {self.block} a clone is CloneType.{wanted}, not CloneType.{member}", span)
        return "clone_ingress_pkt_to_egress" if member == "I2E" else "clone_egress_pkt_to_egress"

    def _call_clone(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        op = self._clone_kind(a[0], e.span)
        made = self.field_list("fl", [])
        self.emit(op, self.number(a[1]), ir.Const(made.id, Bits(32)), span=e.span)

    def _call_clone_preserving_field_list(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        op = self._clone_kind(a[0], e.span)
        self.emit(op, self.number(a[1]), self._preserved(a[2], e.span), span=e.span)

    def _call_resubmit_preserving_field_list(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        self.emit("resubmit", self._preserved(a[0], e.span), span=e.span)

    def _call_recirculate_preserving_field_list(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        self.emit("recirculate", self._preserved(a[0], e.span), span=e.span)

    def _preserved(self, e: ast.Expression | None, span: Span) -> ir.Expr:
        """The id of the list of metadata fields tagged with `@field_list(index)`."""
        assert e is not None
        index = self.scalar_of(e)
        if not isinstance(index, ir.Const):
            raise RefusalError("the index of a field list must be known at compile time", span)
        name = f"field_list{index.value}"
        found = next((f for f in self.program.field_lists if f.name == name), None)
        if found is None:
            message = f"no metadata field is tagged with @field_list({index.value}): nothing is preserved"
            self.diagnostics.warning("target", message, span)
            found = self.field_list(name, [])
        return ir.Const(found.id, Bits(32))

    def field_list(self, name: str, items: list[ir.Expr]) -> ir.FieldList:
        # Id 0 would mean that the primitive was not called.
        lists = self.program.field_lists
        found = next((f for f in lists if not items and not f.items), None)
        if found is None:
            found = ir.FieldList(len(lists) + 1, name, items)
            lists.append(found)
        return found

    def _call_digest(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        assert a[1] is not None
        t = a[1].type
        callee = e.target
        if callee.type_arguments and isinstance(callee.type_arguments[0], Composite):
            t = callee.type_arguments[0]
        name = t.name if isinstance(t, Composite) and not t.anonymous else "digest"
        items = self.flat(self.value_of(a[1]), e.span)
        lists = self.program.learn_lists
        found = next((x for x in lists if x.name == name and x.items == items), None)
        if found is None:
            found = ir.FieldList(len(lists) + 1, name, items, t)
            lists.append(found)
        self.emit("generate_digest", self.number(a[0]), ir.Const(found.id, Bits(32)), span=e.span)

    # --- computing -------------------------------------------------------------------------------------------------

    def _call_random(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        self.into("modify_field_rng_uniform", a[0], e.span, self.number(a[1]), self.number(a[2]))

    def _call_hash(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        assert a[3] is not None
        base, largest = self.number(a[2]), self.number(a[4], Bits(64))
        inputs = self.flat(self.value_of(a[3]), e.span)
        name = self.calculation(self.algorithm(a[1]), inputs, e.span)
        operands = (base, ir.Object("calculation", name), largest)
        self.into("modify_field_with_hash_based_offset", a[0], e.span, *operands)

    def _checksum(self, e: ast.Call, a: list[ast.Expression | None], verify: bool, payload: bool) -> None:
        assert a[0] is not None
        assert a[1] is not None
        assert a[2] is not None
        condition = self.scalar_of(a[0])
        inputs = self.flat(self.value_of(a[1]), e.span, simple=True)
        if payload:
            inputs.append(ir.Object("payload", ""))
        target = self.scalar_of(a[2])
        if not isinstance(target, ir.FieldRef):
            raise RefusalError("a checksum is kept in a whole header field", a[2].span)
        name = self.calculation(self.algorithm(a[3]), inputs, e.span)
        self.program.checksums.append(ir.Checksum(target, name, condition, verify, e.span))

    def _call_verify_checksum(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        self._checksum(e, a, verify=True, payload=False)

    def _call_verify_checksum_with_payload(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        self._checksum(e, a, verify=True, payload=True)

    def _call_update_checksum(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        self._checksum(e, a, verify=False, payload=False)

    def _call_update_checksum_with_payload(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        self._checksum(e, a, verify=False, payload=True)

    # --- checks and logs -------------------------------------------------------------------------------------------

    def _call_assert(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        assert a[0] is not None
        self.emit("assert", self.scalar_of(a[0]), span=e.span)

    def _call_assume(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        assert a[0] is not None
        self.emit("assume", self.scalar_of(a[0]), span=e.span)

    def _call_static_assert(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        assert a[0] is not None
        # The checker has decided it.

    def _call_log_msg(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        assert a[0] is not None
        if not isinstance(a[0].value, str):
            raise RefusalError("the format of log_msg must be a string literal", a[0].span)
        items: list[ir.Expr] = []
        if len(a) > 1 and a[1] is not None:
            items = self.flat(self.value_of(a[1]), e.span)
        self.emit("log_msg", ir.Text(a[0].value), ir.Vector(tuple(items)), span=e.span)

    def _call_verify(self, e: ast.Call, a: list[ast.Expression | None]) -> None:
        assert a[0] is not None
        assert a[1] is not None
        self.emit("verify", self.scalar_of(a[0]), self.scalar_of(a[1]), span=e.span)

    # --- objects ---------------------------------------------------------------------------------------------------

    def _in_pipeline(self, what: str, span: Span) -> None:
        if self.block not in ("ingress", "egress"):
            raise RefusalError(f"{what} can be used in ingress and egress, not in {_BLOCKS[self.block]}", span)

    def _register_read(self, e: ast.Call, c: Callee, o: ExternValue) -> None:
        self._in_pipeline("a register", e.span)
        register = ir.Object("register_array", o.name)
        self.into("register_read", c.arguments[0], e.span, register, self.number(c.arguments[1]))

    def _register_write(self, e: ast.Call, c: Callee, o: ExternValue) -> None:
        self._in_pipeline("a register", e.span)
        index, value = self.number(c.arguments[0]), self.number(c.arguments[1])
        self.emit("register_write", ir.Object("register_array", o.name), index, value, span=e.span)

    def _counter_count(self, e: ast.Call, c: Callee, o: ExternValue) -> None:
        self._in_pipeline("a counter", e.span)
        self.emit("count", ir.Object("counter_array", o.name), self.number(c.arguments[0]), span=e.span)

    def _meter_execute_meter(self, e: ast.Call, c: Callee, o: ExternValue) -> None:
        self._in_pipeline("a meter", e.span)
        meter = ir.Object("meter_array", o.name)
        self.into("execute_meter", c.arguments[1], e.span, meter, self.number(c.arguments[0]), last=True)

    def _direct_counter_count(self, _e: ast.Call, _c: Callee, _o: ExternValue) -> None:
        # BMv2 counts whenever an entry of the table is hit.
        pass

    def _direct_meter_read(self, e: ast.Call, c: Callee, o: ExternValue) -> None:
        # BMv2 executes the meter at each hit and puts the colour into one field, the same for all actions.
        assert c.arguments[0] is not None
        place = self.scalar_of(c.arguments[0])
        meter = o.object
        assert isinstance(meter, ir.Meter)
        if not isinstance(place, ir.FieldRef):
            raise RefusalError("a direct meter is read into a whole field or variable", e.span)
        if meter.result is not None and meter.result != place:
            raise RefusalError(f"meter {o.name} is read into two places, {meter.result} and {place}", e.span)
        meter.result = place

    # --- the packet, outside its own block -------------------------------------------------------------------------

    def _packet_in_extract(self, e: ast.Call, _c: Callee, _o: ExternValue) -> None:
        raise RefusalError("extract can be called in the parser's states only", e.span)

    def _packet_out_emit(self, e: ast.Call, _c: Callee, _o: ExternValue) -> None:
        raise RefusalError("emit can be called in the deparser only", e.span)
