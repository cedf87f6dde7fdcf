"""The types and compile-time values of expressions (specification, chapter 8)."""

from __future__ import annotations

from . import ast, fold
from .check_base import CheckerBase
from .diagnostics import article, choices
from .types import (
    ACTION_RUN,
    ANY,
    APPLY_RESULT,
    BOOL,
    ERROR,
    INT,
    STRING,
    Applicable,
    Bits,
    Composite,
    Enum,
    EnumValue,
    ErrorValue,
    Extern,
    Meta,
    NewType,
    Stack,
    Tuple,
    Type,
    same,
    strip,
)

_ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "&", "|", "^", "|+|", "|-|"])
_COMPARISONS = frozenset(["==", "!=", "<", "<=", ">", ">="])
HEADER_METHODS = ("isValid", "setValid", "setInvalid")
SIZE_METHODS = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")
STACK_METHODS = ("push_front", "pop_front")


class ExpressionChecker(CheckerBase):
    in_parser = False

    def expression(self, e: ast.Expression) -> Type:
        """Work out `e.type` (ANY after a complaint) and `e.value`."""
        method = getattr(self, "_" + type(e).__name__.lower())
        t = method(e)
        assert isinstance(t, Type)
        e.type = t
        return t

    def value_of(self, e: ast.Expression, to: Type, what: str = "") -> Type:
        """Check `e` and convert it to `to`."""
        self.expression(e)
        self.coerce(e, to, what)
        return e.type if isinstance(e.type, Type) else ANY

    # --- leaves ----------------------------------------------------------------------------------------------------

    def _number(self, e: ast.Number) -> Type:
        if e.width is None:
            e.value = e.number
            return INT
        if e.width == 0:
            return self.type_error("a literal of width 0 is not supported", e.span)
        t = Bits(e.width, e.signed)
        e.value = fold.fit(e.number, t)
        if e.number >= 1 << e.width:
            self.diagnostics.warning("types", f"{e.text} does not fit {t}: it becomes {e.value}", e.span)
        return t

    def _boolean(self, e: ast.Boolean) -> Type:
        e.value = e.truth
        return BOOL

    def _string(self, e: ast.String) -> Type:
        e.value = e.text
        return STRING

    def _default(self, _e: ast.Default) -> Type:
        return ANY

    def _name(self, e: ast.Name) -> Type:
        symbol = self.scope.lookup(e.name)
        if symbol is None:
            note = self.names_like(e.name, ("variable", "parameter", "const", "instance", "table"), "names in scope")
            self.name_error(f"there is nothing named {e.name} here", e.span, note)
            return ANY
        e.target = symbol
        if symbol.kind == "type":
            return Meta(symbol.type)
        if symbol.kind in ("action", "function", "state", "value_set"):
            return self.type_error(f"{e.name} is {article(symbol.kind)} and has no value", e.span)
        e.value = symbol.value if symbol.kind == "const" else None
        return symbol.type

    def _typeexpression(self, e: ast.TypeExpression) -> Type:
        return Meta(self.type_of(e.ref))

    # --- operators -------------------------------------------------------------------------------------------------

    def _unary(self, e: ast.Unary) -> Type:
        t = self.expression(e.operand)
        if t == ANY:
            return ANY
        if e.op == "!":
            if t != BOOL:
                return self.type_error(f"! needs a bool, not {t}", e.span)
            e.value = None if e.operand.value is None else not e.operand.value
            return BOOL
        plain = self._arithmetic(t)
        if plain is None or (plain == INT and e.op == "~"):
            return self.type_error(f"{e.op} needs a number with a width, not {t}", e.span)
        value = self._number_value(e.operand)
        if value is not None:
            e.value = fold.unary(e.op, value, plain)
        return plain

    def _arithmetic(self, t: Type) -> Type | None:
        """The type to compute with, or None if `t` is no number."""
        if t == INT or isinstance(t, Bits):
            return t
        return t.underlying if isinstance(t, Enum) else None

    @staticmethod
    def _number_value(e: ast.Expression) -> int | None:
        if isinstance(e.value, EnumValue):
            return e.value.number
        return e.value if isinstance(e.value, int) and not isinstance(e.value, bool) else None

    def _binary(self, e: ast.Binary) -> Type:
        left, right = self.expression(e.left), self.expression(e.right)
        if ANY in (left, right):
            return BOOL if e.op in _COMPARISONS or e.op in ("&&", "||") else ANY
        if e.op in ("&&", "||"):
            return self._logical(e, left, right)
        if e.op in ("&&&", ".."):
            self._balance(e)
            return e.left.type if isinstance(e.left.type, Type) else ANY
        if e.op in ("<<", ">>"):
            return self._shift(e, left, right)
        if e.op == "++":
            return self._concatenation(e, left, right)
        if e.op in ("==", "!=") and not (self._arithmetic(left) and self._arithmetic(right)):
            return self._equality(e, left, right)
        if self._arithmetic(left) is None or self._arithmetic(right) is None:
            culprit, t = (e.left, left) if self._arithmetic(left) is None else (e.right, right)
            note = f"cast it to {t.base} first" if isinstance(t, NewType) else ""
            return self.type_error(f"{e.op} needs numbers, not {t}", culprit.span, note)
        self._balance(e)
        t = e.left.type
        if not same(t, e.right.type):
            note = "cast one of them to the type of the other" if isinstance(t, Bits) else ""
            self.type_error(f"{e.op} needs two values of one type, not {t} and {e.right.type}", e.span, note)
            return BOOL if e.op in _COMPARISONS else ANY
        a, b = self._number_value(e.left), self._number_value(e.right)
        if e.op in ("/", "%") and b is not None and b <= 0:
            return self.type_error(f"{e.op} by {b} has no result", e.span)
        if a is not None and b is not None:
            e.value = fold.binary(e.op, a, b, t)
            if e.value is None:
                return self.type_error(f"{a} {e.op} {b} has no result", e.span)
        return BOOL if e.op in _COMPARISONS else t

    def _balance(self, e: ast.Binary) -> None:
        """Give a literal without width the type of the other side; enums with an underlying type become it."""
        for side in (e.left, e.right):
            if isinstance(side.type, Enum) and side.type.underlying is not None:
                if same(e.left.type, e.right.type) and e.op in ("==", "!="):
                    continue
                self.coerce(side, side.type.underlying)
        if e.left.type == INT and e.right.type != INT:
            self.coerce(e.left, e.right.type)
        elif e.right.type == INT and e.left.type != INT:
            self.coerce(e.right, e.left.type)

    def _logical(self, e: ast.Binary, left: Type, right: Type) -> Type:
        for side, t in ((e.left, left), (e.right, right)):
            if t != BOOL:
                self.type_error(f"{e.op} needs bools, not {t}", side.span, "compare with a number: == or !=")
        a, b = e.left.value, e.right.value
        if isinstance(a, bool) and isinstance(b, bool):
            e.value = (a and b) if e.op == "&&" else (a or b)
        return BOOL

    def _equality(self, e: ast.Binary, left: Type, right: Type) -> Type:
        if left == INT and isinstance(strip(right), Bits):
            self.coerce(e.left, strip(right))
            left = e.left.type = right
        elif right == INT and isinstance(strip(left), Bits):
            self.coerce(e.right, strip(left))
            right = e.right.type = left
        if isinstance(e.right, ast.ListExpression | ast.StructExpression) and isinstance(left, Composite | Tuple):
            self.coerce(e.right, left)
            right = e.right.type
        if not same(left, right):
            self.type_error(f"{e.op} needs two values of one type, not {left} and {right}", e.span)
        if e.left.value is not None and e.right.value is not None:
            e.value = (e.left.value == e.right.value) == (e.op == "==")
        return BOOL

    def _shift(self, e: ast.Binary, left: Type, right: Type) -> Type:
        plain = self._arithmetic(left)
        by = self._arithmetic(right)
        if plain is None or by is None:
            return self.type_error(f"{e.op} needs numbers, not {left} and {right}", e.span)
        if isinstance(by, Bits) and by.signed:
            return self.type_error("a shift needs an unsigned amount", e.right.span)
        amount, value = self._number_value(e.right), self._number_value(e.left)
        if amount is not None and amount < 0:
            return self.type_error("a shift by a negative amount has no meaning", e.right.span)
        if plain == INT and amount is None:
            return self.type_error(
                "a literal without width needs one to be shifted by a value known at run time", e.span
            )
        if value is not None and amount is not None:
            e.value = fold.binary(e.op, value, amount, plain)
        return plain

    def _concatenation(self, e: ast.Binary, left: Type, right: Type) -> Type:
        a, b = self._arithmetic(left), self._arithmetic(right)
        if not isinstance(a, Bits) or not isinstance(b, Bits):
            return self.type_error(f"++ needs values with widths, not {left} and {right}", e.span)
        t = Bits(a.width + b.width, a.signed)
        x, y = self._number_value(e.left), self._number_value(e.right)
        if x is not None and y is not None:
            e.value = fold.binary("++", x, y, t, b.width)
        return t

    def _conditional(self, e: ast.Conditional) -> Type:
        condition = self.expression(e.condition)
        if condition not in (BOOL, ANY):
            self.type_error(f"the condition before ? must be a bool, not {condition}", e.condition.span)
        then, otherwise = self.expression(e.then), self.expression(e.otherwise)
        if then == INT and otherwise != INT:
            self.coerce(e.then, otherwise)
        elif otherwise == INT and then != INT:
            self.coerce(e.otherwise, then)
        if not same(e.then.type, e.otherwise.type):
            message = f"both sides of : need one type, not {e.then.type} and {e.otherwise.type}"
            return self.type_error(message, e.span)
        if isinstance(e.condition.value, bool):
            e.value = (e.then if e.condition.value else e.otherwise).value
        return e.then.type if isinstance(e.then.type, Type) else ANY

    def _cast(self, e: ast.Cast) -> Type:
        to = self.type_of(e.to)
        t = self.expression(e.operand)
        if ANY in (t, to):
            return to
        source, plain = strip(t), strip(to)
        if isinstance(e.operand, ast.ListExpression | ast.StructExpression) or same(t, to):
            self.coerce(e.operand, to, "the cast")
            e.value = e.operand.value
            return to
        value = e.operand.value
        if isinstance(value, EnumValue) and isinstance(plain, Bits):
            value = value.number
        if isinstance(plain, Bits) and (source == INT or isinstance(source, Bits)):
            if isinstance(source, Bits) and source.signed != plain.signed and source.width != plain.width:
                note = f"cast to {Bits(source.width, plain.signed)} or {Bits(plain.width, source.signed)} first"
                return self.type_error(f"a cast changes the sign or the width, not both: {t} to {to}", e.span, note)
            if isinstance(value, int):
                e.value = fold.fit(value, plain)
        elif isinstance(plain, Bits) and source == BOOL and plain == Bits(1):
            e.value = None if value is None else int(value)
        elif plain == BOOL and (source == Bits(1) or (source == INT and value in (0, 1))):
            e.value = None if value is None else bool(value)
        elif plain == INT and isinstance(source, Bits):
            e.value = value
        else:
            return self.type_error(f"{t} cannot be cast to {to}", e.span)
        return to

    # --- parts -----------------------------------------------------------------------------------------------------

    def _index(self, e: ast.Index) -> Type:
        base, index = self.expression(e.base), self.expression(e.index)
        if ANY in (base, index):
            return base.element if isinstance(base, Stack) else ANY
        if isinstance(base, Tuple):
            number = self.constant_number(e.index, "the index of a tuple")
            if number is None or number >= len(base.items):
                return self.type_error(f"{base} has {len(base.items)} members", e.span)
            return base.items[number]
        if not isinstance(base, Stack):
            return self.type_error(f"only header stacks and tuples can be indexed, not {base}", e.span)
        if self._arithmetic(index) is None:
            return self.type_error(f"an index must be a number, not {index}", e.index.span)
        number = self._number_value(e.index)
        if number is not None and not 0 <= number < base.size:
            return self.type_error(f"index {number} is outside {base}: valid are 0 to {base.size - 1}", e.index.span)
        return base.element

    def _slice(self, e: ast.Slice) -> Type:
        base = self.expression(e.base)
        high = self.constant_number(e.high, "the upper end of a slice")
        low = self.constant_number(e.low, "the lower end of a slice")
        if base == ANY or high is None or low is None:
            return ANY
        plain = self._arithmetic(base)
        if not isinstance(plain, Bits):
            return self.type_error(f"only numbers with a width have slices, not {base}", e.span)
        if not 0 <= low <= high < plain.width:
            message = f"the slice [{high}:{low}] does not lie within {plain}"
            return self.type_error(message, e.span, f"bits run from {plain.width - 1} down to 0, the higher first")
        value = self._number_value(e.base)
        if value is not None:
            e.value = (value >> low) & ((1 << (high - low + 1)) - 1)
        return Bits(high - low + 1)

    def _listexpression(self, e: ast.ListExpression) -> Type:
        return Tuple(tuple(self.expression(i) for i in e.items))

    def _structexpression(self, e: ast.StructExpression) -> Type:
        from .types import Field

        fields = {name: Field(name, self.expression(item), []) for name, item in e.items}
        return Composite("", "struct", fields, anonymous=True)

    def _member(self, e: ast.Member) -> Type:
        base = self.expression(e.base)
        if base == ANY:
            return ANY
        if isinstance(base, Meta):
            return self._static_member(e, base.type)
        if isinstance(base, Composite):
            if e.name in base.fields:
                return base.fields[e.name].type
            methods = HEADER_METHODS if base.kind == "header" else ("isValid",) if base.kind == "header_union" else ()
            if e.name in SIZE_METHODS or e.name in methods:
                return self.type_error(f"{e.name} is a method: write {e.name}()", e.span)
            note = choices(e.name, [*base.fields, *(f"{m}()" for m in methods)], "fields")
            return self.type_error(f"{base} has no field {e.name}", e.span, note)
        if isinstance(base, Stack):
            if e.name in ("next", "last"):
                return base.element
            if e.name in ("lastIndex", "size"):
                e.value = base.size if e.name == "size" else None
                return Bits(32)
            note = choices(e.name, ["next", "last", "lastIndex", "size", *STACK_METHODS], "members")
            return self.type_error(f"a header stack has no member {e.name}", e.span, note)
        if base == APPLY_RESULT:
            if e.name in ("hit", "miss"):
                return BOOL
            if e.name == "action_run":
                return ACTION_RUN
            return self.type_error(
                f"the result of apply() has no member {e.name}", e.span, "members: action_run, hit, miss"
            )
        if isinstance(base, Extern | Applicable):
            return self.type_error(f"{base} has methods only: write {e.name}(…)", e.span)
        return self.type_error(f"a value of type {base} has no members", e.span)

    def _static_member(self, e: ast.Member, base: Type) -> Type:
        if base == ERROR:
            if e.name not in self.errors:
                return self.type_error(f"there is no error.{e.name}", e.span, choices(e.name, self.errors, "errors"))
            e.value = ErrorValue(e.name)
            return ERROR
        if isinstance(base, Enum):
            if e.name not in base.values:
                note = choices(e.name, base.values, "members")
                return self.type_error(f"{base} has no member {e.name}", e.span, note)
            e.value = EnumValue(base, e.name)
            return base
        if e.name in SIZE_METHODS:
            return self.type_error(f"{e.name} is a method: write {e.name}()", e.span)
        return self.type_error(f"{base} has no member {e.name}", e.span)

    def _call(self, e: ast.Call) -> Type:
        raise NotImplementedError

    # --- left values -----------------------------------------------------------------------------------------------

    def is_left_value(self, e: ast.Expression) -> bool:
        if isinstance(e, ast.Name):
            return e.target is not None and e.target.writable
        if isinstance(e, ast.Member):
            if isinstance(e.base.type, Stack) and e.name not in ("next", "last"):
                return False
            return self.is_left_value(e.base)
        if isinstance(e, ast.Index | ast.Slice):
            return self.is_left_value(e.base)
        return False

    def need_left_value(self, e: ast.Expression, what: str) -> None:
        """Complain unless `e` can be written."""
        if e.type == ANY or self.is_left_value(e):
            return
        root = e
        while isinstance(root, ast.Member | ast.Index | ast.Slice):
            root = root.base
        note = ""
        if isinstance(root, ast.Name) and root.target is not None:
            symbol = root.target
            if symbol.kind == "parameter":
                way = f"an '{symbol.direction}' parameter" if symbol.direction else "a parameter without direction"
                note = f"{symbol.name} is {way}: only 'out' and 'inout' parameters can be written"
            else:
                note = f"{symbol.name} is {article(symbol.kind)}"
        self.type_error(f"{what} must be something that can be written", e.span, note)
