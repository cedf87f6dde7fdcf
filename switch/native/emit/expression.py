"""Expressions in C.

BMv2's arithmetic is exact on unbounded integers. Interval analysis finds the narrowest C type in which each node is
exact. Where a program needs a value only modulo 2^k (it masks it, or stores it in a field), the machine's wrapping
arithmetic gives that without wider types. What is neither (an unmasked result above 128 bits that is then compared,
divided or shifted right) is refused by name.
"""

from p4c.model import Action, Field, Header, Stack, Union, UnionStack, UnsupportedError
from p4c.model import expressions as ex
from p4c.model.memory import word_count
from switch.native.emit.layout import WIDEST_BITS, Layout, is_wide
from switch.native.emit.value import (
    I128_MAX,
    I128_MIN,
    U64_MAX,
    U128_MAX,
    Value,
    constant,
    fits,
    interval,
    magnitude_bits,
    wide_constant,
)


def any_union(expression: ex.Expression) -> Union:
    """The union, or one of the stack that it is chosen from: their headers have the same types."""
    if isinstance(expression, ex.UnionStackElement):
        return expression.stack.unions[0]
    if not isinstance(expression, Union):
        raise UnsupportedError(f"the header union `{expression}`, which the native engine cannot find")
    return expression


def members_of(union: ex.Expression) -> list[ex.UnionMember]:
    """The headers of a union."""
    return [ex.UnionMember(union, member) for member in range(len(any_union(union).headers))]


class ExpressionEmitter:
    """Texts use `h` (struct headers), `d` (device) and, in an action, `args`."""

    def __init__(self, layout: Layout, action: Action | None = None) -> None:
        self.layout = layout
        self.action = action
        self._exact: dict[ex.Expression, Value | None] = {}
        self._modular: dict[tuple[ex.Expression, int], str] = {}

    # --- exact values -----------------------------------------------------------------------------------------

    def exact(self, expression: ex.Expression) -> Value:
        """The value itself. Raises UnsupportedError when no C type holds it."""
        value = self.try_exact(expression)
        if value is None:
            raise UnsupportedError(
                f"{self._where()}an intermediate result of `{expression}` can exceed {WIDEST_BITS} bits, "
                "which the native engine cannot compare, divide or shift right"
            )
        return value

    def try_exact(self, expression: ex.Expression) -> Value | None:
        """As `exact`, or None. Remembered: some operators look at an operand twice, so each level would double."""
        if expression not in self._exact:
            self._exact[expression] = self._try_exact(expression)
        return self._exact[expression]

    def _try_exact(self, expression: ex.Expression) -> Value | None:
        match expression:
            case ex.Const(value):
                return Value(constant(value), value, value) if fits(value, value) else None
            case ex.Local(index):
                return self._local(index)
            case ex.FieldRef(_, field):
                return self._load(self.layout.field(expression), field)
            case ex.LastField() | ex.AccessField():
                return self._load(self.lvalue(expression), expression.field)
            case ex.ValidBit(header):
                return Value(f"(u64){self.layout.header(header)}.valid", 0, 1)
            case ex.RegisterCell(register, index):
                if register.width_bits > 64:
                    return None
                text = f"REGISTER_AT(d, {register.index}, {register.size}, {self.index(index)})"
                return Value(text, 0, (1 << register.width_bits) - 1)
            case ex.Unary():
                return self._unary(expression)
            case ex.Ternary(condition, left, right):
                a, b = self.try_exact(left), self.try_exact(right)
                if a is None or b is None or not fits(min(a.low, b.low), max(a.high, b.high)):
                    return None
                merged = Value("", min(a.low, b.low), max(a.high, b.high))
                text = f"({self.boolean(condition)} ? {a.as_type(merged.type)} : {b.as_type(merged.type)})"
                return Value(text, merged.low, merged.high)
            case ex.Binary():
                return self._binary(expression)
            case _ if expression.kind is ex.Kind.BOOL:
                return Value(f"(u64)({self.boolean(expression)})", 0, 1)
        raise UnsupportedError(f"{self._where()}`{expression}` is not a number")

    def _where(self) -> str:
        return f"action {self.action.name}: " if self.action else ""

    def _local(self, index: int) -> Value | None:
        assert self.action is not None
        offset = sum(word_count(p.width_bits) for p in self.action.parameters[:index])
        width = self.action.parameters[index].width_bits
        if width > WIDEST_BITS:
            return None
        text = f"args[{offset}]" if width <= 64 else f"ARG128(args + {offset})"
        return Value(text, 0, (1 << width) - 1)

    def _load(self, text: str, field: Field) -> Value | None:
        if is_wide(field) or field.varbit:
            return None
        width = field.width_bits
        if field.signed:
            return Value(f"SIGNED({text}, {width})", -(1 << (width - 1)), (1 << (width - 1)) - 1)
        return Value(f"(u64){text}" if width <= 64 else text, 0, (1 << width) - 1)

    def _unary(self, expression: ex.Unary) -> Value | None:
        op, operand = expression.op, expression.operand
        if op == "~":
            value = self.try_exact(operand)
            if value is None or not fits(-1 - value.high, -1 - value.low):
                return None
            return Value(f"(-1 - {value.as_type('i128')})", -1 - value.high, -1 - value.low)
        if op == "b2d":
            return Value(f"(u64)({self.boolean(operand)})", 0, 1)
        if op in ("last_stack_index", "size_stack"):
            return self._stack_measure(op, operand)
        if expression.kind is ex.Kind.BOOL:
            return Value(f"(u64)({self.boolean(expression)})", 0, 1)
        raise UnsupportedError(f"{self._where()}operator {op} is not one that the native engine knows")

    def _stack_measure(self, op: str, operand: ex.Expression) -> Value:
        if not isinstance(operand, Stack | UnionStack):
            raise UnsupportedError(f"{self._where()}{op} of `{operand}`, which is not a stack")
        next_index = f"h->{self.layout.stack_name(operand)}_next"
        if op == "size_stack":
            return Value(f"(u64){next_index}", 0, (1 << 32) - 1)
        return Value(f"(u64)(u32)({next_index} - 1)", 0, (1 << 32) - 1)

    def _binary(self, expression: ex.Binary) -> Value | None:
        op = expression.op
        if expression.kind is ex.Kind.BOOL:
            return Value(f"(u64)({self.boolean(expression)})", 0, 1)
        if op == "&":
            return self._and(expression)
        if op in ("two_comp_mod", "usat_cast", "sat_cast"):
            return self._cast(expression)
        left, right = self.try_exact(expression.left), self.try_exact(expression.right)
        if left is None or right is None:
            return None
        bounds = interval(op, left, right)
        if bounds is None or not fits(*bounds):
            return None
        low, high = bounds
        result = Value("", low, high)
        if op in ("<<", ">>"):
            return self._shift(op, left, right, result)
        if op in ("/", "%"):
            kind = "u64" if left.type == right.type == "u64" else "u128"
            name = f"{'DIVIDE' if op == '/' else 'REMAINDER'}_{kind.upper()}"
            return Value(f"{name}({left.as_type(kind)}, {right.as_type(kind)})", low, high)
        signed = "i128" in (left.type, right.type, result.type)
        kind = "i128" if signed else "u128" if "u128" in (left.type, right.type, result.type) else "u64"
        if signed and not all(v.low >= I128_MIN and v.high <= I128_MAX for v in (left, right, result)):
            return None
        text = f"({left.as_type(kind)} {op} {right.as_type(kind)})"
        return Value(text if kind == result.type else f"({result.type}){text}", low, high)

    def _shift(self, op: str, left: Value, right: Value, result: Value) -> Value:
        kind = "i128" if left.type == "i128" else "u128" if "u128" in (left.type, result.type) else "u64"
        amount = right.as_type("u64") if right.low >= 0 and right.high <= U64_MAX else None
        if amount is None:
            raise UnsupportedError(f"{self._where()}a shift by a number that may be negative or above 64 bits")
        bits = 64 if kind == "u64" else 128
        if right.low == right.high and right.high < bits:
            text = f"({left.as_type(kind)} {op} {right.high})"
        else:
            text = f"{'SHIFT_LEFT' if op == '<<' else 'SHIFT_RIGHT'}_{kind.upper()}({left.as_type(kind)}, {amount})"
        return Value(text if kind == result.type else f"({result.type}){text}", result.low, result.high)

    def _and(self, expression: ex.Binary) -> Value | None:
        left, right = expression.left, expression.right
        if isinstance(left, ex.Const) and not isinstance(right, ex.Const):
            left, right = right, left
        if isinstance(right, ex.Const) and 0 <= right.value <= U128_MAX:
            mask = right.value
            known = self.try_exact(left)
            if known is not None and known.low >= 0 and known.high <= mask and (mask & (mask + 1)) == 0:
                return known
            bits = max(mask.bit_length(), 1)
            text = f"({self.modular(left, bits)} & {constant(mask) if bits > 64 else f'(u64){constant(mask)}'})"
            return Value(text, 0, mask)
        a, b = self.try_exact(left), self.try_exact(right)
        if a is None or b is None:
            return None
        if a.low >= 0 or b.low >= 0:
            high = min(v.high for v in (a, b) if v.low >= 0)
            kind = "u64" if high <= U64_MAX else "u128"
            return Value(f"({a.as_type(kind)} & {b.as_type(kind)})", 0, high)
        bits = magnitude_bits(a, b)  # either may be negative or not
        return Value(f"({a.text} & {b.text})", -(1 << bits), (1 << bits) - 1)

    def _cast(self, expression: ex.Binary) -> Value | None:
        if not isinstance(expression.right, ex.Const):
            raise UnsupportedError(f"{self._where()}{expression.op} to a width that is not a constant")
        width = expression.right.value
        if width < 1 or width > WIDEST_BITS:
            return None
        if expression.op == "two_comp_mod":
            text = f"SIGNED({self.modular(expression.left, width)}, {width})"
            return Value(text, -(1 << (width - 1)), (1 << (width - 1)) - 1)
        value = self.try_exact(expression.left)
        if value is None:
            return None
        signed = expression.op == "sat_cast"
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        result = Value("", max(low, min(value.low, high)), min(high, max(value.high, low)))
        text = value.text
        if value.low < low:
            text = f"AT_LEAST_I128({text}, {constant(low)})"
        if value.high > high:
            text = f"AT_MOST_{value.type.upper()}({text}, {constant(high)})"
        return Value(text if value.type == result.type else f"({result.type})({text})", result.low, result.high)

    # --- values modulo 2^bits ---------------------------------------------------------------------------------

    def modular(self, expression: ex.Expression, bits: int) -> str:
        """C text (u64 when bits <= 64, else u128) that is congruent to the value modulo 2^bits; the bits above are
        unspecified. Remembered, as in `try_exact`."""
        known = self._modular.get((expression, bits))
        if known is None:
            known = self._modular[expression, bits] = self._modular_text(expression, bits)
        return known

    def _modular_text(self, expression: ex.Expression, bits: int) -> str:
        if bits > WIDEST_BITS:
            raise UnsupportedError(f"{self._where()}a value above {WIDEST_BITS} bits in `{expression}`")
        kind = "u64" if bits <= 64 else "u128"
        match expression:
            case ex.Const(value):
                return f"({kind}){constant(value & ((1 << bits) - 1))}"
            case ex.Binary(op="+" | "-" | "*" | "|" | "^" | "&" as op, left=left, right=right):
                if op == "&" and isinstance(right, ex.Const) and 0 <= right.value < (1 << bits) - 1:
                    bits = max(1, right.value.bit_length())
                    narrow = "u64" if bits <= 64 else "u128"
                    text = f"({self.modular(left, bits)} & ({narrow}){constant(right.value)})"
                    return text if narrow == kind else f"({kind}){text}"
                return f"({self.modular(left, bits)} {op} {self.modular(right, bits)})"
            case ex.Unary(op="~", operand=operand):
                return f"(~{self.modular(operand, bits)})"
            case ex.Binary(op="<<", left=left, right=right):
                return self._modular_shift_left(left, right, bits)
            case ex.Binary(op=">>", left=left, right=ex.Const(value=amount)) if self.try_exact(expression) is None:
                if amount >= 0 and bits + amount <= WIDEST_BITS:
                    inner = f"({self.modular(left, bits + amount)} >> {amount})"
                    return inner if kind == "u128" or bits + amount <= 64 else f"(u64){inner}"
            case ex.Ternary(condition, left, right):
                return f"({self.boolean(condition)} ? {self.modular(left, bits)} : {self.modular(right, bits)})"
        return self.exact(expression).as_type(kind)

    def _modular_shift_left(self, left: ex.Expression, right: ex.Expression, bits: int) -> str:
        kind = "u64" if bits <= 64 else "u128"
        if isinstance(right, ex.Const):
            amount = right.value
            if amount >= bits:
                return f"({kind})0"
            inner = self.modular(left, bits - amount)
            inner = inner if bits - amount > 64 or kind == "u64" else f"({kind}){inner}"
            return f"({inner} << {amount})"
        amount_value = self.exact(right)
        if amount_value.low < 0 or amount_value.high > U64_MAX:
            raise UnsupportedError(f"{self._where()}a shift by a number that may be negative or above 64 bits")
        return f"SHIFT_LEFT_{kind.upper()}({self.modular(left, bits)}, {amount_value.text})"

    def stored(self, expression: ex.Expression, width_bits: int) -> str:
        """The value cut to a field's width."""
        value = self.try_exact(expression)
        kind = "u64" if width_bits <= 64 else "u128"
        if value is not None and value.low >= 0 and value.high < 1 << width_bits:
            return value.as_type(kind)
        text = self.modular(expression, width_bits)
        if width_bits in (8, 16, 32, 64, 128):  # the member's type cuts it
            return text
        return f"({text} & ({kind}){constant((1 << width_bits) - 1)})"

    # --- booleans ---------------------------------------------------------------------------------------------

    def boolean(self, expression: ex.Expression) -> str:
        """C text that is 0 or 1."""
        match expression:
            case ex.Bool(value):
                return "1" if value else "0"
            case ex.Unary(op="not", operand=operand):
                return f"(!{self.boolean(operand)})"
            case ex.Unary(op="d2b", operand=operand):
                return f"({self.exact(operand).text} != 0)"
            case ex.Unary(op="valid", operand=operand):
                return f"({self.header(operand)}->valid)"
            case ex.Unary(op="valid_union", operand=operand):
                return self._union_valid(operand)
            case ex.Binary(op="and" | "or" as op, left=left, right=right):
                return f"({self.boolean(left)} {'&&' if op == 'and' else '||'} {self.boolean(right)})"
            case ex.Binary(op=op, left=left, right=right) if expression.kind is ex.Kind.BOOL:
                return self._compare(op, left, right)
            case ex.Ternary(condition, left, right):
                return f"({self.boolean(condition)} ? {self.boolean(left)} : {self.boolean(right)})"
        return f"({self.exact(expression).text} != 0)"

    def _compare(self, op: str, left: ex.Expression, right: ex.Expression) -> str:
        if left.kind is ex.Kind.BOOL:
            return f"({self.boolean(left)} {op} {self.boolean(right)})"
        if left.kind is ex.Kind.HEADER:
            return self._headers_equal(op, left, right)
        if left.kind is not ex.Kind.DATA:
            raise UnsupportedError(f"{self._where()}comparison of `{left}`, which the native engine cannot compare")
        wide = self._compare_wide(op, left, right)
        if wide is not None:
            return wide
        a, b = self.exact(left), self.exact(right)
        if a.type == b.type:
            return f"({a.text} {op} {b.text})"
        if a.low >= 0 and b.low >= 0:
            return f"({a.as_type('u128')} {op} {b.as_type('u128')})"
        if max(a.high, b.high) > I128_MAX:
            raise UnsupportedError(f"{self._where()}comparison of a negative with a 128-bit number")
        return f"({a.as_type('i128')} {op} {b.as_type('i128')})"

    def _compare_wide(self, op: str, left: ex.Expression, right: ex.Expression) -> str | None:
        """Fields above 128 bits and varbit fields, as numbers, against each other or a constant."""
        if op not in ("==", "!="):
            return None
        fields = [e for e in (left, right) if isinstance(e, ex.FieldRef) and (is_wide(e.field) or e.field.varbit)]
        texts = [self._wide_bytes(side) for side in (left, right)] if fields else [None]
        if None in texts:
            return None
        return f"(numbers_equal({', '.join(text for text in texts if text)}) {op} 1)"

    def _wide_bytes(self, side: ex.Expression) -> str | None:
        """Pointer and length of a big-endian number."""
        if isinstance(side, ex.Const) and side.value >= 0:
            width = (side.value.bit_length() + 7) // 8 * 8 or 8
            return f"{wide_constant(side.value, width)}, {width // 8}"
        if not isinstance(side, ex.FieldRef):
            return None
        text = self.layout.field(side)
        if side.field.varbit:
            return f"{text}, {self.layout.header(side.header)}.{self.layout.varbit_length(side.field)}"
        return f"{text}, {side.field.width_bits // 8}" if is_wide(side.field) else None

    def _headers_equal(self, op: str, left: ex.Expression, right: ex.Expression) -> str:
        if not (isinstance(left, Header) and isinstance(right, Header)) or left.type is not right.type:
            raise UnsupportedError(f"{self._where()}comparison of headers that are known only at run time")
        a, b = self.layout.header(left), self.layout.header(right)
        parts = [f"{a}.valid", f"{b}.valid"]
        for field in left.type.fields:
            member = self.layout.member(field)
            length = self.layout.varbit_length(field)
            if field.varbit:
                parts += [f"{a}.{length} == {b}.{length}", f"!memcmp({a}.{member}, {b}.{member}, {a}.{length})"]
            elif is_wide(field):
                parts.append(f"!memcmp({a}.{member}, {b}.{member}, {field.width_bits // 8})")
            else:
                parts.append(f"{a}.{member} == {b}.{member}")
        return f"({'' if op == '==' else '!'}({' && '.join(parts)}))"

    # --- arrays, headers and lvalues --------------------------------------------------------------------------

    def index(self, expression: ex.Expression) -> str:
        """An index into an array as a u64: NEVER, which is outside of any, when it is negative or above 64 bits."""
        value = self.exact(expression)
        return value.text if value.type == "u64" else f"(u64)AT_MOST_U128({value.as_type('u128')}, NEVER)"

    def header(self, expression: ex.Expression) -> str:
        """A pointer to the header's struct."""
        match expression:
            case Header():
                return f"(&{self.layout.header(expression)})"
            case ex.StackElement(stack, index):
                return self._element(stack, 0, index)
            case ex.UnionMember(Union() as union, member):
                return f"(&{self.layout.header(union.headers[member])})"
            case ex.UnionMember(ex.UnionStackElement(unions, index), member):
                return self._element(unions, member, index)
        raise UnsupportedError(f"{self._where()}the header `{expression}`, which the native engine cannot find")

    def _element(self, stack: Stack | UnionStack, member: int, index: ex.Expression) -> str:
        (name, headers), value = self.layout.arrays(stack)[member], self.exact(index)
        if value.low == value.high and 0 <= value.low < len(headers):
            return f"(&h->{name}[{value.low}])"
        return f"{name}_at(h, {self.index(index)})"

    def _union_valid(self, expression: ex.Expression) -> str:
        return "(" + " || ".join(f"{self.header(member)}->valid" for member in members_of(expression)) + ")"

    def lvalue(self, expression: ex.Expression) -> str:
        """C lvalue of a field."""
        match expression:
            case ex.FieldRef():
                return self.layout.field(expression)
            case ex.LastField(stack, field):
                name = self.layout.stack_name(stack)
                return f"{name}_at(h, (u64)h->{name}_next - 1)->{self.layout.member(field)}"
            case ex.AccessField(header, field):
                return f"{self.header(header)}->{self.layout.member(field)}"
        raise UnsupportedError(f"{self._where()}assignment to `{expression}`")

    def field_of(self, expression: ex.Expression) -> Field:
        match expression:
            case ex.FieldRef(_, field) | ex.LastField(_, field) | ex.AccessField(_, field):
                return field
        raise UnsupportedError(f"{self._where()}assignment to `{expression}`")
