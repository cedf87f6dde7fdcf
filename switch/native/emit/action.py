"""Actions: one C function each, its primitives in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from switch.model import UnsupportedError
from switch.model.actions import Action, Primitive
from switch.model.expressions import Binary, Const, Expression, FieldRef, Local, StackElement
from switch.model.externs import Calculation, Counter, FieldList, Meter
from switch.model.headers import Field, Header, Stack
from switch.model.program import Program
from switch.model.registers import Register
from switch.native.emit.expression import ExpressionEmitter, wide_constant
from switch.native.emit.layout import Layout, identifier, is_wide, varbit_bytes, words

DROP_PORT = 511
SCOPE = "struct device *d, struct packet *p, struct headers *h, u64 now_ns"
SCOPE_ARGS = "d, p, h, now_ns"


def action_name(program: Program, action: Action) -> str:
    return f"action_{action_number(program, action)}_{identifier(action.name)}"


def action_number(program: Program, action: Action) -> int:
    """What entries refer to: the action's place in the program."""
    return next(number for number, a in enumerate(program.actions) if a is action)


class ActionEmitter:
    """Emits primitives; `lines` of each are C statements in the scope SCOPE (and `args`)."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program = program
        self.layout = layout
        self._union_of = {header.index: union for union in program.unions for header in union.headers}

    def functions(self) -> list[str]:
        lines: list[str] = []
        for action in self.program.actions:
            lines += [f"static void {action_name(self.program, action)}({SCOPE}, const u64 *args)", "{"]
            lines += self.body(action.primitives, action)
            lines += ["}", ""]
        return lines

    def body(self, primitives: tuple[Primitive, ...], action: Action | None) -> list[str]:
        targets = {
            a.value
            for q in primitives
            if q.op in ("_jump", "_jump_if_zero")
            for a in q.args[-1:]
            if isinstance(a, Const)
        }
        lines = ["    (void)d; (void)p; (void)h; (void)now_ns;" + (" (void)args;" if action else "")]
        for place, primitive in enumerate(primitives):
            if place in targets:
                lines.append(f"jump_{place}:;")
            lines += [f"    {line}" for line in self.primitive(primitive, action)]
        lines += [f"jump_{target}:;" for target in sorted(targets) if target >= len(primitives)]
        return lines

    def primitive(self, primitive: Primitive, action: Action | None) -> list[str]:
        emitter = PRIMITIVES.get(primitive.op)
        if emitter is None:
            raise UnsupportedError(f"primitive {primitive.op}: the native engine does not have it")
        return emitter(self, ExpressionEmitter(self.layout, action), *primitive.args)

    # --- assignments ------------------------------------------------------------------------------------------

    def assign(self, scope: ExpressionEmitter, target: Expression, value: Expression) -> list[str]:
        field = scope.field_of(target)
        if field.varbit:
            raise UnsupportedError(f"assignment of a number to the varbit field {target}")
        if is_wide(field):
            return [
                f"memcpy({scope.lvalue(target)}, {self._wide_source(scope, field, value)}, {field.width_bits // 8});"
            ]
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

    def others_invalid(self, header: Header) -> list[str]:
        """A union has one valid member at most."""
        union = self._union_of.get(header.index)
        if union is None:
            return []
        return [f"{self.layout.header(other)}.valid = 0;" for other in union.headers if other is not header]

    def _header_of(self, scope: ExpressionEmitter, expression: Expression) -> tuple[Header, str]:
        """A header (any of the possible ones, for its type) and a pointer to it."""
        text = scope.header(expression)
        match expression:
            case Header():
                return expression, text
            case StackElement(stack):
                return stack.headers[0], text
        for header in self.program.headers:
            if text == f"(&{self.layout.header(header)})":
                return header, text
        raise UnsupportedError(f"the header `{expression}`, which the native engine cannot find")

    def add_header(self, scope: ExpressionEmitter, target: Expression) -> list[str]:
        header, pointer = self._header_of(scope, target)
        return [
            f"if (!{pointer}->valid) {{",
            f"    {self.layout.type_name(header.type)} *x = {pointer};",
            "    memset(x, 0, sizeof *x);",
            "    x->valid = 1;",
            f"    p->packet_length += {self.header_bytes(header, 'x')};",
            *(f"    {line}" for line in self._others(target, header)),
            "}",
        ]

    def _others(self, target: Expression, header: Header) -> list[str]:
        return [] if isinstance(target, StackElement) else self.others_invalid(header)

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
        copy = [f"*{to} = *{origin};", *self._others(into, target)]
        return [f"if ({origin}->valid) {{", *(f"    {line}" for line in copy), "} else {", f"    {to}->valid = 0;", "}"]

    def assign_union(self, scope: ExpressionEmitter, into: Expression, out_of: Expression) -> list[str]:
        pairs = zip(scope.union(into).headers, scope.union(out_of).headers, strict=True)
        return [f"{self.layout.header(a)} = {self.layout.header(b)};" for a, b in pairs]

    def assign_stack(self, scope: ExpressionEmitter, *stacks: Expression) -> list[str]:
        to, origin = (self.layout.stack_name(self._stack(a)) for a in stacks)
        return [f"memcpy(h->{to}, h->{origin}, sizeof h->{to});", f"h->{to}_next = h->{origin}_next;"]

    def _stack(self, argument: Expression) -> Stack:
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

    def index(self, scope: ExpressionEmitter, argument: Expression) -> str:
        """An index into an array of externs. BMv2 reads the low bits as an unsigned number."""
        value = scope.try_exact(argument)
        return value.text if value is not None and value.type == "u64" else scope.modular(argument, 64)


# Called with the actions, the scope and the arguments of the primitive, whose kinds the model has checked.
Emitter = Callable[..., list[str]]


def _assign(e: ActionEmitter, scope: ExpressionEmitter, target: Expression, value: Expression) -> list[str]:
    if isinstance(value, Local) and is_wide(scope.field_of(target)):
        return _assign_wide_argument(e, scope, target, value)
    return e.assign(scope, target, value)


def _assign_wide_argument(e: ActionEmitter, scope: ExpressionEmitter, target: Expression, value: Local) -> list[str]:
    assert scope.action is not None
    parameters = scope.action.parameters
    offset, width = sum(words(q.width_bits) for q in parameters[: value.index]), parameters[value.index].width_bits
    if width != scope.field_of(target).width_bits:
        raise UnsupportedError(f"parameter {parameters[value.index].name} into a field of another width above 128 bits")
    return [f"store_words({scope.lvalue(target)}, args + {offset}, {width // 8});"]


def _assign_varbit(e: ActionEmitter, scope: ExpressionEmitter, target: Expression, source: Expression) -> list[str]:
    if not (isinstance(target, FieldRef) and isinstance(source, FieldRef)):
        raise UnsupportedError("assignment between varbit fields that are known only at run time")
    to, origin = e.layout.field(target), e.layout.field(source)
    room = max(1, varbit_bytes(target.header.type))
    return [f"{to}_bytes = {origin}_bytes < {room} ? {origin}_bytes : {room};", f"memmove({to}, {origin}, {to}_bytes);"]


def _accumulate(
    op: str, e: ActionEmitter, scope: ExpressionEmitter, target: Expression, value: Expression
) -> list[str]:
    return e.assign(scope, target, Binary(op, target, value))


def _move(
    direction: str, e: ActionEmitter, scope: ExpressionEmitter, stack: Expression, count: Expression
) -> list[str]:
    return [f"{e.layout.stack_name(e._stack(stack))}_{direction}(h, {scope.modular(count, 64)});"]


def _jump(e: ActionEmitter, scope: ExpressionEmitter, target: Const) -> list[str]:
    return [f"goto jump_{target.value};"]


def _jump_if_zero(e: ActionEmitter, scope: ExpressionEmitter, condition: Expression, target: Const) -> list[str]:
    return [f"if (!{scope.boolean(condition)})", f"    goto jump_{target.value};"]


def _count(e: ActionEmitter, scope: ExpressionEmitter, counter: Counter, index: Expression) -> list[str]:
    return [
        "{",
        f"    u64 i = {e.index(scope, index)};",
        f"    if (i < {counter.size})",
        f"        counter_add(&d->counters[{counter.index}][i], p->ingress_length);",
        "}",
    ]


def _execute_meter(
    e: ActionEmitter, scope: ExpressionEmitter, meter: Meter, index: Expression, target: Expression
) -> list[str]:
    size = "p->ingress_length" if meter.bytes else "1"
    colour = f"meter_colour(&d->meters[{meter.index}][i], {size}, now_ns)"
    return [
        "{",
        f"    u64 i = {e.index(scope, index)};",
        f"    if (i < {meter.size})",
        f"        {e.store_u64(scope, target, colour)}",
        "}",
    ]


def _register_read(
    e: ActionEmitter, scope: ExpressionEmitter, target: Expression, register: Register, index: Expression
) -> list[str]:
    field = scope.field_of(target)
    if is_wide(field) or field.varbit or register.width_bits > 128:
        raise UnsupportedError(f"register {register.name}: the native engine reads registers of at most 128 bits")
    cell = "*c" if register.width_bits <= 64 else "ARG128(c)"
    mask = "" if field.width_bits >= register.width_bits else f" & 0x{field.mask & ((1 << 64) - 1):x}ull"
    if mask and field.width_bits > 64:
        mask = f" & ((u128)0x{field.mask >> 64:x}ull << 64 | UINT64_MAX)"
    return [
        "{",
        f"    u64 i = {e.index(scope, index)};",
        f"    if (i < {register.size}) {{",
        f"        const u64 *c = d->registers[{register.index}] + i * {words(register.width_bits)};",
        f"        {e.store(scope, target, cell + mask)}",
        "    }",
        "}",
    ]


def _register_write(
    e: ActionEmitter, scope: ExpressionEmitter, register: Register, index: Expression, value: Expression
) -> list[str]:
    if register.width_bits > 128:
        raise UnsupportedError(f"register {register.name}: the native engine writes registers of at most 128 bits")
    count = words(register.width_bits)
    kind = "u64" if register.width_bits <= 64 else "u128"
    lines = [
        "{",
        f"    u64 i = {e.index(scope, index)};",
        f"    {kind} v = {scope.stored(value, register.width_bits)};",
        f"    if (i < {register.size}) {{",
        f"        u64 *c = d->registers[{register.index}] + i * {count};",
        "        c[0] = (u64)v;",
    ]
    if count == 2:
        lines.append("        c[1] = (u64)(v >> 64);")
    return [*lines, "    }", "}"]


def _hash(
    e: ActionEmitter,
    scope: ExpressionEmitter,
    target: Expression,
    base: Expression,
    calculation: Calculation,
    size: Expression,
) -> list[str]:
    return [
        "{",
        f"    u64 size = {scope.modular(size, 64)}, base = {scope.modular(base, 64)};",
        f"    u64 v = calculation_{calculation.index}({SCOPE_ARGS}) % (size ? size : 1) + base;",
        f"    {e.store_u64(scope, target, 'v')}",
        "}",
    ]


def _random(
    e: ActionEmitter, scope: ExpressionEmitter, target: Expression, low: Expression, high: Expression
) -> list[str]:
    return [
        "{",
        f"    u64 low = {scope.modular(low, 64)}, high = {scope.modular(high, 64)};",
        "    if (low <= high) {",
        "        u64 span = high - low + 1, v = random_next(&d->random);",
        "        v = span ? low + v % span : v;",
        f"        {e.store_u64(scope, target, 'v')}",
        "    }",
        "}",
    ]


def _clone(e: ActionEmitter, scope: ExpressionEmitter, session: Expression, field_list: FieldList) -> list[str]:
    return [
        "p->clone = true;",
        f"p->clone_session = (u16)({scope.modular(session, 64)} & 0x7fff);",
        f"p->clone_list = {field_list.id};",
    ]


def _again(verb: str, e: ActionEmitter, scope: ExpressionEmitter, field_list: FieldList) -> list[str]:
    return [f"p->{verb} = {'true' if field_list.id else 'false'};", f"p->{verb}_list = {field_list.id};"]


def _truncate(e: ActionEmitter, scope: ExpressionEmitter, length: Expression) -> list[str]:
    return [
        "{",
        f"    u64 limit = {scope.modular(length, 64)};",
        "    if (limit < p->limit)",
        "        p->limit = (u32)limit;",
        "}",
    ]


PRIMITIVES: dict[str, Emitter] = {
    "assign": _assign,
    "modify_field": _assign,
    "assign_VL": _assign_varbit,
    "assign_header": ActionEmitter.assign_header,
    "copy_header": ActionEmitter.assign_header,
    "assign_union": ActionEmitter.assign_union,
    "assign_header_stack": ActionEmitter.assign_stack,
    "push": partial(_move, "push"),
    "pop": partial(_move, "pop"),
    "add_header": ActionEmitter.add_header,
    "remove_header": ActionEmitter.remove_header,
    "add_to_field": partial(_accumulate, "+"),
    "subtract_from_field": partial(_accumulate, "-"),
    "_jump": _jump,
    "_jump_if_zero": _jump_if_zero,
    "exit": lambda e, scope: ["p->exit = true;"],
    "no_op": lambda e, scope, *args: [],
    "log_msg": lambda e, scope, *args: [],
    "drop": ActionEmitter.drop,
    "mark_to_drop": ActionEmitter.drop,
    "count": _count,
    "execute_meter": _execute_meter,
    "register_read": _register_read,
    "register_write": _register_write,
    "modify_field_with_hash_based_offset": _hash,
    "modify_field_rng_uniform": _random,
    "clone_ingress_pkt_to_egress": _clone,
    "clone_egress_pkt_to_egress": _clone,
    "resubmit": partial(_again, "resubmit"),
    "recirculate": partial(_again, "recirculate"),
    "truncate": _truncate,
}
