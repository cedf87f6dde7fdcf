"""Parser and deparser: states are labels of one C function."""

from p4c.model import Header, HeaderType, Program, UnsupportedError
from p4c.model.expressions import Expression, FieldRef, LastField
from p4c.model.limits import PARSER_STATES_MAX
from p4c.model.parsers import Advance, Call, Extract, KeyPart, Lookahead, Operation, Set, StackNext, State, Verify
from switch.native.emit.action import ActionEmitter
from switch.native.emit.bytes import loads, store_header
from switch.native.emit.calculation import Calculations
from switch.native.emit.expression import ExpressionEmitter
from switch.native.emit.layout import WIDEST_BITS, Layout, header_bytes_max, identifier, is_wide, varbit_bytes
from switch.native.emit.value import constant


class Parsers:
    def __init__(self, program: Program, layout: Layout, actions: ActionEmitter, calculations: Calculations) -> None:
        self.program = program
        self.layout = layout
        self.actions = actions
        self.calculations = calculations
        self.scope = ExpressionEmitter(layout)

    # --- parser -----------------------------------------------------------------------------------------------

    def parse(self) -> list[str]:
        parser = self.program.parser
        lines = [
            "static void parse(struct device *d, struct packet *p, u64 now_ns)",
            "{",
            "    struct headers *h = HEADERS(p);",
            "    const u8 *b = p->data;",
            f"    u32 at = 0, end = p->stored, error = {self.program.errors['NoError']}, entered = 0;",
            "    (void)d; (void)now_ns; (void)b; (void)end; (void)entered;",
            f"    {self._go(parser.init_state)}",
        ]
        for state in parser.states:
            lines += self._state(state)
        lines += ["done:", "    p->parsed = at;", "    p->parser_error = error;", "}", ""]
        return lines

    def _label(self, name: str) -> str:
        state = self.program.parser.state(name)
        return f"state_{state.index}_{identifier(name)}"

    def _go(self, name: str | None) -> str:
        return f"goto {self._label(name)};" if name else "goto done;"

    def _fail(self, error: str) -> str:
        macro = "PACKET_TOO_SHORT" if error == "PacketTooShort" else "PARSER_ERROR"
        return f"{macro}({self.program.errors[error]});"

    def _state(self, state: State) -> list[str]:
        lines = [f"{self._label(state.name)}:"]
        lines.append(f"    if (UNLIKELY(++entered > {PARSER_STATES_MAX})) {self._fail('ParserTimeout')}")
        for operation in state.operations:
            lines += ["    {", *(f"        {line}" for line in self._operation(operation)), "    }"]
        return lines + [f"    {line}" for line in self._select(state)]

    def _operation(self, operation: Operation) -> list[str]:
        match operation:
            case Extract():
                return self._extract(operation)
            case Set(target, Lookahead() as ahead):
                return self._set_lookahead(target, ahead)
            case Set(target, value):
                assert not isinstance(value, Lookahead)
                return self.actions.assign(self.scope, target, value)
            case Verify(condition, error):
                return [
                    f"if (!{self.scope.boolean(condition)})",
                    f"    PARSER_ERROR((u32)({self.scope.exact(error).text}));",
                ]
            case Advance(bits):
                return [
                    *self._whole_bytes(bits),
                    f"if (UNLIKELY(skip / 8 > end - at)) {self._fail('PacketTooShort')}",
                    "at += (u32)(skip / 8);",
                ]
            case Call(primitive):
                return self.actions.primitive(primitive, None)

    def _whole_bytes(self, bits: Expression) -> list[str]:
        return [
            f"u64 skip = {self.scope.modular(bits, 64)};",
            f"if (UNLIKELY(skip % 8)) {self._fail('ParserInvalidArgument')}",
        ]

    def _set_lookahead(self, target: FieldRef, ahead: Lookahead) -> list[str]:
        if is_wide(target.field) or ahead.width_bits > WIDEST_BITS:
            return self._set_lookahead_wide(target, ahead)
        width = target.field.width_bits
        mask = f" & {constant(target.field.mask)}" if ahead.width_bits > width else ""
        text = f"load_bits(b + at, {ahead.offset_bits}, {ahead.width_bits}){mask}"
        return [self._enough(ahead), self.actions.store(self.scope, target, text)]

    def _set_lookahead_wide(self, target: FieldRef, ahead: Lookahead) -> list[str]:
        if target.field.width_bits != ahead.width_bits or ahead.offset_bits % 8:
            raise UnsupportedError(
                f"look-ahead of {ahead.width_bits} bits at bit {ahead.offset_bits} into {target.field.width_bits}: "
                f"above {WIDEST_BITS} bits the native engine only copies whole bytes to a field of the same width"
            )
        place = f"b + at + {ahead.offset_bits // 8}"
        return [self._enough(ahead), f"memcpy({self.layout.field(target)}, {place}, {ahead.width_bits // 8});"]

    def _enough(self, ahead: Lookahead) -> str:
        bits = ahead.offset_bits + ahead.width_bits
        return f"if (UNLIKELY((u64)(end - at) * 8 < {bits})) {self._fail('PacketTooShort')}"

    def _extract(self, operation: Extract) -> list[str]:
        into = operation.into
        if isinstance(into, Header):
            kind = into.type
            before, pointer = [], f"(&{self.layout.header(into)})"
            after = [f"{other}->valid = 0;" for other in self.actions.others(self.scope, into)]
        else:
            arrays = self.layout.arrays(into.stack)
            name, headers = arrays.pop(0 if isinstance(into, StackNext) else into.member_index)
            kind, next_index = headers[0].type, f"h->{self.layout.stack_name(into.stack)}_next"
            before = [f"if (UNLIKELY({next_index} >= {len(headers)})) {self._fail('StackOutOfBounds')}"]
            pointer = f"(&h->{name}[{next_index}])"
            after = [*(f"h->{other}[{next_index}].valid = 0;" for other, _ in arrays), f"{next_index}++;"]
        declared = f"{self.layout.type_name(kind)} *x = {pointer};"
        return [*before, declared, *self._load(kind, operation.varbit_width), *after]

    def _load(self, kind: HeaderType, varbit_width: Expression | None) -> list[str]:
        if kind.width_bits % 8:
            raise UnsupportedError(f"header type {kind.name} has {kind.width_bits} bits, which are not whole bytes")
        fixed, varbit = kind.width_bits // 8, kind.varbit
        if varbit is None:
            lines = [f"if (UNLIKELY(end - at < {fixed})) {self._fail('PacketTooShort')}"]
            lines += loads(self.layout, "x", kind.fields, "b + at")
            return [*lines, "x->valid = 1;", f"at += {fixed};"]
        skip = ["const u64 skip = 0;"] if varbit_width is None else self._whole_bytes(varbit_width)
        place = next(i for i, field in enumerate(kind.fields) if field is varbit)
        ahead, behind = kind.fields[:place], kind.fields[place + 1 :]
        ahead_bits = sum(field.width_bits for field in ahead)
        if ahead_bits % 8:
            raise UnsupportedError(f"header type {kind.name}: the varbit field does not begin on a byte border")
        member, length = self.layout.member(varbit), self.layout.varbit_length(varbit)
        return [
            *skip,
            f"if (UNLIKELY(end - at < {fixed} || skip / 8 > end - at - {fixed})) {self._fail('PacketTooShort')}",
            f"if (UNLIKELY(skip / 8 > {varbit_bytes(kind)})) {self._fail('HeaderTooShort')}",
            *loads(self.layout, "x", ahead, "b + at"),
            f"x->{length} = (u16)(skip / 8);",
            f"memcpy(x->{member}, b + at + {ahead_bits // 8}, x->{length});",
            *loads(self.layout, "x", behind, f"b + at + {ahead_bits // 8} + x->{length}"),
            "x->valid = 1;",
            f"at += {fixed} + x->{length};",
        ]

    def _select(self, state: State) -> list[str]:
        lines: list[str] = []
        names: list[str] = []
        for number, part in enumerate(state.key):
            name = f"k{state.index}_{number}"
            names.append(name)
            kind = "u64" if part.width_bits <= 64 else "u128"
            lines += self._key(part, name, kind)
        for transition in state.transitions:
            if transition.value_set is not None:
                lines += self._value_set(transition.value_set, transition.next_state, state, names)
                continue
            masks = transition.masks or tuple((1 << part.width_bits) - 1 for part in state.key)
            tests = []
            for name, part, value, mask in zip(names, state.key, transition.values, masks, strict=True):
                if mask == 0:
                    continue
                whole = mask == (1 << part.width_bits) - 1
                tests.append(
                    f"{name} == {constant(value)}" if whole else f"({name} & {constant(mask)}) == {constant(value)}"
                )
            lines += [f"if ({' && '.join(tests) or '1'})", f"    {self._go(transition.next_state)}"]
        lines.append(self._go(state.default))
        # A declaration may not be jumped into: keep the keys of each state in a separate block.
        return ["{", *(f"    {line}" for line in lines), "}"]

    def _value_set(self, name: str, next_state: str | None, state: State, names: list[str]) -> list[str]:
        number = [v.name for v in self.program.value_sets].index(name)
        words = []
        for key, part in zip(names, state.key, strict=True):
            words += [f"(u64){key}"] + ([f"(u64)({key} >> 64)"] if part.width_bits > 64 else [])
        condition = f"VALUE_SET_HAS(d, {number}, (const u64[]){{{', '.join(words)}}}, {len(words)})"
        return [f"if ({condition})", f"    {self._go(next_state)}"]

    def _key(self, part: KeyPart, name: str, kind: str) -> list[str]:
        if part.width_bits > WIDEST_BITS:
            raise UnsupportedError(
                f"a transition key of {part.width_bits} bits; the native engine takes at most {WIDEST_BITS}"
            )
        match part.source:
            case Lookahead() as ahead:
                text = f"({kind})load_bits(b + at, {ahead.offset_bits}, {ahead.width_bits})"
                return [self._enough(ahead), f"{kind} {name} = {text};"]
            case FieldRef() | LastField() as source:
                mask = constant((1 << part.width_bits) - 1)
                return [f"{kind} {name} = {self.scope.modular(source, part.width_bits)} & {mask};"]
        raise UnsupportedError("a transition on a field of the last union of a stack")

    # --- deparser ---------------------------------------------------------------------------------------------

    def headroom(self) -> int:
        return sum(header_bytes_max(header.type) for header in self.program.deparser.order)

    def deparse(self) -> list[str]:
        deparser = self.program.deparser
        lines = [
            "static void deparse(struct device *d, struct packet *p, u64 now_ns)",
            "{",
            "    struct headers *h = HEADERS(p);",
            "    (void)d; (void)now_ns; (void)h;",
        ]
        lines += [f"    {line}" for line in self.calculations.update()]
        for primitive in deparser.primitives:
            lines += ["    {", *(f"        {line}" for line in self.actions.primitive(primitive, None)), "    }"]
        lines.append("    u8 *payload = p->data + p->parsed, *first = payload;")
        for header in reversed(deparser.order):  # backwards from the payload, since its place is known
            pointer = f"(&{self.layout.header(header)})"
            body = store_header(self.layout, header.type, pointer, "b")
            size = self.actions.header_bytes(header, pointer)
            lines += [f"    if ({pointer}->valid) {{", f"        u8 *b = first -= {size};"]
            lines += [*(f"        {line}" for line in body), "    }"]
        return [
            *lines,
            "    u32 size = (u32)(payload - first);",
            "    p->length = p->length - p->parsed + size;",
            "    p->stored = p->stored - p->parsed + size;",
            "    p->parsed = size;",
            "    p->data = first;",
            "}",
            "",
        ]
