"""Expressions, by precedence climbing (specification, chapter 8)."""

from __future__ import annotations

from .ast import (
    Argument,
    BaseType,
    Binary,
    Boolean,
    Call,
    Cast,
    Conditional,
    Default,
    Expression,
    Index,
    ListExpression,
    Member,
    Name,
    NamedType,
    Number,
    Slice,
    String,
    StructExpression,
    TypeExpression,
    TypeRef,
    Unary,
)
from .lexer import integer
from .parse_base import BASE_TYPES, RESERVED, SOFT, BacktrackError, ParserBase

# Unlike in C, the bitwise operators bind more tightly than comparisons.
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    ">": 4,
    "<=": 4,
    ">=": 4,
    "|": 5,
    "^": 6,
    "&": 7,
    "<<": 8,
    ">>": 8,
    "++": 9,
    "+": 9,
    "-": 9,
    "|+|": 9,
    "|-|": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
_UNARY = frozenset(["!", "~", "-", "+"])


class ExpressionParser(ParserBase):
    """Adds expressions to the cursor."""

    angle = 0  # > 0 while between angle brackets, where `>` closes them

    def expression(self) -> Expression:
        outer, self.angle = self.angle, 0
        try:
            return self._ternary()
        finally:
            self.angle = outer

    def shift_free_expression(self) -> Expression:
        outer, self.angle = self.angle, 1
        try:
            return self._binary(9)
        finally:
            self.angle = outer

    def key_set(self) -> Expression:
        """An element of a select case or a table entry: an expression, a mask, a range, or a wildcard."""
        token = self.token
        if token.text in ("default", "_"):
            self.take()
            return Default(token.span)
        left = self.expression()
        if self.on("&&&", ".."):
            op = self.take()
            return Binary(op.span, op.text, left, self.expression())
        return left

    def key_sets(self) -> list[Expression]:
        """One key set, or several in parentheses."""
        if self.on("("):
            start = self.at
            self.guessing += 1
            try:
                self.take()
                items = [self.key_set()]
                while self.accept(","):
                    if self.on(")"):
                        break
                    items.append(self.key_set())
                self.expect(")")
                if self.on(":"):
                    return items
            except BacktrackError:
                pass
            finally:
                self.guessing -= 1
            self.at = start
        return [self.key_set()]

    # --- operators -------------------------------------------------------------------------------------------------

    def _ternary(self) -> Expression:
        condition = self._binary(1)
        if not self.on("?"):
            return condition
        mark = self.take()
        then = self._ternary()
        self.expect(":", "in a conditional expression")
        return Conditional(mark.span, condition, then, self._ternary())

    def _operator(self) -> str:
        token = self.token
        if token.kind != "op":
            return ""
        if token.text == ">":
            if self.angle:
                return ""
            following = self.peek()
            if following.text == ">" and following.glued:
                return ">>"
        return token.text

    def _binary(self, level: int) -> Expression:
        left = self._unary()
        while True:
            op = self._operator()
            precedence = _PRECEDENCE.get(op, 0)
            if precedence < level:
                return left
            token = self.take()
            if op == ">>":
                self.take()
            right = self._binary(precedence + 1)
            left = Binary(token.span, op, left, right)

    def _unary(self) -> Expression:
        token = self.token
        if token.kind == "op" and token.text in _UNARY:
            self.take()
            return Unary(token.span, token.text, self._unary())
        if token.text == "(":
            cast = self._cast()
            if cast is not None:
                return cast
        return self._postfix(self._primary())

    def _cast(self) -> Expression | None:
        """`(type) operand`. A name in brackets is a cast only if an operand follows that no operator explains."""
        start = self.at
        self.guessing += 1
        try:
            opening = self.take()
            ref = self.type_ref()
            self.expect(")")
        except BacktrackError:
            self.at = start
            return None
        finally:
            self.guessing -= 1
        following = self.token
        starts_operand = following.kind in ("int", "str", "id") or following.text in ("(", "~", "!", "{")
        if following.kind == "id" and following.text in ("in",):
            starts_operand = False
        plain_type = isinstance(ref, BaseType) or (isinstance(ref, NamedType) and bool(ref.arguments))
        if starts_operand or (plain_type and following.text in ("-", "+")):
            return Cast(opening.span, ref, self._unary())
        self.at = start
        return None

    # --- operands --------------------------------------------------------------------------------------------------

    def _primary(self) -> Expression:
        token = self.token
        if token.kind == "int":
            self.take()
            value, width, signed = integer(token.text)
            return Number(token.span, value, width, signed, token.text)
        if token.kind == "str":
            self.take()
            text = token.text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
            return String(token.span, text)
        if token.text in ("true", "false"):
            self.take()
            return Boolean(token.span, token.text == "true")
        if token.text == "(":
            self.take()
            inner = self.expression()
            self.expect(")")
            return inner
        if token.text == "{":
            return self._braces()
        if token.text == ".":
            self.take()
            word = self.name()
            return Name(word.span, word.text, absolute=True)
        if token.text in BASE_TYPES and token.text != "_":
            return TypeExpression(token.span, self.type_ref())
        if token.kind == "id" and (token.text not in RESERVED or token.text in SOFT):
            self.take()
            return Name(token.span, token.text)
        raise self.fail(f"expected an expression, found {self._shown()}")

    def _braces(self) -> Expression:
        opening = self.expect("{")
        if self.on("#"):
            raise self.fail("the invalid-header expression {#} is not supported")
        if self.token.kind == "id" and self.peek().text == "=":
            fields = []
            while not self.on("}"):
                word = self.name("a field")
                self.expect("=")
                fields.append((word.text, self.expression()))
                if not self.accept(","):
                    break
            self.expect("}")
            return StructExpression(opening.span, fields)
        items: list[Expression] = []
        while not self.on("}"):
            items.append(self.expression())
            if not self.accept(","):
                break
        self.expect("}", "after a list of values")
        return ListExpression(opening.span, items)

    def _postfix(self, base: Expression) -> Expression:
        while True:
            token = self.token
            if token.text == "." and token.kind == "op":
                self.take()
                word = self.token
                if word.kind != "id":
                    raise self.fail(f"expected a member's name after '.', found {self._shown()}")
                self.take()
                base = Member(word.span, base, word.text)
            elif token.text == "[":
                self.take()
                first = self.expression()
                if self.accept(":"):
                    low = self.expression()
                    self.expect("]")
                    base = Slice(token.span, base, first, low)
                else:
                    self.expect("]")
                    base = Index(token.span, base, first)
            elif token.text == "(":
                base = self._call(base, [])
            elif token.text == "<" and isinstance(base, Name | Member):
                arguments = self._call_type_arguments()
                if arguments is None:
                    return base
                base = self._call(base, arguments)
            else:
                return base

    def _call_type_arguments(self) -> list[TypeRef] | None:
        """Type arguments, if `<…>(` follows; a comparison otherwise."""
        start = self.at
        self.guessing += 1
        try:
            arguments = self.type_arguments()
            if self.on("("):
                return arguments
        except BacktrackError:
            pass
        finally:
            self.guessing -= 1
        self.at = start
        return None

    def _call(self, callee: Expression, type_arguments: list[TypeRef]) -> Call:
        return Call(callee.span, callee, type_arguments, self.arguments())

    def arguments(self) -> list[Argument]:
        self.expect("(")
        items: list[Argument] = []
        while not self.on(")"):
            token = self.token
            name = None
            if token.kind == "id" and self.peek().text == "=":
                self.take()
                self.take()
                name = token.text
            value: Expression = Default(self.take().span) if self.on("_") else self.expression()
            items.append(Argument(token.span, name, value))
            if not self.accept(","):
                break
        self.expect(")", "after arguments")
        return items
