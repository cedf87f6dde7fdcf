"""Expressions to IR: operators keep their types, aggregates fall apart, side effects move in front."""

from __future__ import annotations

from . import ast, fold, ir
from .diagnostics import Span
from .lower_base import LowerBase, RefusalError
from .scope import Callee
from .types import (
    BOOL,
    ERROR,
    INT,
    Bits,
    Composite,
    Enum,
    Tuple,
    Type,
    VarBits,
    strip,
    width,
)
from .values import (
    ElementValue,
    HeaderValue,
    LastValue,
    Literal,
    NextValue,
    Record,
    StackValue,
    UnionValue,
    Value,
)

# Parts of what lies ahead are cut out of a number of so many bits; beyond, which not every engine computes with, each
# is read by itself.
WHOLE_BITS_MAX = 128


class ExpressionLowerer(LowerBase):
    def scalar_of(self, e: ast.Expression) -> ir.Expr:
        return self.as_expression(self.value_of(e), e.span)

    def value_of(self, e: ast.Expression) -> Value:
        """What `e` stands for; statements that its evaluation needs are emitted first."""
        if e.value is not None and isinstance(e.type, Type):
            return self.constant(e.value, e.type, e.span)
        method = getattr(self, "_" + type(e).__name__.lower(), None)
        if method is None:
            raise RefusalError("this expression cannot be used here", e.span)
        found: Value = method(e)
        return found

    def isolated(self, e: ast.Expression) -> tuple[ir.Expr, list[ir.Stmt]]:
        """`e` with the statements it needs kept apart, for what is only evaluated under a condition."""
        outer, self.out = self.out, []
        try:
            value = self.scalar_of(e)
            return value, self.out
        finally:
            self.out = outer

    def evaluated(self, *items: tuple[ast.Expression, bool]) -> list[Value]:
        """Expressions in order, each a place (True) or a value; what later ones do does not change earlier ones."""
        parts: list[tuple[Value, list[ir.Stmt]]] = []
        for e, _ in items:
            outer, self.out = self.out, []
            try:
                value = self.value_of(e)
            finally:
                made, self.out = self.out, outer
            parts.append((value, made))
        found: list[Value] = []
        for position, (value, made) in enumerate(parts):
            self.out.extend(made)
            disturbed = any(later for _, later in parts[position + 1 :])
            e, place = items[position]
            if disturbed:
                value = self.pinned(value, e.span) if place else self.saved(value, e.span)
            found.append(value)
        return found

    def pinned(self, place: Value, span: Span) -> Value:
        """A place that stays the same when variables in its index change."""
        if isinstance(place, ir.ElementField) and not isinstance(place.index, ir.Const):
            return ir.ElementField(place.stack, self._kept(place.index, span), place.position, place.field, place.type)
        if isinstance(place, ir.SliceOf):
            base = self.pinned(place.base, span)
            assert isinstance(base, ir.Expr)
            return ir.SliceOf(base, place.high, place.low, place.type)
        if isinstance(place, ElementValue):
            return ElementValue(place.stack, self._kept(place.index, span), place.type)
        return place

    def saved(self, value: Value, span: Span) -> Value:
        """A value as it is now, whatever happens to the variables in it."""
        if isinstance(value, ir.Expr):
            return self._kept(value, span)
        if isinstance(value, Record):
            return Record(value.type, {n: self.saved(m, span) for n, m in value.members.items()})
        if isinstance(value, HeaderValue | StackValue | UnionValue):
            copy = self.allocate("tmp", value.type, span)
            self.assign(copy, value, span)
            return copy
        return value

    def _kept(self, value: ir.Expr, span: Span) -> ir.Expr:
        if isinstance(value, ir.Const | ir.ActionData | ir.Text) or isinstance(value.type, VarBits):
            return value
        kept = self.temporary(value.type)
        self.assign_scalar(kept, value, span)
        return kept

    # --- names and parts -------------------------------------------------------------------------------------------

    def _name(self, e: ast.Name) -> Value:
        symbol = e.target
        found = self.frame.lookup(symbol)
        if found is not None:
            return found
        declaration = symbol.declaration
        if isinstance(declaration, ast.Constant):
            return self.value_of(declaration.initial)
        raise RefusalError(f"{e.name} cannot be used as a value here", e.span)

    def _member(self, e: ast.Member) -> Value:
        base = self.value_of(e.base) if not isinstance(e.base, ast.Call) else self._member_of_call(e)
        if isinstance(e.base, ast.Call) and isinstance(base, ir.Expr):
            return base
        if isinstance(base, Record):
            return base.members[e.name]
        if isinstance(base, HeaderValue):
            return self.header_field(base, "", e.name, base.type.fields[e.name].type)
        if isinstance(base, UnionValue):
            return base.members[e.name]
        if isinstance(base, StackValue):
            return self._stack_member(base, e)
        if isinstance(base, ElementValue):
            position = list(base.type.fields).index(e.name)
            t = strip(base.type.fields[e.name].type)
            if isinstance(t, Composite):
                raise RefusalError("structs inside stack elements chosen at run time are not supported", e.span)
            return ir.ElementField(base.stack.name, base.index, position, e.name, t)
        if isinstance(base, NextValue | LastValue) and base.type.kind == "header_union":
            member = base.type.fields[e.name].type
            assert isinstance(member, Composite)
            return type(base)(base.stack, member, e.name)
        if isinstance(base, LastValue):
            return ir.LastField(base.stack.name, e.name, strip(base.type.fields[e.name].type), base.member)
        raise RefusalError(f"{e.name} cannot be read here", e.span)

    def _member_of_call(self, e: ast.Member) -> Value:
        """`table.apply().hit`, or a member of what a call returns."""
        call = e.base
        assert isinstance(call, ast.Call)
        if isinstance(call.target, Callee) and call.target.kind == "table":
            hit = self.temporary(BOOL)
            truth = [ir.Primitive("assign", (hit, ir.Const(v, BOOL)), e.span) for v in (0, 1)]
            when_hit, when_miss = (truth[1], truth[0]) if e.name == "hit" else (truth[0], truth[1])
            self.apply_table(call, hit=[when_hit], miss=[when_miss])
            return hit
        return self.value_of(call)

    def apply_table(
        self, call: ast.Call, hit: list[ir.Stmt] | None = None, miss: list[ir.Stmt] | None = None
    ) -> ir.Apply:
        raise NotImplementedError

    def _stack_member(self, stack: StackValue, e: ast.Member) -> Value:
        element = stack.type.element
        if e.name == "lastIndex":
            return ir.LastIndex(stack.name, stack.kind)
        if self.block != "parser":
            raise RefusalError(f"{e.name} of a header stack exists in parsers only", e.span)
        return NextValue(stack, element) if e.name == "next" else LastValue(stack, element)

    def _index(self, e: ast.Index) -> Value:
        base = self.value_of(e.base)
        if isinstance(base, Record):
            assert isinstance(e.index.value, int)
            return base.members[list(base.members)[e.index.value]]
        if not isinstance(base, StackValue):
            raise RefusalError("this cannot be indexed", e.span)
        index = self.scalar_of(e.index)
        if isinstance(index, ir.Const):
            if index.value >= len(base.elements):
                raise RefusalError(f"index {index.value} is outside the stack of {len(base.elements)}", e.span)
            return base.elements[index.value]
        if base.kind == "header_union_stack":
            raise RefusalError("BMv2 takes elements of a stack of unions by constant index only", e.span)
        return ElementValue(base, index, base.type.element)

    def _slice(self, e: ast.Slice) -> Value:
        base = self.scalar_of(e.base)
        high, low = e.high.value, e.low.value
        assert isinstance(high, int)
        assert isinstance(low, int)
        return self.slice_of(base, high, low)

    def slice_of(self, base: ir.Expr, high: int, low: int) -> ir.Expr:
        t = Bits(high - low + 1)
        if isinstance(base, ir.Const):
            return ir.Const((base.value >> low) & ((1 << t.width) - 1), t)
        if isinstance(base, ir.SliceOf):
            return ir.SliceOf(base.base, high + base.low, low + base.low, t)
        assert isinstance(base.type, Bits)
        if t.width == base.type.width and not base.type.signed:
            return base
        return ir.SliceOf(base, high, low, t)

    def _listexpression(self, e: ast.ListExpression) -> Value:
        items = self.evaluated(*((i, False) for i in e.items))
        names = list(e.type.fields) if isinstance(e.type, Composite) else [str(i) for i in range(len(items))]
        t = e.type if isinstance(e.type, Type) else Tuple(())
        return Record(t, dict(zip(names, items, strict=True)))

    def _structexpression(self, e: ast.StructExpression) -> Value:
        values = self.evaluated(*((item, False) for _, item in e.items))
        given = {name: value for (name, _), value in zip(e.items, values, strict=True)}
        order = list(e.type.fields) if isinstance(e.type, Composite) else list(given)
        assert isinstance(e.type, Type)
        return Record(e.type, {name: given[name] for name in order})

    # --- operators -------------------------------------------------------------------------------------------------

    def operation(self, op: str, operands: tuple[ir.Expr, ...], t: Type, span: Span) -> ir.Expr:
        """An operator on scalars, folded if they are all known (constructor parameters are only known here)."""
        t = strip(t)
        if all(isinstance(o, ir.Const) for o in operands):
            numbers = [o.value for o in operands if isinstance(o, ir.Const)]
            folded: int | bool | None = None
            if op == "cast":
                folded = fold.fit(numbers[0], t)
            elif op == "!":
                folded = not numbers[0]
            elif op in ("&&", "||"):
                folded = all(numbers) if op == "&&" else any(numbers)
            elif op == "?":
                folded = numbers[1] if numbers[0] else numbers[2]
            elif len(numbers) == 1:
                folded = fold.unary(op, numbers[0], t)
            else:
                right = operands[1].type
                folded = fold.binary(op, numbers[0], numbers[1], t, right.width if isinstance(right, Bits) else 0)
            if folded is not None:
                return ir.Const(int(folded), t)
        if op == "?" and isinstance(operands[0], ir.Const):
            return operands[1] if operands[0].value else operands[2]
        if op == "&&" and isinstance(operands[0], ir.Const):
            return operands[1] if operands[0].value else operands[0]
        if op == "||" and isinstance(operands[0], ir.Const):
            return operands[0] if operands[0].value else operands[1]
        if op in ("/", "%") and isinstance(t, Bits) and t.signed:
            raise RefusalError(f"BMv2 has no {op} on signed values known only at run time", span)
        return ir.Operation(op, operands, t)

    def _unary(self, e: ast.Unary) -> Value:
        operand = self.scalar_of(e.operand)
        assert isinstance(e.type, Type)
        return operand if e.op == "+" else self.operation(e.op, (operand,), e.type, e.span)

    def _binary(self, e: ast.Binary) -> Value:
        if e.op in ("&&", "||"):
            return self._short_circuit(e)
        left, right = self.evaluated((e.left, False), (e.right, False))
        return self.binary(e, left, right)

    def binary(self, e: ast.Binary, left: Value, right: Value) -> Value:
        """The operator of `e` on two values."""
        assert isinstance(e.type, Type)
        if e.op in ("==", "!=") and not (isinstance(left, ir.Expr) and isinstance(right, ir.Expr)):
            equal = self._equal(left, right, e.span)
            return equal if e.op == "==" else self.operation("!", (equal,), BOOL, e.span)
        a, b = self.as_expression(left, e.left.span), self.as_expression(right, e.right.span)
        if e.op in ("<<", ">>") and isinstance(b, ir.Const) and isinstance(a.type, Bits):
            gone = b.value >= a.type.width and (e.op == "<<" or not a.type.signed)
            if gone:
                return ir.Const(0, a.type)
        if isinstance(a.type, VarBits) or isinstance(b.type, VarBits):
            raise RefusalError("varbit fields can only be extracted, emitted and copied", e.span)
        return self.operation(e.op, (a, b), e.type, e.span)

    def _equal(self, left: Value, right: Value, span: Span) -> ir.Expr:
        if isinstance(left, HeaderValue) and isinstance(right, HeaderValue):
            return ir.HeadersEqual(left.name, right.name)
        if isinstance(left, Record) and isinstance(right, Record):
            result: ir.Expr = ir.Const(1, BOOL)
            for a, b in zip(left.members.values(), right.members.values(), strict=True):
                result = self.operation("&&", (result, self._equal(a, b, span)), BOOL, span)
            return result
        a, b = self.as_expression(left, span), self.as_expression(right, span)
        return self.operation("==", (a, b), BOOL, span)

    def _short_circuit(self, e: ast.Binary) -> ir.Expr:
        left = self.scalar_of(e.left)
        right, before = self.isolated(e.right)
        if not before:
            return self.operation(e.op, (left, right), BOOL, e.span)
        # The right side has effects: they may happen only if the left side asks for it.
        result = self.temporary(BOOL)
        self.assign_scalar(result, left, e.span)
        body = [*before, ir.Primitive("assign", (result, right), e.span)]
        branch = ir.Branch(result, body, [], e.span) if e.op == "&&" else ir.Branch(result, [], body, e.span)
        self.out.append(branch)
        return result

    def _conditional(self, e: ast.Conditional) -> Value:
        condition = self.scalar_of(e.condition)
        assert isinstance(e.type, Type)
        if isinstance(condition, ir.Const):
            return self.value_of(e.then if condition.value else e.otherwise)
        if isinstance(strip(e.type), Composite):
            raise RefusalError("a conditional expression of structs or headers is not supported: use if", e.span)
        then, before_then = self.isolated(e.then)
        otherwise, before_otherwise = self.isolated(e.otherwise)
        if not before_then and not before_otherwise:
            return self.operation("?", (condition, then, otherwise), e.type, e.span)
        result = self.temporary(e.type)
        before_then.append(ir.Primitive("assign", (result, then), e.span))
        before_otherwise.append(ir.Primitive("assign", (result, otherwise), e.span))
        self.out.append(ir.Branch(condition, before_then, before_otherwise, e.span))
        return result

    def _cast(self, e: ast.Cast) -> Value:
        value = self.value_of(e.operand)
        assert isinstance(e.type, Type)
        if isinstance(value, Record | HeaderValue | Literal):
            return value
        return self.cast(self.as_expression(value, e.span), e.type, e.span)

    def cast(self, value: ir.Expr, to: Type, span: Span) -> ir.Expr:
        t, plain = value.type, strip(to)
        if t == plain:
            return value
        if isinstance(value, ir.Const):
            return ir.Const(fold.fit(value.value, plain), plain)
        if isinstance(t, Bits) and plain == BOOL:
            return self.operation("==", (value, ir.Const(1, t)), BOOL, span)
        if t == BOOL and isinstance(plain, Bits):
            return self.operation("?", (value, ir.Const(1, plain), ir.Const(0, plain)), plain, span)
        if isinstance(t, Bits) and isinstance(plain, Bits):
            if plain.width < t.width and not plain.signed:
                return self.slice_of(value, plain.width - 1, 0)
            return ir.Operation("cast", (value,), plain)
        if plain in (INT, ERROR) or isinstance(plain, Enum):
            return value
        raise RefusalError(f"a value of type {t} cannot be cast to {to}", span)

    # --- calls -----------------------------------------------------------------------------------------------------

    def _call(self, e: ast.Call) -> Value:
        callee = e.target
        assert isinstance(callee, Callee)
        if callee.kind == "header" and callee.name == "isValid":
            assert callee.base is not None
            return self.validity(self.value_of(callee.base), e.span)
        if callee.kind == "function":
            return self.call_function(e, callee)
        if callee.kind == "extern_method" and callee.name == "packet_in.lookahead":
            return self._lookahead(callee.type_arguments[0], e.span)
        if callee.kind == "table":
            raise RefusalError("the result of apply() is used through hit, miss or action_run", e.span)
        raise RefusalError(f"BMv2 has no {callee.name} whose result can be used in an expression", e.span)

    def call_function(self, e: ast.Call, callee: Callee) -> Value:
        raise NotImplementedError

    def validity(self, value: Value, span: Span) -> ir.Expr:
        if isinstance(value, HeaderValue):
            return ir.Valid(value.name)
        if isinstance(value, UnionValue):
            return ir.Valid(value.name, union=True)
        if isinstance(value, ElementValue):
            raise RefusalError("BMv2 cannot tell the validity of a stack element chosen at run time", span)
        raise RefusalError("validity is a property of headers", span)

    def _lookahead(self, t: Type, span: Span) -> Value:
        """What lies ahead, all of it read at once: it must be there, whatever of it is used (specification, 13.8.4).

        BMv2 1.15 checks the length of neither a key nor a part, so neither is made of it.
        """
        plain = strip(t)
        bits = width(plain)
        if bits is None:
            raise RefusalError(f"lookahead needs a type of fixed size, not {t}", span)
        aggregate = isinstance(plain, Composite | Tuple)
        # Packets are whole bytes, so one that holds a part of a byte holds it all.
        ahead: Type = Bits((bits + 7) // 8 * 8 if aggregate else bits) if aggregate or plain == BOOL else plain
        kept = self.temporary(ahead)
        self.assign_scalar(kept, ir.Lookahead(0, width(ahead) or 0, ahead), span)
        return self._part_ahead(kept, plain, 0, span)

    def _part_ahead(self, whole: ir.FieldRef, t: Type, offset: int, span: Span) -> Value:
        """What lies `offset` bits behind the beginning of `whole`; aggregates fall into their fields."""
        plain = strip(t)
        if isinstance(plain, Composite | Tuple):
            items = enumerate(plain.items) if isinstance(plain, Tuple) else plain.fields.items()
            members: dict[str, Value] = {}
            for name, item in items:
                inner = item if isinstance(item, Type) else item.type
                members[str(name)] = self._part_ahead(whole, inner, offset, span)
                offset += width(inner) or 0
            return Record(plain, members)
        size, total = width(plain) or 0, width(whole.type) or 0
        part: ir.Expr
        if total > WHOLE_BITS_MAX:
            part = self.temporary(Bits(size))
            self.assign_scalar(part, ir.Lookahead(offset, size, Bits(size)), span)
        else:
            part = self.slice_of(whole, total - offset - 1, total - offset - size)
        if plain == BOOL:
            return self.operation("==", (part, ir.Const(1, Bits(1))), BOOL, span)
        return whole if whole.type == plain else self.cast(part, plain, span)
