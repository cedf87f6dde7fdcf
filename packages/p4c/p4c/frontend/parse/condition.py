"""Integer expressions of `#if` and `#elif`, with C's meaning: names that are not macros count as 0."""

from collections.abc import Callable
from dataclasses import dataclass

from p4c.frontend.diagnostics import SourceSpan, brief
from p4c.frontend.parse.lexer import integer
from p4c.frontend.parse.tokens import Token

_LEVELS = [level.split() for level in ["||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"]]
_BITS_MAX = 4096  # of a number in an #if


class ConditionError(Exception):
    """A wrong expression, with the place."""

    def __init__(self, message: str, span: SourceSpan) -> None:
        super().__init__(message)
        self.span = span


@dataclass(slots=True)
class Condition:
    """An integer expression with macros replaced, read by precedence. `word` is the directive.

    `skipped` is above 0 in a part that C does not evaluate, such as the right side of `0 &&`.
    """

    tokens: list[Token]
    word: Token
    at: int = 0
    skipped: int = 0

    def value(self) -> int:
        value = self._choice()
        if self.at < len(self.tokens):
            raise self._error(f"unexpected {self._text()!r}", self.tokens[self.at])
        return value

    def _error(self, message: str, token: Token) -> ConditionError:
        return ConditionError(f"{message} in #{self.word.text}", token.span)

    def _text(self, distance: int = 0) -> str:
        place = self.at + distance
        return self.tokens[place].text if place < len(self.tokens) else ""

    def _take(self) -> Token:
        if self.at >= len(self.tokens):
            raise ConditionError(f"the expression of #{self.word.text} ends too soon", self.word.span)
        self.at += 1
        return self.tokens[self.at - 1]

    def _part(self, skip: bool, read: Callable[[], int]) -> int:
        self.skipped += skip
        value = read()
        self.skipped -= skip
        return value

    def _choice(self) -> int:
        condition = self._binary(0)
        if self._text() != "?":
            return condition
        mark = self._take()
        then = self._part(not condition, self._choice)
        if self._text() != ":":
            raise self._error("expected ':' after '?'", mark)
        self._take()
        otherwise = self._part(bool(condition), self._choice)
        return then if condition else otherwise

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (op := self._operator()) in _LEVELS[level]:
            mark = self._take()
            self.at += op == ">>"
            decided = bool(left) == (op == "||") and op in ("&&", "||")
            right = self._part(decided, lambda: self._binary(level + 1))
            left = 0 if self.skipped else self._applied(op, left, right, mark)
        return left

    def _operator(self) -> str:
        """`>>` is two tokens."""
        text = self._text()
        return ">>" if text == ">" and self._text(1) == ">" and self.tokens[self.at + 1].glued else text

    def _applied(self, op: str, left: int, right: int, mark: Token) -> int:
        if op in ("/", "%") and right == 0:
            raise ConditionError(f"division by zero in #{self.word.text}", mark.span)
        if op in ("<<", ">>") and not 0 <= right <= _BITS_MAX:
            message = f"a shift in #{self.word.text} must be by 0 to {_BITS_MAX} bits, not {brief(right)}"
            raise ConditionError(message, mark.span)
        return self._bounded(_RESULTS[op](left, right), mark)

    def _bounded(self, value: int, token: Token) -> int:
        if value.bit_length() > _BITS_MAX:
            raise ConditionError(f"a number in #{self.word.text} must fit in {_BITS_MAX} bits", token.span)
        return value

    def _unary(self) -> int:
        token = self._take()
        if token.text in ("!", "-", "~", "+"):
            value = self._unary()
            return {"!": int(not value), "-": -value, "~": ~value, "+": value}[token.text]
        if token.text == "(":
            value = self._choice()
            if self._text() != ")":
                raise self._error("expected ')' to close this '('", token)
            self._take()
            return value
        if token.kind == "int":
            return self._bounded(integer(token.text)[0], token)
        if token.kind != "id":
            raise self._error(f"expected a number, found {token.text!r}", token)
        return 0


def _quotient(left: int, right: int) -> int:
    """Rounded towards zero, as in C."""
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


_RESULTS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a) or bool(b)),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
}
