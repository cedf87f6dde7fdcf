"""What every part of lowering shares: the program being made, storage for values, assignments, and refusals."""

from __future__ import annotations

from . import ast, ir
from .diagnostics import Diagnostics, Span
from .types import (
    BOOL,
    ERROR,
    Bits,
    Composite,
    Enum,
    EnumValue,
    ErrorValue,
    Stack,
    Tuple,
    Type,
    VarBits,
    strip,
)
from .values import (
    ElementValue,
    Frame,
    HeaderValue,
    LastValue,
    Literal,
    NextValue,
    Record,
    StackValue,
    UnionValue,
    Value,
    leaves,
    storage_names,
)

SCALARS = "scalars"
VARBIT_HEADER_FIELD = "field"


class RefusalError(Exception):
    """Valid P4 that this compiler or BMv2 cannot carry out. Caught at the nearest statement or declaration."""

    def __init__(self, message: str, span: Span, *notes: str) -> None:
        super().__init__(message)
        self.message, self.span, self.notes = message, span, notes


class LowerBase:
    def __init__(self, program: ir.Program, errors: dict[str, int], diagnostics: Diagnostics) -> None:
        self.program = program
        self.errors = errors
        self.diagnostics = diagnostics
        self.out: list[ir.Stmt] = []
        self.frame = Frame(None, "")
        self.block = ""  # parser, verify, ingress, egress, compute or deparser: externs depend on it
        self._names: set[str] = set()
        self._claimed: dict[tuple[str, str], Span] = {}

    def refuse(self, r: RefusalError) -> None:
        self.diagnostics.error("target", r.message, r.span, *r.notes)

    # --- names -----------------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """`name`, or with a number behind it if that is taken."""
        candidate, count = name, 0
        while candidate in self._names:
            count += 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate

    @staticmethod
    def control_plane_name(d: ast.Declaration, prefix: str) -> str:
        """The full name: the instance path and `@name`, which may be absolute with a leading dot."""
        given = d.annotation("name")
        word = d.name
        if given is not None and given.expressions and isinstance(given.expressions[0], ast.String):
            word = given.expressions[0].text
        if word.startswith("."):
            return word[1:]
        return f"{prefix}.{word}" if prefix else word

    def claim(self, kind: str, name: str, span: Span) -> None:
        """Control-plane names are unique within a kind; `@name` can break that."""
        key = (kind, name)
        first = self._claimed.get(key)
        # Instances of one control may share an action under an absolute name: it is the same action.
        if first is not None and not (kind == "action" and first is span):
            self.diagnostics.error("names", f"two {kind}s have the name {name} (first at {first})", span)
        self._claimed.setdefault(key, span)

    # --- storage ---------------------------------------------------------------------------------------------------

    def scalar(self, name: str, t: Type) -> ir.FieldRef:
        """A new field of the scalars."""
        plain = strip(t)
        unique = self.unique(name)
        self.program.header_types["scalars_0"].fields.append((unique, self.bits(plain), self.is_signed(plain)))
        return ir.FieldRef(SCALARS, unique, plain)

    @staticmethod
    def is_signed(t: Type) -> bool:
        return isinstance(t, Bits) and t.signed

    @staticmethod
    def bits(t: Type) -> int:
        plain = strip(t)
        if isinstance(plain, Bits):
            return plain.width
        if plain == BOOL:
            return 1
        return 32  # error and enums without underlying type

    def temporary(self, t: Type) -> ir.FieldRef:
        return self.scalar("tmp", t)

    def allocate(self, name: str, t: Type, span: Span, top: bool = False) -> Value:
        """Storage for a variable of type `t`. `top`: members of the headers struct keep their own names."""
        plain = strip(t)
        if isinstance(plain, Composite):
            if plain.kind == "struct":
                members: dict[str, Value] = {}
                for f in plain.fields.values():
                    inner = f.name if top and not name else f"{name}.{f.name}"
                    members[f.name] = self.allocate(inner, f.type, span, top)
                return Record(plain, members)
            if plain.kind == "header":
                return self.header_instance(self.unique(name), plain)
            return self._union_instance(self.unique(name), plain)
        if isinstance(plain, Stack):
            return self._stack_instance(self.unique(name), plain)
        if isinstance(plain, Tuple):
            items = {str(i): self.allocate(f"{name}.{i}", item, span) for i, item in enumerate(plain.items)}
            return Record(plain, items)
        if isinstance(plain, VarBits):
            return self._varbit_instance(self.unique(name), plain)
        if isinstance(plain, Bits | Enum) or plain in (BOOL, ERROR):
            return self.scalar(name, plain)
        raise RefusalError(f"there is no storage for a value of type {t}", span)

    def header_type(self, t: Composite) -> str:
        if t.name not in self.program.header_types:
            made = ir.HeaderType(t.name, [])
            self._flatten(made, t, "")
            self.program.header_types[t.name] = made
        return t.name

    def _flatten(self, made: ir.HeaderType, t: Composite, prefix: str) -> None:
        for f in t.fields.values():
            plain = strip(f.type)
            if isinstance(plain, Composite):
                self._flatten(made, plain, f"{prefix}{f.name}.")
            elif isinstance(plain, VarBits):
                made.fields.append((prefix + f.name, None, False))
                made.varbit_max = plain.width_max
            else:
                made.fields.append((prefix + f.name, self.bits(plain), self.is_signed(plain)))

    def header_instance(self, name: str, t: Composite) -> HeaderValue:
        self.program.headers[name] = ir.HeaderInstance(name, self.header_type(t), False)
        return HeaderValue(name, t)

    def _union_instance(self, name: str, t: Composite) -> UnionValue:
        members: dict[str, HeaderValue] = {}
        for f in t.fields.values():
            assert isinstance(f.type, Composite)
            members[f.name] = self.header_instance(f"{name}.{f.name}", f.type)
        kinds = [(f.name, self.header_type(f.type)) for f in t.fields.values() if isinstance(f.type, Composite)]
        self.program.union_types[t.name] = kinds
        self.program.unions[name] = ir.UnionInstance(name, t.name, [m.name for m in members.values()])
        return UnionValue(name, t, members)

    def _stack_instance(self, name: str, t: Stack) -> StackValue:
        names = [f"{name}[{i}]" for i in range(t.size)]
        if t.element.kind == "header_union":
            unions = [self._union_instance(n, t.element) for n in names]
            self.program.stacks[name] = ir.StackInstance(name, t.element.name, names, union=True)
            return StackValue(name, t, unions)
        elements = [self.header_instance(n, t.element) for n in names]
        self.program.stacks[name] = ir.StackInstance(name, self.header_type(t.element), names)
        return StackValue(name, t, elements)

    def _varbit_instance(self, name: str, t: VarBits) -> ir.FieldRef:
        kind = ir.HeaderType(f"{name}_t", [(VARBIT_HEADER_FIELD, None, False)], t.width_max)
        self.program.header_types[kind.name] = kind
        self.program.headers[name] = ir.HeaderInstance(name, kind.name, True)
        return ir.FieldRef(name, VARBIT_HEADER_FIELD, t)

    def header_field(self, header: HeaderValue, prefix: str, name: str, t: Type) -> Value:
        """A field of a header instance; a struct inside it is a Record of the flattened fields."""
        plain = strip(t)
        if isinstance(plain, Composite):
            inner = {
                f.name: self.header_field(header, f"{prefix}{name}.", f.name, f.type) for f in plain.fields.values()
            }
            return Record(plain, inner)
        return ir.FieldRef(header.name, prefix + name, plain)

    def header_fields(self, header: HeaderValue) -> list[ir.Expr]:
        """All fields of a header, flattened."""
        found: list[ir.Expr] = []
        for f in header.type.fields.values():
            value = self.header_field(header, "", f.name, f.type)
            found.extend(leaf for leaf in leaves(value) if isinstance(leaf, ir.Expr))
        return found

    def constant(self, value: object, t: Type, span: Span) -> Value:
        """A compile-time value as an expression."""
        plain = strip(t)
        if isinstance(value, bool):
            return ir.Const(int(value), BOOL) if plain == BOOL else ir.Const(int(value), plain)
        if isinstance(value, int):
            return ir.Const(value, plain if isinstance(plain, Bits) else t)
        if isinstance(value, EnumValue):
            if value.type.underlying is not None:
                return ir.Const(value.number, plain if isinstance(plain, Bits) else value.type.underlying)
            return Literal(value, t)
        if isinstance(value, ErrorValue):
            return ir.Const(self.errors[value.member], ERROR)
        if isinstance(value, str):
            return ir.Text(value)
        raise RefusalError(f"a constant of type {t} cannot be used here", span)

    def as_expression(self, value: Value, span: Span) -> ir.Expr:
        """`value` as a scalar."""
        if isinstance(value, ir.Expr):
            return value
        if isinstance(value, Literal) and isinstance(value.value, EnumValue):
            return ir.Const(value.value.number, Bits(32))
        raise RefusalError("a single number or bool is needed here", span)

    # --- assignment ------------------------------------------------------------------------------------------------

    def emit(self, op: str, *parameters: ir.Expr, span: Span) -> None:
        self.out.append(ir.Primitive(op, parameters, span))

    def assign(self, target: Value, source: Value, span: Span) -> None:
        """target = source, whatever the two are."""
        if isinstance(target, ir.Expr):
            self.assign_scalar(target, self.as_expression(source, span), span)
        elif isinstance(target, Record):
            if not isinstance(source, Record):
                raise RefusalError("this value cannot be assigned to a struct", span)
            self._assign_members(list(target.members.values()), list(source.members.values()), span)
        elif isinstance(target, HeaderValue | ElementValue):
            self._assign_header(target, source, span)
        elif isinstance(target, StackValue) and isinstance(source, StackValue):
            op = f"assign_{target.kind}"
            self.emit(op, ir.Object(target.kind, target.name), ir.Object(source.kind, source.name), span=span)
        elif isinstance(target, UnionValue) and isinstance(source, UnionValue):
            self.emit(
                "assign_union",
                ir.Object("header_union", target.name),
                ir.Object("header_union", source.name),
                span=span,
            )
        else:
            raise RefusalError("this cannot be assigned on BMv2", span)

    def _assign_members(self, targets: list[Value], sources: list[Value], span: Span) -> None:
        """Member by member; sources that an earlier assignment would change are saved first."""
        written = set().union(*(storage_names(t) for t in targets)) if targets else set()
        saved: list[tuple[Value, Value]] = []
        for target, source in zip(targets, sources, strict=True):
            if isinstance(source, ir.Expr) and written & storage_names(source) and len(targets) > 1:
                kept = self.temporary(source.type)
                self.assign_scalar(kept, source, span)
                saved.append((target, kept))
            else:
                saved.append((target, source))
        for target, source in saved:
            self.assign(target, source, span)

    def header_object(self, value: Value, span: Span) -> ir.Expr:
        if isinstance(value, HeaderValue):
            return ir.Object("header", value.name)
        if isinstance(value, ElementValue):
            return ir.ElementHeader(value.stack.name, value.index)
        if isinstance(value, LastValue | NextValue):
            raise RefusalError("next and last of a stack cannot be used here", span)
        raise RefusalError("a header is needed here", span)

    def _assign_header(self, target: HeaderValue | ElementValue, source: Value, span: Span) -> None:
        if isinstance(source, Record):
            if not isinstance(target, HeaderValue):
                raise RefusalError("a list cannot be assigned to a stack element chosen at run time", span)
            self.emit("add_header", ir.Object("header", target.name), span=span)
            fields: list[Value] = list(self.header_fields(target))
            self._assign_members(fields, list(leaves(source)), span)
            return
        self.emit("assign_header", self.header_object(target, span), self.header_object(source, span), span=span)

    def assign_scalar(self, target: ir.Expr, source: ir.Expr, span: Span) -> None:
        if target == source:
            return
        if isinstance(target, ir.SliceOf):
            self._assign_slice(target, source, span)
        elif isinstance(target.type, VarBits):
            self.emit("assign_VL", target, source, span=span)
        elif isinstance(target, ir.FieldRef | ir.ElementField):
            self.emit("assign", target, source, span=span)
        elif isinstance(target, ir.LastField):
            raise RefusalError("BMv2 cannot write to the last element of a stack", span)
        else:
            raise RefusalError("this cannot be written", span)

    def _assign_slice(self, target: ir.SliceOf, source: ir.Expr, span: Span) -> None:
        base, high, low = target.base, target.high, target.low
        t = base.type
        assert isinstance(t, Bits)
        hole = ((1 << t.width) - 1) & ~(((1 << (high - low + 1)) - 1) << low)
        wide: ir.Expr = (
            ir.Const((source.value << low), Bits(t.width))
            if isinstance(source, ir.Const)
            else ir.Operation(
                "<<", (ir.Operation("cast", (source,), Bits(t.width)), ir.Const(low, Bits(8))), Bits(t.width)
            )
        )
        kept = ir.Operation("&", (base, ir.Const(hole, Bits(t.width))), Bits(t.width))
        self.assign_scalar(base, ir.Operation("|", (kept, wide), t), span)
