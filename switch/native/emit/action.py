"""Actions: one C function each, its primitives in order."""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

from p4c.model import Action, Primitive, Program, Register, UnsupportedError
from p4c.model.expressions import Binary, Const, Expression, FieldRef, Local
from p4c.model.externs import Calculation, Counter, FieldList, LearnList, Meter
from p4c.model.limits import JUMPS_BACK_MAX
from p4c.model.memory import word_count
from switch.native.emit.expression import ExpressionEmitter
from switch.native.emit.layout import identifier, is_wide, varbit_bytes
from switch.native.emit.statement import SCOPE, SCOPE_ARGS, StatementEmitter

# The primitives of actions, each as a list of C statements.
# Called with the statements, the scope and the arguments of the primitive, whose kinds the model has checked.
Emitter = Callable[..., list[str]]


def _assign(e: StatementEmitter, scope: ExpressionEmitter, target: Expression, value: Expression) -> list[str]:
    if isinstance(value, Local) and is_wide(scope.field_of(target)):
        return _assign_wide_argument(e, scope, target, value)
    return e.assign(scope, target, value)


def _assign_wide_argument(e: StatementEmitter, scope: ExpressionEmitter, target: Expression, value: Local) -> list[str]:
    assert scope.action is not None
    parameters = scope.action.parameters
    offset, width = sum(word_count(q.width_bits) for q in parameters[: value.index]), parameters[value.index].width_bits
    if width != scope.field_of(target).width_bits:
        raise UnsupportedError(f"parameter {parameters[value.index].name} into a field of another width above 128 bits")
    return [f"store_words({scope.lvalue(target)}, args + {offset}, {width // 8});"]


def _assign_varbit(e: StatementEmitter, scope: ExpressionEmitter, target: Expression, source: Expression) -> list[str]:
    if not (isinstance(target, FieldRef) and isinstance(source, FieldRef)):
        raise UnsupportedError("assignment between varbit fields that are known only at run time")
    to, origin = e.layout.field(target), e.layout.field(source)
    room = max(1, varbit_bytes(target.header.type))
    return [f"{to}_bytes = {origin}_bytes < {room} ? {origin}_bytes : {room};", f"memmove({to}, {origin}, {to}_bytes);"]


def _accumulate(
    op: str, e: StatementEmitter, scope: ExpressionEmitter, target: Expression, value: Expression
) -> list[str]:
    return e.assign(scope, target, Binary(op, target, value))


def _move(
    direction: str, e: StatementEmitter, scope: ExpressionEmitter, stack: Expression, count: Expression
) -> list[str]:
    return [f"{e.layout.stack_name(e.stack(stack))}_{direction}(h, {scope.modular(count, 64)});"]


def _jump(e: StatementEmitter, scope: ExpressionEmitter, target: Const) -> list[str]:
    return [f"goto jump_{target.value};"]


def _jump_if_zero(e: StatementEmitter, scope: ExpressionEmitter, condition: Expression, target: Const) -> list[str]:
    return [f"if (!{scope.boolean(condition)})", f"    goto jump_{target.value};"]


def _count(e: StatementEmitter, scope: ExpressionEmitter, counter: Counter, index: Expression) -> list[str]:
    return [
        "{",
        f"    u64 i = {scope.index(index)};",
        f"    if (i < {counter.size})",
        f"        counter_add(&d->counters[{counter.index}][i], p->ingress_length);",
        "}",
    ]


def _execute_meter(
    e: StatementEmitter, scope: ExpressionEmitter, meter: Meter, index: Expression, target: Expression
) -> list[str]:
    size = "p->ingress_length" if meter.bytes else "1"
    colour = f"meter_colour(&d->meters[{meter.index}][i], {size}, now_ns)"
    return [
        "{",
        f"    u64 i = {scope.index(index)};",
        f"    if (i < {meter.size})",
        f"        {e.store_u64(scope, target, colour)}",
        "}",
    ]


def _register_read(
    e: StatementEmitter, scope: ExpressionEmitter, target: Expression, register: Register, index: Expression
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
        f"    u64 i = {scope.index(index)};",
        f"    if (i < {register.size}) {{",
        f"        const u64 *c = d->registers[{register.index}] + i * {word_count(register.width_bits)};",
        f"        {e.store(scope, target, cell + mask)}",
        "    }",
        "}",
    ]


def _register_write(
    e: StatementEmitter, scope: ExpressionEmitter, register: Register, index: Expression, value: Expression
) -> list[str]:
    if register.width_bits > 128:
        raise UnsupportedError(f"register {register.name}: the native engine writes registers of at most 128 bits")
    count = word_count(register.width_bits)
    kind = "u64" if register.width_bits <= 64 else "u128"
    lines = [
        "{",
        f"    u64 i = {scope.index(index)};",
        f"    {kind} v = {scope.stored(value, register.width_bits)};",
        f"    if (i < {register.size}) {{",
        f"        u64 *c = d->registers[{register.index}] + i * {count};",
        "        c[0] = (u64)v;",
    ]
    if count == 2:
        lines.append("        c[1] = (u64)(v >> 64);")
    return [*lines, "    }", "}"]


def _hash(
    e: StatementEmitter,
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
    e: StatementEmitter, scope: ExpressionEmitter, target: Expression, low: Expression, high: Expression
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


def _clone(e: StatementEmitter, scope: ExpressionEmitter, session: Expression, field_list: FieldList) -> list[str]:
    return [
        "p->clone = true;",
        f"p->clone_session = (u16)({scope.modular(session, 64)} & 0x7fff);",
        f"p->clone_list = {field_list.id};",
    ]


def _again(verb: str, e: StatementEmitter, scope: ExpressionEmitter, field_list: FieldList) -> list[str]:
    return [f"p->{verb} = {'true' if field_list.id else 'false'};", f"p->{verb}_list = {field_list.id};"]


def _truncate(e: StatementEmitter, scope: ExpressionEmitter, length: Expression) -> list[str]:
    return [
        "{",
        f"    u64 limit = {scope.modular(length, 64)};",
        "    if (limit < p->limit)",
        "        p->limit = (u32)limit;",
        "}",
    ]


def _digest(e: StatementEmitter, scope: ExpressionEmitter, receiver: Expression, learned: LearnList) -> list[str]:
    return [f"d->digest = {e.program.learn_lists.index(learned) + 1};"]


PRIMITIVES: dict[str, Emitter] = {
    "assign": _assign,
    "modify_field": _assign,
    "assign_VL": _assign_varbit,
    "assign_header": StatementEmitter.assign_header,
    "copy_header": StatementEmitter.assign_header,
    "assign_union": StatementEmitter.assign_union,
    "assign_header_stack": StatementEmitter.assign_stack,
    "push": partial(_move, "push"),
    "pop": partial(_move, "pop"),
    "add_header": StatementEmitter.add_header,
    "remove_header": StatementEmitter.remove_header,
    "add_to_field": partial(_accumulate, "+"),
    "subtract_from_field": partial(_accumulate, "-"),
    "_jump": _jump,
    "_jump_if_zero": _jump_if_zero,
    "exit": lambda e, scope: ["p->exit = true;"],
    "no_op": lambda e, scope, *args: [],
    "log_msg": lambda e, scope, *args: [],
    "assert": lambda e, scope, *args: [],  # only a trace tells
    "assume": lambda e, scope, *args: [],
    "drop": StatementEmitter.drop,
    "mark_to_drop": StatementEmitter.drop,
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
    "generate_digest": _digest,
}


def action_name(program: Program, action: Action) -> str:
    return f"action_{action_number(program, action)}_{identifier(action.name)}"


def action_number(program: Program, action: Action) -> int:
    """What entries refer to: the action's place in the program."""
    return _numbers(program)[id(action)]


@lru_cache(maxsize=4)
def _numbers(program: Program) -> Mapping[int, int]:
    return {id(action): number for number, action in enumerate(program.actions)}


class ActionEmitter(StatementEmitter):
    """One C function for each action."""

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
        lines.append("    u32 back = 0; (void)back;")
        for place, primitive in enumerate(primitives):
            if place in targets:
                lines.append(f"jump_{place}:;")
            made = self.primitive(primitive, action)
            target = primitive.args[-1] if primitive.op.startswith("_jump") else None
            if isinstance(target, Const) and target.value <= place:
                made = [line.replace("goto", f"if (back++ < {JUMPS_BACK_MAX}) goto") for line in made]
            lines += [f"    {line}" for line in made]
        lines += [f"jump_{target}:;" for target in sorted(targets) if target >= len(primitives)]
        return lines

    def primitive(self, primitive: Primitive, action: Action | None) -> list[str]:
        emitter = PRIMITIVES.get(primitive.op)
        if emitter is None:
            raise UnsupportedError(f"primitive {primitive.op}: the native engine does not have it")
        return emitter(self, ExpressionEmitter(self.layout, action), *primitive.args)
