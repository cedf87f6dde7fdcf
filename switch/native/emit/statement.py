"""Statements in C: assignments, headers and stacks, of which primitives are made."""

from p4c.model import Field, Header, Program, Stack, UnsupportedError
from p4c.model.expressions import Binary, Const, Expression, FieldRef, StackElement, UnionMember
from switch.native.emit.expression import ExpressionEmitter, any_union, members_of
from switch.native.emit.layout import Layout, is_wide
from switch.native.emit.value import wide_constant

DROP_PORT = 511
SCOPE = "struct device *d, struct packet *p, struct headers *h, u64 now_ns"
SCOPE_ARGS = "d, p, h, now_ns"
"""The parameters of every function in C that runs statements, and the same as arguments."""


class StatementEmitter:
    """Each method returns C statements in the scope SCOPE (and `args`)."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program = program
        self.layout = layout
        self._union_of = {header.index: union for union in program.unions for header in union.headers}

    # --- assignments ------------------------------------------------------------------------------------------

    def assign(self, scope: ExpressionEmitter, target: Expression, value: Expression) -> list[str]:
        field = scope.field_of(target)
        if field.varbit:
            raise UnsupportedError(f"assignment of a number to the varbit field {target}")
        if is_wide(field):
            source = self._wide_source(scope, field, value)
            return [f"memcpy({scope.lvalue(target)}, {source}, {field.width_bits // 8});"]
        if field.saturating:
            value = Binary("sat_cast" if field.signed else "usat_cast", value, Const(field.width_bits))
        return [self.store(scope, target, scope.stored(value, field.width_bits))]

    def store(self, scope: ExpressionEmitter, target: Expression, text: str) -> str:
        """Assign a number that is already cut to the field's width."""
        width = scope.field_of(target).width_bits
        kind = next(f"u{bits}" for bits in (8, 16, 32, 64, 128) if width <= bits)
        return f"{scope.lvalue(target)} = ({kind})({text});"

    def store_u64(self, scope: ExpressionEmitter, target: Expression, text: str) -> str:
        """Assign a u64, cut to the field's width."""
        field = scope.field_of(target)
        if is_wide(field) or field.varbit:
            raise UnsupportedError(f"the field {target} cannot take this result in the native engine")
        return self.store(scope, target, text if field.width_bits >= 64 else f"{text} & 0x{field.mask:x}ull")

    def _wide_source(self, scope: ExpressionEmitter, field: Field, value: Expression) -> str:
        if isinstance(value, FieldRef) and value.field.width_bits == field.width_bits:
            return self.layout.field(value)
        if isinstance(value, Const) and 0 <= value.value < 1 << field.width_bits:
            return wide_constant(value.value, field.width_bits)
        raise UnsupportedError(
            f"`{value}` into the {field.width_bits}-bit field {field.name}: above 128 bits the native engine "
            "only copies fields and constants of the same width"
        )

    # --- headers ----------------------------------------------------------------------------------------------

    def header_bytes(self, header: Header, pointer: str) -> str:
        fixed = f"{header.type.width_bits // 8}u"
        varbit = header.type.varbit
        return f"({fixed} + {pointer}->{self.layout.varbit_length(varbit)})" if varbit else fixed

    def others(self, scope: ExpressionEmitter, target: Expression) -> list[str]:
        """Pointers to the other headers of a header's union, which has one valid header at most."""
        of_header = self._union_of.get(target.index) if isinstance(target, Header) else None
        union = target.union if isinstance(target, UnionMember) else of_header
        pointers = [scope.header(member) for member in members_of(union)] if union is not None else []
        return [pointer for pointer in pointers if pointer != scope.header(target)]

    def _header_of(self, scope: ExpressionEmitter, expression: Expression) -> tuple[Header, str]:
        """A header (any of the possible ones, for its type) and a pointer to it."""
        text = scope.header(expression)
        match expression:
            case Header():
                return expression, text
            case StackElement(stack):
                return stack.headers[0], text
            case UnionMember(union, member):
                return any_union(union).headers[member], text
        raise UnsupportedError(f"the header `{expression}`, which the native engine cannot find")

    def add_header(self, scope: ExpressionEmitter, target: Expression) -> list[str]:
        header, pointer = self._header_of(scope, target)
        found, ended = self._others(scope, target)
        return [
            f"if (!{pointer}->valid) {{",
            f"    {self.layout.type_name(header.type)} *x = {pointer};",
            *found,
            "    memset(x, 0, sizeof *x);",
            "    x->valid = 1;",
            f"    p->packet_length += {self.header_bytes(header, 'x')};",
            *ended,
            "}",
        ]

    def _others(self, scope: ExpressionEmitter, target: Expression) -> tuple[list[str], list[str]]:
        """Find those others, before an index into a stack changes; make them invalid."""
        others = list(enumerate(self.others(scope, target)))
        found = [f"    u8 *other{n} = &{other}->valid;" for n, other in others]
        return found, [f"    *other{n} = 0;" for n, _ in others]

    def remove_header(self, scope: ExpressionEmitter, target: Expression) -> list[str]:
        header, pointer = self._header_of(scope, target)
        return [
            f"if ({pointer}->valid) {{",
            f"    {self.layout.type_name(header.type)} *x = {pointer};",
            f"    p->packet_length -= {self.header_bytes(header, 'x')};",
            "    x->valid = 0;",
            "}",
        ]

    def assign_header(self, scope: ExpressionEmitter, into: Expression, out_of: Expression) -> list[str]:
        (target, to), (source, origin) = (self._header_of(scope, side) for side in (into, out_of))
        if target.type is not source.type:
            raise UnsupportedError(f"assignment of header {source.name} to {target.name}, which has another type")
        found, ended = self._others(scope, into)
        copy = [*found, f"    *{to} = *{origin};", *ended]
        return [f"if ({origin}->valid) {{", *copy, "} else {", f"    {to}->valid = 0;", "}"]

    def assign_union(self, scope: ExpressionEmitter, into: Expression, out_of: Expression) -> list[str]:
        found, copies = [], []
        for n, pair in enumerate(zip(members_of(into), members_of(out_of), strict=True)):
            (header, to), (_, origin) = (self._header_of(scope, member) for member in pair)
            found.append(f"    {self.layout.type_name(header.type)} *to{n} = {to}, *origin{n} = {origin};")
            copies.append(f"    if (origin{n}->valid) *to{n} = *origin{n}; else to{n}->valid = 0;")
        return ["{", *found, *copies, "}"]

    def assign_stack(self, scope: ExpressionEmitter, *stacks: Expression) -> list[str]:
        to, origin = (self.layout.stack_name(self.stack(a)) for a in stacks)
        each = f"if (h->{origin}[i].valid) h->{to}[i] = h->{origin}[i]; else h->{to}[i].valid = 0;"
        every = f"for (u32 i = 0; i < {len(self.stack(stacks[0]).headers)}; i++)"
        return [f"{every} {{ {each} }}", f"h->{to}_next = h->{origin}_next;"]

    def stack(self, argument: Expression) -> Stack:
        if not isinstance(argument, Stack):
            raise UnsupportedError("stacks of header unions can be parsed and read, not moved, in the native engine")
        return argument

    def stack_helpers(self) -> list[str]:
        """push_front and pop_front, by the swaps that BMv2 makes (they show in headers that are not valid)."""
        lines: list[str] = []
        for stack in self.program.stacks:
            name, size = self.layout.stack_name(stack), len(stack.headers)
            kind = self.layout.type_name(stack.type)
            lines += [
                f"static inline void {name}_push(struct headers *h, u64 count)",
                "{",
                f"    u32 by = count < {size} ? (u32)count : {size};",
                f"    h->{name}_next = h->{name}_next + by < {size} ? h->{name}_next + by : {size};",
                f"    for (u32 i = {size}; i-- > by;) {{",
                f"        {kind} kept = h->{name}[i];",
                f"        h->{name}[i] = h->{name}[i - by];",
                f"        h->{name}[i - by] = kept;",
                "    }",
                "    for (u32 i = 0; i < by; i++)",
                f"        h->{name}[i].valid = 0;",
                "}",
                "",
                f"static inline void {name}_pop(struct headers *h, u64 count)",
                "{",
                f"    u32 by = count < {size} ? (u32)count : {size};",
                f"    h->{name}_next -= by < h->{name}_next ? by : h->{name}_next;",
                f"    for (u32 i = 0; i < {size} - by; i++) {{",
                f"        {kind} kept = h->{name}[i];",
                f"        h->{name}[i] = h->{name}[i + by];",
                f"        h->{name}[i + by] = kept;",
                "    }",
                f"    for (u32 i = {size} - by; i < {size}; i++)",
                f"        h->{name}[i].valid = 0;",
                "}",
                "",
            ]
        return lines

    # --- the rest ---------------------------------------------------------------------------------------------

    def drop(self, scope: ExpressionEmitter, header: Header | None = None) -> list[str]:
        intrinsics = self.program.intrinsics
        lines = [f"{self.layout.field(intrinsics.egress_spec)} = {DROP_PORT};"]
        if intrinsics.mcast_grp:
            lines.append(f"{self.layout.field(intrinsics.mcast_grp)} = 0;")
        return lines
