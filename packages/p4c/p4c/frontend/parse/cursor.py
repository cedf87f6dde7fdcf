"""The cursor over tokens that every part of the parser uses: the next token, syntax errors, recovery."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from p4c.frontend.diagnostics import Diagnostics, SourceSpan
from p4c.frontend.parse.lexer import open_string_note
from p4c.frontend.parse.tokens import CHUNK, Token, Tokens

# Reserved words (specification, section 6.3.3): never names. The other keywords only mean something in their place.
_RESERVED = """
    abstract action apply bit bool const control default else enum error exit extern false for header
    header_union if in inout int list match_kind out package parser return select state string struct
    switch table this transition true tuple typedef type value_set varbit void
"""
RESERVED = frozenset(_RESERVED.split())
# Reserved, yet used as names by grammar productions that allow it (nonTypeName, nonTableKwName).
SOFT = frozenset(["apply", "state", "type", "list"])
BASE_TYPES = frozenset(["bit", "int", "varbit", "bool", "error", "string", "void", "match_kind", "_"])


T = TypeVar("T")


class SyntaxFailureError(Exception):
    """Unwinds to the nearest place where parsing can go on; the complaint has been recorded."""


class BacktrackError(Exception):
    """A guess did not work out; nothing was recorded."""


class Cursor:
    """A place among the tokens, and the token there.

    `guessing` counts open guesses, in which a syntax error is only a BacktrackError. `angle` is above 0 between angle
    brackets, where `>` closes them.
    """

    def __init__(self, tokens: Tokens, diagnostics: Diagnostics) -> None:
        self.tokens = tokens
        self.diagnostics = diagnostics
        self.guessing = 0
        self.angle = 0
        self._known: dict[tuple[object, int, int], tuple[object, int]] = {}
        self.go(0)

    def go(self, place: int) -> None:
        self.at = place
        self.token = self.tokens[place]

    def peek(self, distance: int = 1) -> Token:
        return self.tokens[min(self.at + distance, len(self.tokens) - 1)]

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.at = at = self.at + 1
            self.token = self.tokens.chunk(at // CHUNK)[at % CHUNK]  # no more calls: this runs for every token
        return token

    def on(self, *texts: str) -> bool:
        token = self.token
        return token.text in texts and token.kind in ("op", "id")

    def accept(self, text: str) -> Token | None:
        return self.take() if self.on(text) else None

    def expect(self, text: str, where: str = "") -> Token:
        if self.on(text):
            return self.take()
        raise self.fail(f"expected {text!r}{' ' + where if where else ''}, found {self.next_text()}")

    def name(self, what: str = "a name") -> Token:
        token = self.token
        if token.kind == "id" and (token.text not in RESERVED or token.text in SOFT):
            return self.take()
        if token.kind == "id":
            raise self.fail(f"expected {what}, found the reserved word {token.text!r}")
        raise self.fail(f"expected {what}, found {self.next_text()}")

    def next_text(self) -> str:
        return "the end of the file" if self.token.kind == "end" else repr(self.token.text)

    def fail(self, message: str, span: SourceSpan | None = None) -> Exception:
        """The exception to raise at a syntax error."""
        if self.guessing:
            return BacktrackError()
        before = self.tokens[self.at - 1] if self.at and not span else None
        notes = []
        if before is not None and before.kind == "str" and "\n" in before.text:
            notes = [open_string_note(before.line)]
        self.diagnostics.error("parse", message, span or self.token.span, *notes)
        return SyntaxFailureError()

    def listed(self, read: Callable[[], T], closing: str, where: str = "") -> list[T]:
        """Items with commas between them, and perhaps one behind the last, up to and with `closing`."""
        items = []
        while not self.on(closing):
            items.append(read())
            if not self.accept(","):
                break
        self.expect(closing, where)
        return items

    def each(self, read: Callable[[], object], *ends: str) -> None:
        """Call `read` until one of `ends` comes next; after a syntax error go on behind the part with the error."""
        while not self.on(*ends) and self.token.kind != "end":
            level = self.level
            try:
                read()
            except SyntaxFailureError:
                self.recover(level)
            if not self.guessing:  # nothing goes back behind this
                self._known.clear()

    def attempt(self, read: Callable[[Cursor], T | None]) -> T | None:
        """The result of `read` here. If it finds None, or the tokens are something else, nothing was read."""
        start = self.at
        self.guessing += 1
        try:
            result = self.once(read)
        except BacktrackError:
            result = None
        finally:
            self.guessing -= 1
        if result is None:
            self.go(start)
        return result

    def once(self, read: Callable[[Cursor], T]) -> T:
        """The result of `read`, which depends on the tokens alone, here; remembered while guessing.

        Guesses contain guesses, and text is read again after a wrong one: without this, work doubles with every level.
        """
        key = (read, self.at, self.angle)
        if key in self._known:
            result, end = self._known[key]
            if result is not None:
                self.go(end)
                return cast("T", result)
            if self.guessing:
                raise BacktrackError
        try:
            result = read(self)
        except BacktrackError:
            self._known[key] = None, self.at
            raise
        if self.guessing:
            self._known[key] = result, self.at
        return result

    @property
    def level(self) -> int:
        """How many braces are open here."""
        return self.tokens.levels[self.at]

    def recover(self, level: int) -> None:
        """After an error in something that began at `level`: skip to just behind its `;` or `}`.

        The brace that closes the block around it is left to that block.
        """
        while self.token.kind != "end":
            here, text = self.level, self.token.text
            if here < level or (here == level and text == "}"):
                return
            self.take()
            if (here == level and text == ";") or (here == level + 1 and text == "}"):
                return
